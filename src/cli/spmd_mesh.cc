// SPDX-License-Identifier: Apache-2.0
#include "cli/spmd_mesh.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/reader.h"
#include "cli/command.h"
#include "planner/spmd/graph_builder.h"
#include "simulate/simulate.h"

namespace orrery::cli {

Result<spmd::Mesh> parse_mesh(const std::string& text) {
  const std::size_t times = std::min(text.find('x'), text.size());
  const auto inner = parse_value<std::int64_t>(text.substr(0, times));
  const auto outer =
      parse_value<std::int64_t>(times < text.size() ? text.substr(times + 1) : std::string());
  if (!inner || !outer || *inner < 1 || *outer < 1 || *inner > spmd::kMostDevices / *outer) {
    return fail(Error(
        wrong_value("--mesh", text, "two numbers of devices, the inner axis first, such as 8x4")));
  }
  return spmd::Mesh{*inner, *outer};
}

Result<report::MeshRun> solve_spmd_mesh(spmd::OperatorGraph graph, const spmd::Mesh& mesh,
                                        const machine::Machine& machine,
                                        std::optional<spmd::FixedStrategy> fixed) {
  const auto prices = spmd::MeshPrices::make(machine, mesh, graph.element);
  if (!prices) {
    return fail(prices.error());
  }
  const auto begin = std::chrono::steady_clock::now();
  auto solution = spmd::search_mesh(
      graph, *prices, {.allowed = fixed ? spmd::restriction(*fixed) : spmd::Restriction()});
  if (!solution) {
    return fail(std::move(solution.error()));
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto cost = spmd::replay(graph, solution->strategy, *prices);
  const auto program = spmd::program_of(graph, solution->strategy, *prices);
  if (!cost || !program) {
    return fail(cost ? program.error() : cost.error());
  }
  const auto timeline = simulate::simulate(*program, prices->machine());
  if (!timeline) {
    return fail(timeline.error());
  }
  return report::MeshRun{.graph = std::move(graph),
                         .mesh = mesh,
                         .machine = machine.name,
                         .type = prices->type(),
                         .solution = std::move(*solution),
                         .cost = *cost,
                         .simulated = timeline->step_time,
                         .search_seconds = seconds};
}

}  // namespace orrery::cli
