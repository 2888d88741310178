// SPDX-License-Identifier: Apache-2.0
#include "simulate/network_model.h"

namespace orrery::simulate {

std::vector<NetworkRow> network_list() {
  return shipped_networks();
}

}  // namespace orrery::simulate
