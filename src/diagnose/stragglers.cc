// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>
#include <set>

#include "base/format.h"
#include "diagnose/syndromes.h"

namespace orrery::diagnose {
namespace {

constexpr int kFewestOperations = 5;
constexpr double kShareOfCost = 0.8;
constexpr double kShareOfTime = 0.05;
constexpr double kShareOfRanks = 0.25;
constexpr double kPassesOn = 0.5;  ///< of its lateness, which its own waiting must explain

/// Waiting is what lateness cost in a communicator.
struct Waiting {
  std::map<std::int64_t, Time> cost;    ///< by the rank that was last
  std::map<std::int64_t, Time> waited;  ///< by rank, for the last
  Time total{0};
  Time elapsed{0};
  int operations = 0;
  std::vector<std::int64_t> late;  ///< who is at fault here, if that can be told
};

class Stragglers {
 public:
  explicit Stragglers(const Telemetry& telemetry) : telemetry_(telemetry) {}

  void add(std::size_t communicator, const Calls& calls) {
    if (calls.size() < 2 || calls.size() < telemetry_.communicators[communicator].ranks.size() ||
        !std::ranges::all_of(calls,
                             [](const Operation* call) { return call->ended.has_value(); })) {
      return;
    }
    const auto wait = [](const Operation* call) { return *call->ended - call->entered; };
    const Operation* last = *std::ranges::min_element(calls, {}, wait);
    std::vector<std::int64_t> others;
    Waiting& at = waiting_[communicator];
    for (const Operation* call : calls) {
      at.waited[call->rank] += wait(call) - wait(last);
      if (call != last) {
        others.push_back(wait(call).value());
      }
      const Time begin =
          begins_.try_emplace({communicator, call->rank}, call->entered).first->second;
      at.elapsed = std::max(at.elapsed, *call->ended - begin);
    }
    const Time cost = Time::from_double(median(std::move(others))) - wait(last);
    at.cost[last->rank] += cost;
    at.total += cost;
    ++at.operations;
  }

  void find(Diagnosis& diagnosis) {
    for (auto& [communicator, at] : waiting_) {
      blame(communicator, at, diagnosis);
    }
    std::map<std::int64_t, std::size_t> found;  // where it cost most, by rank
    for (const auto& [communicator, at] : waiting_) {
      for (const std::int64_t rank : at.late) {
        const auto cause = follow(communicator, rank);
        const auto [place, first] = found.try_emplace(cause.second, cause.first);
        if (!first && cost(cause.first, cause.second) > cost(place->second, cause.second)) {
          place->second = cause.first;
        }
      }
    }
    for (const auto& [rank, communicator] : found) {
      report(communicator, rank, diagnosis);
    }
  }

 private:
  Time cost(std::size_t communicator, std::int64_t rank) const {
    const auto& costs = waiting_.at(communicator).cost;
    const auto at = costs.find(rank);
    return at == costs.end() ? Time(0) : at->second;
  }

  /// The fewest ranks that were last in most of the cost.
  void blame(std::size_t communicator, Waiting& at, Diagnosis& diagnosis) const {
    if (at.operations < kFewestOperations || at.total < kShareOfTime * at.elapsed) {
      return;
    }
    std::vector<std::pair<Time, std::int64_t>> costs;
    costs.reserve(at.cost.size());
    for (const auto& [rank, cost] : at.cost) {
      costs.emplace_back(Time(0) - cost, rank);
    }
    std::ranges::sort(costs);
    Time sum{0};
    for (const auto& [cost, rank] : costs) {
      if (sum < kShareOfCost * at.total) {
        sum -= cost;
        at.late.push_back(rank);
      }
    }
    const auto ranks = static_cast<double>(at.waited.size());
    if (static_cast<double>(at.late.size()) > std::max(1.0, kShareOfRanks * ranks)) {
      at.late.clear();
      diagnosis.undecided.push_back(fmt::format(
          "ranks of {} wait for each other {:.1f} % of the time, and take turns in being late",
          telemetry_.communicators[communicator].name, 100 * (at.total / at.elapsed)));
    }
  }

  /// From the communicator in which a rank was late to the one in which it was kept waiting, and so
  /// on to who was not.
  std::pair<std::size_t, std::int64_t> follow(std::size_t communicator, std::int64_t rank) const {
    std::set<std::size_t> passed;
    for (bool more = true; more && passed.insert(communicator).second;) {
      more = false;
      const Time lateness = cost(communicator, rank);
      for (const auto& [other, at] : waiting_) {
        const auto waited = at.waited.find(rank);
        if (passed.contains(other) || waited == at.waited.end() || at.late.empty() ||
            std::ranges::find(at.late, rank) != at.late.end() ||
            waited->second < kPassesOn * lateness) {
          continue;
        }
        communicator = other;
        rank = at.late.front();
        more = true;
        break;
      }
    }
    return {communicator, rank};
  }

  void report(std::size_t communicator, std::int64_t rank, Diagnosis& diagnosis) const {
    const Waiting& at = waiting_.at(communicator);
    const Time lost = cost(communicator, rank);
    diagnosis.findings.push_back(
        {.syndrome = Syndrome::straggler,
         .ranks = {rank},
         .communicator = telemetry_.communicators[communicator].name,
         .sequence = {},
         .lost = lost,
         .sigmas = {},
         .because = fmt::format("it is the last to enter collectives of {}, the others wait {} "
                                "for it, {:.1f} % of the time",
                                telemetry_.communicators[communicator].name, to_string(lost),
                                100 * (lost / at.elapsed))});
  }

  const Telemetry& telemetry_;
  std::map<std::size_t, Waiting> waiting_;
  std::map<std::pair<std::size_t, std::int64_t>, Time> begins_;  ///< by communicator and rank
};

}  // namespace

void find_stragglers(const Telemetry& telemetry, const Collectives& collectives,
                     Diagnosis& diagnosis) {
  Stragglers stragglers(telemetry);
  for (const auto& [key, calls] : collectives) {
    if (!telemetry.communicators[key.first].pair) {  // who receives waits by design
      stragglers.add(key.first, calls);
    }
  }
  stragglers.find(diagnosis);
}

}  // namespace orrery::diagnose
