// SPDX-License-Identifier: Apache-2.0
#include "collective/gateway.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <vector>

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

namespace {

Time sent(Bytes size, const GatewayEnd& from, const GatewayEnd& to) {
  return size / std::min(from.bandwidth, to.bandwidth);
}

Time path(const GatewayEnd& from, const GatewayEnd& to) {
  return (from.path + to.path) / 2;
}

/// One after the other into `centre`.
struct Gathering {
  const GatewayEnd& centre;
  Time messages{0};
  Time longest{0};

  void take(Bytes size, const GatewayEnd& from) {
    messages += sent(size, from, centre);
    longest = std::max(longest, path(from, centre));
  }
  Time total() const { return messages + longest; }
};

Time ring_time(Bytes size, std::span<const GatewayEnd> ends) {
  const auto devices = static_cast<std::int64_t>(ends.size());
  Time slowest{0};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const GatewayEnd& to = ends[(i + 1) % ends.size()];
    const Bandwidth both = std::min(ends[i].bandwidth, to.bandwidth);
    slowest = std::max(slowest, path(ends[i], to) + size / (both * static_cast<double>(devices)));
  }
  return 2 * (devices - 1) * slowest;
}

Time tree_time(Bytes size, std::span<const GatewayEnd> ends) {
  const std::size_t workers = ends.size() - 1;
  const auto heads = static_cast<std::size_t>(std::sqrt(static_cast<double>(workers)));
  Gathering master{ends.front()};
  std::vector<Gathering> groups;
  for (std::size_t i = 1; i <= heads; ++i) {
    master.take(size, ends[i]);
    groups.push_back({ends[i]});
  }
  for (std::size_t i = heads + 1; i <= workers; ++i) {
    groups[(i - heads - 1) % heads].take(size, ends[i]);
  }
  Time slowest{0};
  for (const Gathering& group : groups) {
    slowest = std::max(slowest, group.total());
  }
  return 2 * (master.total() + slowest);
}

template <class Home>
GatewayAlgorithm fastest(Bytes size, const Home& home) {
  constexpr auto kAll = kNames<GatewayAlgorithm>;
  return std::min_element(kAll.begin(), kAll.end(),
                          [&](const auto& a, const auto& b) {
                            return gateway_all_reduce(a.value, size, home) <
                                   gateway_all_reduce(b.value, size, home);
                          })
      ->value;
}

}  // namespace

Time gateway_all_reduce(GatewayAlgorithm algorithm, Bytes size, std::span<const GatewayEnd> ends) {
  assert(!ends.empty());
  const bool alike = std::all_of(ends.begin(), ends.end(),
                                 [&](const GatewayEnd& end) { return end == ends.front(); });
  if (alike) {
    return gateway_all_reduce(algorithm, size,
                              Gateways{.devices = static_cast<std::int64_t>(ends.size()),
                                       .bandwidth = ends.front().bandwidth,
                                       .path = ends.front().path});
  }
  if (algorithm == GatewayAlgorithm::ring) {
    return ring_time(size, ends);
  }
  if (algorithm == GatewayAlgorithm::tree && ends.size() > 2) {
    return tree_time(size, ends);
  }
  Gathering master{ends.front()};
  for (const GatewayEnd& worker : ends.subspan(1)) {
    master.take(size, worker);
  }
  return 2 * master.total();
}

GatewayAlgorithm fastest_all_reduce(Bytes size, const Gateways& home) {
  return fastest(size, home);
}
GatewayAlgorithm fastest_all_reduce(Bytes size, std::span<const GatewayEnd> ends) {
  return fastest(size, ends);
}

}  // namespace orrery::collective
