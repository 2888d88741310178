// SPDX-License-Identifier: Apache-2.0
/// Any bytes as a file of a network of links: a network whose parts fit together, or a reason.
#include "machine/topology/read.h"
#include "tests/fuzz/fuzz.h"

ORRERY_FUZZ(topology) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto graph = orrery::topology::read_topology(text, "input");
  if (!graph) {
    orrery::fuzz::hold_error(graph.error());
    return 0;
  }
  const auto vertices = static_cast<std::int32_t>(graph->vertices.size());
  orrery::fuzz::hold(graph->hosts > 0 && graph->hosts <= vertices, "there are hosts");
  for (const orrery::topology::GraphLink& link : graph->links) {
    orrery::fuzz::hold(link.source >= -1 && link.source < vertices, "links begin somewhere");
    orrery::fuzz::hold(link.target >= -1 && link.target < vertices, "links end somewhere");
    orrery::fuzz::hold(link.bandwidth.value() > 0, "links carry something");
  }
  return 0;
}
