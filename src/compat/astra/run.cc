// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/run.h"

#include <fmt/format.h>

#include <array>
#include <numeric>
#include <type_traits>
#include <utility>

#include "compat/astra/check.h"
#include "compat/astra/fold.h"
#include "compat/astra/native_network.h"
#include "compat/astra/network.h"
#include "compat/astra/simulation.h"

namespace orrery::astra {
namespace {

constexpr std::size_t kNamedNodes = 8;
constexpr std::array<const char*, 10> kCollectiveNames{
    "all-reduce", "reduce",         "all-gather",           "gather", "scatter", "broadcast",
    "all-to-all", "reduce-scatter", "reduce-scatter-block", "barrier"};

/// Names the first nodes that wait for something that does not come.
template <class Network>
Error deadlock(const RunInput& input, const Population& population,
               const Simulation<Network>& simulation) {
  const ReadyNodes& nodes = simulation.programs().nodes();
  std::size_t ranks = 0;
  Error error;
  for (std::uint32_t rank = 0; rank < population.count(); ++rank) {
    if (nodes.finished(rank)) {
      continue;
    }
    ++ranks;
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
  Error all(fmt::format("deadlock: {} of {} ranks cannot finish", ranks, population.count()));
  all.add(std::move(error));
  return all;
}

template <class Network>
Error mismatch(const RunInput& input, const Population& population,
               const Simulation<Network>& simulation) {
  const auto& [one, other] = *simulation.mismatch();
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

template <class Network>
Network make_network(const Wires& wires, const RunOptions& options, const Population& population) {
  if constexpr (Network::kCombines) {
    return Network(*options.native, population.folded());
  } else {
    return Network(wires);
  }
}

template <class Network>
Result<RunResult> simulate(const RunInput& input, const RunOptions& options, const Wires& wires,
                           Communicators& communicators, Planner& planner,
                           std::vector<std::string> unfolded) {
  const Population population =
      options.fold && unfolded.empty() ? Population::one() : Population::all(input.traces.ranks());
  Simulation<Network> simulation(input, options, population, communicators, planner,
                                 make_network<Network>(wires, options, population));
  simulation.run();
  if (simulation.overflow()) {
    return fail("simulated time exceeds 106 days: expected smaller sizes or durations");
  }
  if (simulation.mismatch()) {
    return fail(mismatch(input, population, simulation));
  }
  if (simulation.programs().nodes().unfinished_nodes() > 0) {
    return fail(deadlock(input, population, simulation));
  }
  RunResult result;
  for (std::uint32_t rank = 0; rank < population.count(); ++rank) {
    result.classes.push_back(class_of(population.rank(rank), simulation.programs().finish(rank),
                                      simulation.programs().computed(rank)));
  }
  result.class_of.assign(static_cast<std::size_t>(input.traces.ranks()), 0);
  if (!population.folded()) {
    std::iota(result.class_of.begin(), result.class_of.end(), 0);
  }
  result.events = simulation.events();
  result.messages = simulation.messages();
  result.node_times = simulation.take_node_times();
  result.unfolded = std::move(unfolded);
  if constexpr (Network::kCombines) {
    result.use = simulation.network().use();
  }
  return result;
}

}  // namespace

Result<RunResult> run(const RunInput& input, const RunOptions& options) {
  const Wires wires(input.network);
  if (Error mistakes = check_input(input, options, wires); !mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  Communicators communicators(input.traces, wires, options.quirks);
  Planner planner(input.system, wires, options);
  if (Error mistakes = check_collectives(input, options, communicators, planner);
      !mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  std::vector<std::string> unfolded =
      reasons_against_folding(input, options, communicators, planner);
  const auto over = [&](auto network) {
    using Network = typename decltype(network)::type;
    return simulate<Network>(input, options, wires, communicators, planner, std::move(unfolded));
  };
  if (options.native && options.native->sharing == Sharing::fair) {
    return over(std::type_identity<NativeNetwork<FairNetwork>>{});
  }
  if (options.native) {
    return over(std::type_identity<NativeNetwork<FifoNetwork>>{});
  }
  return options.backend == Backend::aware ? over(std::type_identity<AwareNetwork>{})
                                           : over(std::type_identity<UnawareNetwork>{});
}

}  // namespace orrery::astra
