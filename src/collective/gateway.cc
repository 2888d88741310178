// SPDX-License-Identifier: Apache-2.0
#include "collective/gateway.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace orrery::collective {

Time gateway_all_reduce(GatewayAlgorithm algorithm, Bytes size, const Gateways& home) {
  assert(home.devices >= 1 && home.bandwidth > Bandwidth(0));
  const std::int64_t workers = home.devices - 1;
  if (workers == 0) {
    return Time(0);
  }
  if (algorithm == GatewayAlgorithm::ring) {
    return 2 * workers * (home.path + size / (home.bandwidth * static_cast<double>(home.devices)));
  }
  if (algorithm == GatewayAlgorithm::star || workers == 1) {
    return 2 * home.path + 2 * workers * (size / home.bandwidth);
  }
  const auto heads = static_cast<std::int64_t>(std::sqrt(static_cast<double>(workers)));
  const std::int64_t others = (workers - heads + heads - 1) / heads;
  return 4 * home.path + 2 * (heads + others) * (size / home.bandwidth);
}

GatewayAlgorithm fastest_all_reduce(Bytes size, const Gateways& home) {
  constexpr auto kAll = kNames<GatewayAlgorithm>;
  return std::min_element(kAll.begin(), kAll.end(),
                          [&](const auto& a, const auto& b) {
                            return gateway_all_reduce(a.value, size, home) <
                                   gateway_all_reduce(b.value, size, home);
                          })
      ->value;
}

}  // namespace orrery::collective
