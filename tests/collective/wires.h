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

inline DimensionKind kind_of(Fabric::Form form) {
  switch (form) {
    case Fabric::Form::switched:
      return DimensionKind::switched;
    case Fabric::Form::complete:
      return DimensionKind::fully_connected;
    case Fabric::Form::cycle:
      return DimensionKind::ring;
    case Fabric::Form::line:
      return DimensionKind::mesh;
  }
  return DimensionKind::switched;
}

/// `bandwidth` is that of a device, as in NetworkDimension. A message takes `latency`, on cycles
/// and lines for each link.
inline Wires wires_of(Fabric::Form form, int ranks, Bandwidth bandwidth, Time latency) {
  struct Links {
    LinkMap map;
    Time latency;
    std::map<std::pair<std::int64_t, std::int64_t>, MessageWay> ways;
  };
  NetworkDimension dimension;
  dimension.kind = kind_of(form);
  dimension.size = ranks;
  dimension.bandwidth = bandwidth;
  const bool lines = form == Fabric::Form::cycle || form == Fabric::Form::line;
  dimension.latency = lines ? latency : Time(0);
  auto links = std::make_shared<Links>(Links{LinkMap({dimension}), latency, {}});
  return {.links = links->map.links(), .way = [links](std::int64_t from, std::int64_t to) -> auto& {
            const auto [found, fresh] = links->ways.try_emplace({from, to});
            if (fresh) {
              links->map.route(from, to, found->second.hops);
              found->second.hops.back().latency = Time(0);
              found->second.after = links->latency;
            }
            return std::as_const(found->second);
          }};
}

}  // namespace orrery::testing
