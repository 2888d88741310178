// SPDX-License-Identifier: Apache-2.0
// How near the values of the hundred best plans of a search are to their simulations: where a
// search looks, not at random plans. Each as it is, and times what the simulation of another plan
// of its family was above its value.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "../../planner/task.h"
#include "planner/full/search_state.h"

namespace orrery::full {
namespace {

using testing::Setting;

constexpr std::size_t kBest = 100;

/// A search ends when the best is known. With slower plans wanted it goes on with what it would
/// look at next.
void go_on(SearchState& search) {
  for (double slower = 1.02; slower < 1.5 && search.candidates.size() < kBest; slower += 0.02) {
    search.wanted = search.best() * slower;
    explore(search);
  }
}

struct Errors {
  std::vector<double> values;    ///< |value / simulated - 1|, ascending
  std::vector<double> expected;  ///< the same of values after what was learned
};

Errors errors_of(const Task& task) {
  const Options options{.top = 1000, .most_estimates = 1000, .most_simulations = 1000};
  Knowledge known;
  SearchState search(task, options, *Space::of(task), known.of(task, options));
  EXPECT_TRUE(open_groups(search));
  explore(search);
  go_on(search);
  std::ranges::stable_sort(search.candidates, {}, &Candidate::value);
  Errors errors;
  std::map<Family, double> ratios;
  for (std::size_t i = 0; i < std::min(kBest, search.candidates.size()); ++i) {
    const Candidate& candidate = search.candidates[i];
    if (const auto run = search.estimator.simulate(candidate.plan)) {
      const double ratio = run->score / candidate.value;
      const auto [seen, is_new] = ratios.try_emplace(family_of(candidate.plan), ratio);
      errors.values.push_back(std::abs(1 / ratio - 1));
      if (!is_new) {
        errors.expected.push_back(std::abs(seen->second / ratio - 1));
      }
    }
  }
  std::ranges::sort(errors.values);
  std::ranges::sort(errors.expected);
  return errors;
}

double share_within(const std::vector<double>& errors, double most) {
  const auto within = std::ranges::count_if(errors, [&](double error) { return error <= most; });
  return errors.empty() ? 1 : static_cast<double>(within) / static_cast<double>(errors.size());
}

class TopEstimates : public ::testing::TestWithParam<Setting> {};

TEST_P(TopEstimates, AreNear) {
  const Setting& searched = GetParam();
  const Errors errors = errors_of(testing::task(searched));
  ASSERT_GE(errors.values.size(), 20U);
  fmt::print(
      "{} on {} x {}: of {} values {:.0f} % within 3 %, 95 % within {:.2f} %, worst {:.2f} %; "
      "of {} with a like {:.0f} % within 2 %\n",
      searched.model, searched.machine, searched.devices, errors.values.size(),
      100 * share_within(errors.values, 0.03), 100 * errors.values[errors.values.size() * 95 / 100],
      100 * errors.values.back(), errors.expected.size(),
      100 * share_within(errors.expected, 0.02));
  EXPECT_GE(share_within(errors.values, 0.1), 0.9);
}

INSTANTIATE_TEST_SUITE_P(Settings, TopEstimates,
                         ::testing::Values(Setting{"gpt-7.5b", "dgx-a100-80g", 16, 64, 2048},
                                           Setting{"gpt2-medium", "dgx-a100-80g", 8, 32, 1024},
                                           Setting{"llama-3-8b", "dgx-h100", 8, 32, 4096},
                                           Setting{"deepseek-v2-lite", "dgx-h100", 8, 32, 2048},
                                           Setting{"mixtral-8x7b", "dgx-h100", 16, 32, 4096},
                                           Setting{"llama-3-70b", "dgx-h100", 32, 32, 4096},
                                           Setting{"llama-3-8b", "tpu-v4", 16, 32, 4096},
                                           Setting{"llama-2-13b", "l40s", 8, 16, 2048}),
                         [](const auto& param) { return fmt::format("n{}", param.index); });

}  // namespace
}  // namespace orrery::full
