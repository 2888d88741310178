// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/run.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <numeric>
#include <utility>

#include "compat/astra/check.h"
#include "compat/astra/colours.h"
#include "compat/astra/fold.h"
#include "compat/astra/linked_network.h"
#include "compat/astra/network.h"
#include "compat/astra/simulation.h"

namespace orrery::astra {
namespace {

constexpr std::size_t kNamedNodes = 8;
constexpr std::array<const char*, 10> kCollectiveNames{
    "all-reduce", "reduce",         "all-gather",           "gather", "scatter", "broadcast",
    "all-to-all", "reduce-scatter", "reduce-scatter-block", "barrier"};

/// Names the first nodes that wait for something that does not come.
Error deadlock(const RunInput& input, const Population& population, const Simulation& simulation) {
  const ReadyNodes& nodes = simulation.programs().nodes();
  const std::vector<std::int64_t> stands_for = population.stands_for(input.traces.ranks());
  std::int64_t ranks = 0;
  Error error;
  for (std::uint32_t rank = 0; rank < population.count(); ++rank) {
    if (nodes.finished(rank)) {
      continue;
    }
    ranks += stands_for[rank];
    const chakra::Program& program = input.traces.program(population.rank(rank));
    for (std::uint32_t index : nodes.stuck(rank)) {
      if (error.mistakes.size() < kNamedNodes) {
        const chakra::Node& node = program.nodes[index];
        error.add({fmt::format("rank {}", population.rank(rank)), fmt::format("node {}", node.id),
                   "",
                   fmt::format("'{}' waits for partners that never come", program.name_of(node))});
      }
    }
  }
  Error all(fmt::format("deadlock: {} of {} ranks cannot finish", ranks, input.traces.ranks()));
  all.add(std::move(error));
  return all;
}

Error mismatch(const RunInput& input, const Population& population,
               const Collectives::Mismatch& found) {
  const auto& [one, other] = found;
  const auto describe = [&](const auto& issuer) {
    const chakra::Program& program = input.traces.program(population.rank(issuer.rank));
    const chakra::Node& node = program.nodes[issuer.node];
    return fmt::format("node {} '{}' of rank {} ({} of {} bytes)", node.id, program.name_of(node),
                       population.rank(issuer.rank),
                       kCollectiveNames[static_cast<std::size_t>(node.collective)],
                       node.size.value());
  };
  return Error(
      fmt::format("collectives that meet differ: {} and {}", describe(one), describe(other)));
}

RunResult::Class class_of(std::int64_t rank, Time finish, Time computed) {
  return {rank, finish, finish - computed};
}

struct Prepared {
  const RunInput& input;
  const RunOptions& options;
  const Wires& wires;
  Communicators& communicators;
  Planner& planner;
};

std::unique_ptr<Network> make_network(const Prepared& with, const Population& population) {
  if (on_links(with.options.backend)) {
    return linked_network(with.options.backend, with.input.network, with.options.wires);
  }
  if (with.options.backend == Backend::aware) {
    return std::make_unique<AwareNetwork>(with.wires, population.single());
  }
  return std::make_unique<Network>(with.wires);
}

Result<RunResult> simulate(const Prepared& with, const Population& population) {
  const RunInput& input = with.input;
  std::optional<Traffic> traffic;
  if (with.options.traffic) {
    traffic.emplace(with.wires, population.count());
  }
  const std::unique_ptr<Network> network = make_network(with, population);
  Simulation simulation(input, with.options, population, with.communicators, with.planner, *network,
                        traffic ? &*traffic : nullptr);
  simulation.run();
  if (simulation.overflow()) {
    return fail("simulated time exceeds 106 days: expected smaller sizes or durations");
  }
  if (const auto& found = simulation.mismatch(); found.has_value()) {
    return fail(mismatch(input, population, *found));
  }
  if (simulation.programs().nodes().unfinished_nodes() > 0) {
    return fail(deadlock(input, population, simulation));
  }
  RunResult result;
  for (std::uint32_t rank = 0; rank < population.count(); ++rank) {
    result.classes.push_back(class_of(population.rank(rank), simulation.programs().finish(rank),
                                      simulation.programs().computed(rank)));
  }
  result.events = simulation.events();
  result.messages = simulation.messages();
  result.node_times = simulation.take_node_times();
  if (traffic) {
    result.sent = std::move(traffic->sent());
    result.links = simulation.links();
  }
  return result;
}

Result<RunResult> run_unfolded(const Prepared& with, std::vector<std::string> reasons) {
  const std::int64_t ranks = with.input.traces.ranks();
  auto result = simulate(with, Population::all(with.communicators, ranks));
  if (result) {
    result->class_of.resize(static_cast<std::size_t>(ranks));
    std::iota(result->class_of.begin(), result->class_of.end(), 0);
    result->unfolded = std::move(reasons);
  }
  return result;
}

Result<RunResult> run_single(const Prepared& with) {
  auto result = simulate(with, Population::one(with.communicators));
  if (result) {
    result->class_of.assign(static_cast<std::size_t>(with.input.traces.ranks()), 0);
  }
  return result;
}

/// Runs the traces by colours; else rank by rank.
Result<RunResult> run_coloured(const Prepared& with, std::vector<std::string> reasons) {
  const std::vector<std::string> against = reasons_against_colours(with.input, with.options);
  if (!against.empty()) {
    reasons.insert(reasons.end(), against.begin(), against.end());
    return run_unfolded(with, std::move(reasons));
  }
  auto colours = colour_ranks(with.input, with.options, with.communicators, with.planner);
  if (!colours) {
    return run_unfolded(with, std::move(reasons));
  }
  Quotient quotient(with.input, with.communicators, std::move(*colours));
  auto result = simulate(with, Population::colours(with.communicators, quotient));
  if (result) {
    result->class_of = quotient.colour_of();
  }
  return result;
}

}  // namespace

Result<RunResult> run(const RunInput& input, const RunOptions& options) {
  const Wires wires(input.network, options.quirks[Quirk::first_dimension]);
  if (Error mistakes = check_input(input, options, wires); !mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  Communicators communicators(input.traces, wires, options.quirks);
  Planner planner(input.system, wires, options);
  if (Error mistakes = check_collectives(input, options, communicators, planner);
      !mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  const Prepared prepared{input, options, wires, communicators, planner};
  if (!options.fold) {
    return run_unfolded(prepared, {});
  }
  if (on_links(options.backend)) {
    return run_unfolded(prepared, {"links that messages of several ranks share"});
  }
  std::vector<std::string> reasons =
      reasons_against_folding(input, options, communicators, planner);
  return reasons.empty() ? run_single(prepared) : run_coloured(prepared, std::move(reasons));
}

}  // namespace orrery::astra
