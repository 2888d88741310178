// SPDX-License-Identifier: Apache-2.0
/// Any bytes as a configuration of BookSim and as a list of links: an experiment or a reason.
#include "machine/network/flit/experiment.h"
#include "tests/fuzz/fuzz.h"

ORRERY_FUZZ(booksim) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto experiment = orrery::flit::parse_booksim(text, "input");
  if (!experiment) {
    orrery::fuzz::hold_error(experiment.error());
  } else if (const auto ok = orrery::flit::check(*experiment); !ok) {
    orrery::fuzz::hold_error(ok.error());
  }
  const auto graph = orrery::flit::parse_link_list(text, "input");
  if (!graph) {
    orrery::fuzz::hold_error(graph.error());
  } else {
    orrery::fuzz::hold(!graph->nodes.empty(), "a network has nodes");
  }
  return 0;
}
