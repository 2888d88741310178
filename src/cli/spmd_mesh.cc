// SPDX-License-Identifier: Apache-2.0
#include "cli/spmd_mesh.h"

#include <chrono>
#include <sstream>
#include <utility>
#include <vector>

#include "base/reader.h"
#include "cli/command.h"
#include "planner/spmd/mesh_overlap.h"
#include "simulate/simulate.h"

namespace orrery::cli {
namespace {

/// Finds the program, its bound and what the search says of itself.
Result<void> search(report::MeshRun& run, const MeshQuestion& question,
                    const spmd::MeshPrices& prices) {
  spmd::MeshOptions options{.allowed = question.fixed ? spmd::restriction(*question.fixed)
                                                      : spmd::Restriction()};
  options.most_states = question.states > 0 ? question.states : spmd::most_states_on(question.mesh);
  run.states = options.most_states;
  if (question.frontier) {
    auto frontier = spmd::mesh_frontier(run.graph, prices, options);
    if (!frontier) {
      return fail(std::move(frontier.error()));
    }
    run.frontier = std::move(*frontier);
    run.solution = run.frontier.front().solution;
    run.bound = run.frontier.front().bound;
    return {};
  }
  if (question.overlap == spmd::Overlap::none) {
    auto found =
        spmd::search_mesh_within(run.graph, prices, question.limit.value_or(Bytes::max()), options);
    if (!found) {
      return fail(std::move(found.error()));
    }
    run.solution = std::move(found->solution);
    run.bound = found->bound;
    return {};
  }
  const auto judge = [&](const spmd::MeshStrategy& strategy) -> Result<Time> {
    return spmd::program_of(run.graph, strategy, prices, question.overlap)
        .and_then([&](const graph::Workload& workload) {
          return simulate::simulate(workload, prices.machine());
        })
        .map([](const simulate::Timeline& timeline) { return timeline.step_time; });
  };
  auto found = spmd::search_overlapped(run.graph, prices, judge, question.limit, options);
  if (!found) {
    return fail(std::move(found.error()));
  }
  run.solution = std::move(found->solution);
  run.bound = found->bound;
  return {};
}

}  // namespace

Result<spmd::Mesh> parse_mesh(const std::string& text) {
  std::vector<std::int64_t> extents;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, 'x');) {
    extents.push_back(parse_value<std::int64_t>(item).value_or(0));
  }
  const auto mesh = text.ends_with('x') ? std::nullopt : spmd::mesh_of(extents);
  if (!mesh) {
    return fail(Error(wrong_value("--mesh", text,
                                  "two or three numbers of devices, the inner axis first, such as "
                                  "8x4 or 8x4x2")));
  }
  return *mesh;
}

Result<report::MeshRun> solve_spmd_mesh(spmd::OperatorGraph graph, const MeshQuestion& question,
                                        const machine::Machine& machine) {
  const auto prices = spmd::MeshPrices::make(machine, question.mesh, graph.element);
  if (!prices) {
    return fail(prices.error());
  }
  report::MeshRun run{.graph = std::move(graph),
                      .mesh = question.mesh,
                      .overlap = question.overlap,
                      .machine = machine.name,
                      .type = prices->type(),
                      .limit = question.limit};
  const auto begin = std::chrono::steady_clock::now();
  if (auto found = search(run, question, *prices); !found) {
    return fail(std::move(found.error()));
  }
  run.search_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto cost = spmd::replay(run.graph, run.solution.strategy, *prices);
  const auto program =
      spmd::program_of(run.graph, run.solution.strategy, *prices, question.overlap);
  if (!cost || !program) {
    return fail(cost ? program.error() : cost.error());
  }
  const auto timeline = simulate::simulate(*program, prices->machine());
  if (!timeline) {
    return fail(timeline.error());
  }
  run.cost = *cost;
  run.simulated = timeline->step_time;
  return run;
}

}  // namespace orrery::cli
