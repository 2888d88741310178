// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
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
constexpr double kPassesOn = 0.5;     ///< of its lateness, which its own waiting must explain
constexpr std::size_t kParts = 4;     ///< of the time, in most of which a rank at fault is late
constexpr double kShareInPart = 0.5;  ///< of its share in all
/// Another program may take so much of a rank's processor seconds, on a core that they share.
constexpr double kSharedCore = 2;

/// Computed is what a rank computed where it was last, and a quarter of the others at most.
struct Computed {
  Time own{0};
  Time usual{0};
};

/// Waiting is what lateness cost in a communicator.
struct Waiting {
  std::map<std::int64_t, Time> cost;                ///< by the rank that was last
  std::map<std::int64_t, Computed> computed;        ///< the same ranks, where that is known
  std::map<std::int64_t, Time> waited;              ///< by rank, for the last
  std::vector<std::pair<std::int64_t, Time>> each;  ///< the last and its cost, in their order
  Time total{0};
  Time by_clock{0};  ///< the same by entries, whatever was computed
  Time elapsed{0};
  Time busy{0};  ///< the most that was computed, and the shortest stay in an operation
  int operations = 0;
  std::vector<std::int64_t> late;  ///< who is at fault here, if that can be told

  /// Returns how long it would have lasted if no rank had lost its core; by entries alone, how
  /// long it did.
  Time lasted() const { return computed.empty() ? elapsed : busy; }
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
    const auto entry = [](const Operation* call) { return *call->ended - call->entered; };
    Waiting& at = waiting_[communicator];
    for (const Operation* call : calls) {
      const Time begin =
          begins_.try_emplace({communicator, call->rank}, call->entered).first->second;
      at.elapsed = std::max(at.elapsed, *call->ended - begin);
    }
    const Late by_clock = last_of(calls, entry);
    at.by_clock += by_clock.cost;
    if (!std::ranges::all_of(calls,
                             [](const Operation* call) { return call->computed.has_value(); })) {
      note(at, calls, by_clock, entry);
      return;
    }
    const auto computed = [](const Operation* call) { return *call->computed; };
    const Time most = computed(*std::ranges::max_element(calls, {}, computed));
    const auto less_than_most = [&](const Operation* call) { return most - computed(call); };
    at.busy += most + entry(by_clock.last);
    const Late late = last_of(calls, less_than_most);
    note(at, calls, late, less_than_most);
    std::vector<Time> others;
    for (const Operation* call : calls) {
      if (call != late.last) {
        others.push_back(computed(call));
      }
    }
    const auto quarter = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 4);
    std::ranges::nth_element(others, quarter);
    at.computed[late.last->rank].own += most;
    at.computed[late.last->rank].usual += *quarter;
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
  /// Late is who waits least, and what the others wait more.
  struct Late {
    const Operation* last = nullptr;
    Time cost{0};
  };

  template <class Wait>
  static Late last_of(const Calls& calls, const Wait& wait) {
    const Operation* last = *std::ranges::min_element(calls, {}, wait);
    std::vector<std::int64_t> others;
    for (const Operation* call : calls) {
      if (call != last) {
        others.push_back(wait(call).value());
      }
    }
    return {last, Time::from_double(median(std::move(others))) - wait(last)};
  }

  template <class Wait>
  static void note(Waiting& at, const Calls& calls, const Late& late, const Wait& wait) {
    for (const Operation* call : calls) {
      at.waited[call->rank] += wait(call) - wait(late.last);
    }
    at.cost[late.last->rank] += late.cost;
    at.each.emplace_back(late.last->rank, late.cost);
    at.total += late.cost;
    ++at.operations;
  }

  /// Says whether a rank is as late in most parts of the time: what passes is not the rank's.
  bool lasts(const Waiting& at, std::int64_t rank) const {
    std::array<Time, kParts> own{};
    std::array<Time, kParts> all{};
    for (std::size_t i = 0; i < at.each.size(); ++i) {
      const std::size_t part = i * kParts / at.each.size();
      all[part] += at.each[i].second;
      own[part] += at.each[i].first == rank ? at.each[i].second : Time(0);
    }
    const double share = kShareInPart * (at.cost.at(rank) / at.total);
    std::size_t parts = 0;
    for (std::size_t part = 0; part < kParts; ++part) {
      parts += own[part] > Time(0) && own[part] >= share * all[part] ? 1 : 0;
    }
    return parts + 1 >= kParts;
  }

  Time cost(std::size_t communicator, std::int64_t rank) const {
    const auto& costs = waiting_.at(communicator).cost;
    const auto at = costs.find(rank);
    return at == costs.end() ? Time(0) : at->second;
  }

  /// The fewest ranks that were last in most of the cost.
  void blame(std::size_t communicator, Waiting& at, Diagnosis& diagnosis) const {
    if (at.operations < kFewestOperations || at.by_clock < kShareOfTime * at.elapsed) {
      return;
    }
    if (at.total < kShareOfTime * at.lasted()) {
      diagnosis.undecided.push_back(fmt::format(
          "ranks of {} wait for each other {:.1f} % of the time, though none computes for longer: "
          "their hosts or their inputs are late",
          telemetry_.communicators[communicator].name, 100 * (at.by_clock / at.elapsed)));
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
    if (static_cast<double>(at.late.size()) > std::max(1.0, kShareOfRanks * ranks) ||
        !std::ranges::all_of(at.late, [&](std::int64_t rank) { return lasts(at, rank); })) {
      at.late.clear();
      diagnosis.undecided.push_back(fmt::format(
          "ranks of {} wait for each other {:.1f} % of the time, and take turns in being late",
          telemetry_.communicators[communicator].name, 100 * (at.total / at.lasted())));
    }
    std::erase_if(at.late, [&](std::int64_t rank) {
      const auto known = at.computed.find(rank);
      if (known == at.computed.end() || known->second.own >= kSharedCore * known->second.usual) {
        return false;
      }
      diagnosis.undecided.push_back(fmt::format(
          "rank {} computes {:.2f} times as long as others of {}: no more than another program on "
          "its core may cost it",
          rank, known->second.own / known->second.usual,
          telemetry_.communicators[communicator].name));
      return true;
    });
  }

  /// Follows a rank from the communicator in which it was late to the one in which it was kept
  /// waiting, and so on to a rank that was not.
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
                                100 * (lost / at.lasted()))});
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
