// SPDX-License-Identifier: Apache-2.0
#include "machine/network/traffic.h"

#include <numeric>
#include <utility>

namespace orrery::network {
namespace {

/// Returns a permutation without fixed points: shuffled (Fisher-Yates), then every fixed point
/// trades places with the next host.
std::vector<std::int32_t> derangement(std::int32_t hosts, std::uint64_t seed) {
  std::vector<std::int32_t> to(static_cast<std::size_t>(hosts));
  std::iota(to.begin(), to.end(), 0);
  std::uint64_t state = topology::mixed(seed);
  for (std::size_t i = to.size(); i > 1; --i) {
    state = topology::mixed(state);
    std::swap(to[i - 1], to[state % i]);
  }
  for (std::size_t i = 0; i < to.size() && to.size() > 1; ++i) {
    if (to[i] == static_cast<std::int32_t>(i)) {
      std::swap(to[i], to[(i + 1) % to.size()]);
    }
  }
  return to;
}

}  // namespace

std::vector<FlowRequest> make_traffic(const TrafficSpec& spec, std::int32_t hosts) {
  std::vector<FlowRequest> flows;
  const auto add = [&](std::int32_t source, std::int32_t target) {
    if (source != target) {
      flows.push_back({.source = source, .target = target, .bytes = spec.bytes});
    }
  };
  const std::vector<std::int32_t> to = spec.kind == Traffic::permutation
                                           ? derangement(hosts, spec.seed)
                                           : std::vector<std::int32_t>();
  for (std::int32_t h = 0; h < hosts; ++h) {
    switch (spec.kind) {
      case Traffic::permutation:
        add(h, to[static_cast<std::size_t>(h)]);
        break;
      case Traffic::ring:
        add(h, (h + spec.stride % hosts) % hosts);
        break;
      case Traffic::shift:
        add(h, (h + hosts / 2) % hosts);
        break;
      case Traffic::all_to_all:
        for (std::int32_t other = 1; other < hosts; ++other) {
          add(h, (h + other) % hosts);
        }
        break;
      case Traffic::incast:
        add(h, 0);
        break;
    }
  }
  return flows;
}

}  // namespace orrery::network
