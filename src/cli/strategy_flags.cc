// SPDX-License-Identifier: Apache-2.0
#include "cli/strategy_flags.h"

#include <utility>

#include "planner/spmd/models.h"
#include "planner/spmd/program.h"

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
  const std::optional<std::string> count =
      devices > 0 ? std::optional(std::to_string(devices)) : std::nullopt;
  const spmd::OperatorGraph graph =
      read_graph({.graph = graph_, .devices = count, .layers = layers_}, mistakes);
  const spmd::Strategy strategy = collect(spmd::load_strategy(file), mistakes);
  spmd::Overlap overlap = spmd::Overlap::both;
  take("--overlap", overlap_, overlap, mistakes);
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  const auto prices = spmd::MachinePrices::make(machine, devices > 0 ? devices : graph.devices,
                                                overlap, graph.element);
  return prices ? spmd::program_of(graph, strategy, *prices) : fail(prices.error());
}

}  // namespace orrery::cli
