// SPDX-License-Identifier: Apache-2.0
#include "cli/strategy_flags.h"

#include <utility>

#include "planner/spmd/models.h"
#include "planner/spmd/saved.h"

namespace orrery::cli {

void StrategyFlags::declare(Options& options) {
  options.value("--graph", graph_, "NAME|FILE",
                "with --strategy, instead of a model: the graph that it is of, " +
                    all_names<spmd::ModelName>() + ", or a file");
  options.value("--layers", layers_, "INT", "with --graph: of a named graph; default 8");
  options.value("--overlap", overlap_, "NAME",
                "with --graph: " + all_names<spmd::Overlap>() + "; default both");
}

void StrategyFlags::check(Error& mistakes) const {
  if (!given()) {
    refuse_given({{"--layers", layers_}, {"--overlap", overlap_}}, "goes with --graph", mistakes);
  }
}

Result<graph::Workload> StrategyFlags::read(const std::string& file,
                                            const machine::Machine& machine,
                                            std::int64_t devices) const {
  Error mistakes;
  const spmd::SavedStrategy strategy = collect(spmd::load_saved(file), mistakes);
  const std::int64_t wanted = devices > 0 ? devices : spmd::devices_of(strategy, 0);
  const std::optional<std::string> count =
      wanted > 0 ? std::optional(std::to_string(wanted)) : std::nullopt;
  const spmd::OperatorGraph graph = read_graph(
      {.graph = graph_, .devices = count, .layers = layers_, .mesh = spmd::is_of_mesh(strategy)},
      mistakes);
  if (spmd::is_of_mesh(strategy)) {
    refuse_given({{"--overlap", overlap_}}, "contradicts a strategy on a mesh, which has its own",
                 mistakes);
  }
  spmd::Overlap overlap = spmd::Overlap::both;
  take("--overlap", overlap_, overlap, mistakes);
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return spmd::program_of(graph, strategy, machine, wanted > 0 ? wanted : graph.devices, overlap)
      .map([](spmd::SavedProgram program) { return std::move(program.workload); });
}

}  // namespace orrery::cli
