// SPDX-License-Identifier: Apache-2.0
#include "collective/algorithm.h"

namespace orrery::collective {

AlgorithmRow custom_eager_row() {
  return {.value = CollectiveAlgorithm::custom_eager,
          .name = "custom_eager",
          .sentence = "the same launched one by one by the host, out of place",
          .launch = "eager",
          .price = price_custom,
          .left_out = serving_kernel};
}

}  // namespace orrery::collective
