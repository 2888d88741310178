// SPDX-License-Identifier: Apache-2.0
#include "collective/algorithm.h"

namespace orrery::collective {

AlgorithmRow custom_trtllm_row() {
  return {.value = CollectiveAlgorithm::custom_trtllm,
          .name = "custom_trtllm",
          .sentence = "the same with TensorRT-LLM's kernels",
          .launch = "trtllm",
          .price = price_custom,
          .left_out = serving_kernel};
}

}  // namespace orrery::collective
