// SPDX-License-Identifier: Apache-2.0
/// Links of one whole dimension of p devices, for schedules to run on.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "collective/steps.h"
#include "execute.h"
#include "machine/topology/link_map.h"

namespace orrery::testing {

inline topology::DimensionKind kind_of(collective::Fabric::Form form) {
  switch (form) {
    case collective::Fabric::Form::switched:
      return topology::DimensionKind::switched;
    case collective::Fabric::Form::complete:
      return topology::DimensionKind::fully_connected;
    case collective::Fabric::Form::cycle:
      return topology::DimensionKind::ring;
    case collective::Fabric::Form::line:
      return topology::DimensionKind::mesh;
  }
  return topology::DimensionKind::switched;
}

/// `bandwidth` is that of a device, as in NetworkDimension. A message takes `latency`, on cycles
/// and lines for each link.
inline Wires wires_of(collective::Fabric::Form form, int ranks, Bandwidth bandwidth, Time latency) {
  struct Links {
    topology::LinkMap map;
    Time latency;
    std::map<std::pair<std::int64_t, std::int64_t>, MessageRoute> routes;
  };
  topology::NetworkDimension dimension;
  dimension.kind = kind_of(form);
  dimension.size = ranks;
  dimension.bandwidth = bandwidth;
  const bool lines =
      form == collective::Fabric::Form::cycle || form == collective::Fabric::Form::line;
  dimension.latency = lines ? latency : Time(0);
  auto links = std::make_shared<Links>(Links{topology::LinkMap({dimension}), latency, {}});
  return {.links = links->map.links(),
          .route = [links](std::int64_t from, std::int64_t to) -> auto& {
            const auto [found, fresh] = links->routes.try_emplace({from, to});
            if (fresh) {
              links->map.route(from, to, found->second.hops);
              found->second.hops.back().latency = Time(0);
              found->second.after = links->latency;
            }
            return std::as_const(found->second);
          }};
}

}  // namespace orrery::testing
