// SPDX-License-Identifier: Apache-2.0
#include "cli/spmd_search.h"

#include <algorithm>
#include <chrono>

#include "planner/spmd/machine_prices.h"
#include "planner/spmd/program.h"
#include "simulate/simulate.h"

namespace orrery::cli {
namespace {

/// The strategy, its memory and what the search says of it.
Result<void> find_strategy(report::SpmdRun& run, const spmd::Prices& prices) {
  const spmd::SearchOptions options{.allowed = run.fixed ? spmd::restriction(*run.fixed)
                                                         : spmd::Restriction()};
  spmd::Solution solution;
  const auto begin = std::chrono::steady_clock::now();
  if (run.limit) {
    auto found = spmd::search_within(run.graph, prices, run.devices, *run.limit, options);
    if (!found) {
      return fail(std::move(found.error()));
    }
    run.bound = found->bound;
    solution = std::move(found->solution);
  } else {
    auto found = spmd::search(run.graph, prices, options);
    if (!found) {
      return fail(std::move(found.error()));
    }
    solution = std::move(*found);
  }
  run.search_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  run.strategy = std::move(solution.strategy);
  run.counts = solution.counts;
  return {};
}

/// Returns the strategy's time on the simulator, where the cost is that of a machine.
Result<std::optional<Time>> simulated(const report::SpmdRun& run, const spmd::Strategy& strategy,
                                      const spmd::Prices& prices) {
  const auto* const own = dynamic_cast<const spmd::MachinePrices*>(&prices);
  if (own == nullptr) {
    return std::optional<Time>();
  }
  auto program = spmd::program_of(run.graph, strategy, *own);
  if (!program) {
    return fail(std::move(program.error()));
  }
  const auto timeline = simulate::simulate(*program, own->machine());
  return timeline ? Result<std::optional<Time>>(timeline->step_time) : fail(timeline.error());
}

Result<void> cost_strategy(report::SpmdRun& run, const spmd::Prices& prices) {
  auto found = spmd::replay(run.graph, run.strategy, prices);
  if (!found) {
    return fail(std::move(found.error()));
  }
  run.strategy_cost = std::move(*found);
  run.memory = spmd::memory_of(run.graph, run.strategy, run.devices);
  auto time = simulated(run, run.strategy, prices);
  if (!time) {
    return fail(std::move(time.error()));
  }
  run.simulated = *time;
  for (const auto& row : kNames<spmd::FixedStrategy>) {
    const auto found = spmd::search(run.graph, prices, {.allowed = spmd::restriction(row.value)});
    report::SpmdRun::Other& other = run.others.emplace_back();
    other.strategy = row.value;
    if (!found) {
      continue;
    }
    other.time = found->total;
    if (auto other_time = simulated(run, found->strategy, prices)) {
      other.simulated = *other_time;
    }
  }
  return {};
}

}  // namespace

Result<void> solve_spmd(report::SpmdRun& run, const spmd::Prices& prices) {
  if (!run.given) {
    if (auto found = find_strategy(run, prices); !found) {
      return found;
    }
  }
  return cost_strategy(run, prices);
}

Result<void> solve_noisy_spmd(report::SpmdRun& run, const spmd::Prices& truth,
                              const std::string& profile_name, const spmd::Noise& noise) {
  const auto profile = spmd::load_profile(profile_name);
  if (!profile) {
    return fail(profile.error());
  }
  spmd::NoisyInputs noisy = spmd::with_noise(run.graph, *profile, noise);
  const spmd::OperatorGraph graph = std::move(run.graph);
  run.graph = std::move(noisy.graph);
  const auto found = find_strategy(
      run, spmd::PublishedPrices({run.devices, std::move(noisy.profile), run.overlap}));
  run.graph = graph;
  return found ? cost_strategy(run, truth) : found;
}

Result<void> solve_mixed_spmd(report::SpmdRun& run) {
  const auto options_of = [](std::optional<spmd::FixedStrategy> kind) {
    return spmd::SearchOptions{.allowed = kind ? spmd::restriction(*kind) : spmd::Restriction()};
  };
  const auto begin = std::chrono::steady_clock::now();
  auto found = spmd::search_mixed(run.graph, *run.mixed, options_of(run.fixed));
  if (!found) {
    return fail(std::move(found.error()));
  }
  run.search_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  run.strategy = std::move(found->solution.strategy);
  run.counts = found->solution.counts;
  run.shares = std::move(found->shares);
  auto cost = spmd::replay(run.graph, run.strategy, spmd::MixedPrices(*run.mixed, run.shares));
  if (!cost) {
    return fail(std::move(cost.error()));
  }
  run.strategy_cost = std::move(*cost);
  // Of the largest share: as on so many equal devices, rounded down.
  constexpr double kWhole = 1e-9;
  const double most = *std::max_element(run.shares.begin(), run.shares.end());
  run.memory =
      spmd::memory_of(run.graph, run.strategy, static_cast<std::int64_t>(1 / most + kWhole));
  for (const auto& row : kNames<spmd::FixedStrategy>) {
    const auto other = spmd::search_mixed(run.graph, *run.mixed, options_of(row.value));
    run.others.push_back(
        {row.value, other ? std::optional(other->solution.total) : std::optional<Time>(), {}});
  }
  return {};
}

Result<void> add_spmd_frontier(report::SpmdRun& run, const spmd::Prices& prices) {
  auto frontier = spmd::memory_frontier(
      run.graph, prices, run.devices,
      {.allowed = run.fixed ? spmd::restriction(*run.fixed) : spmd::Restriction()});
  if (!frontier) {
    return fail(std::move(frontier.error()));
  }
  run.frontier = std::move(*frontier);
  return {};
}

}  // namespace orrery::cli
