// SPDX-License-Identifier: Apache-2.0
/// A SearchState is what the parts of a search share: explore.cc looks at plans, certify.cc
/// simulates the best.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "estimate/quick_bound.h"
#include "planner/full/evaluations.h"
#include "planner/full/frontier.h"
#include "planner/full/search.h"
#include "planner/full/space.h"

namespace orrery::full {

/// A gain that is worth no further search.
inline constexpr double kMargin = 0.01;

/// Bounds up to this share above the best plan are kept for the plans that the answer lacks.
inline constexpr double kKept = 0.05;

/// A plan that fits.
struct Candidate {
  plan::Plan plan;
  Time bound{0};
  Time value{0};     ///< score of its estimate
  Time estimate{0};  ///< of its step time
  Bytes memory{0};
  bool simulated = false;
};

/// OfMachine is the knowledge of one machine without the reserve.
struct Knowledge::OfMachine {
  OfMachine(const Task& of_task, const Options& options);
  OfMachine(const OfMachine&) = delete;  // members refer to others
  OfMachine& operator=(const OfMachine&) = delete;

  Task task;  ///< its model and machine count
  estimate::QuickBound bounds;
  Score score;
  Evaluations estimator;
};

struct SearchState {
  SearchState(const Task& of_task, const Options& with, Space of_space,
              Knowledge::OfMachine& known);
  SearchState(const SearchState&) = delete;
  SearchState& operator=(const SearchState&) = delete;

  Task task;
  Options options;
  Space space;
  std::vector<plan::Plan> groups;  ///< of the space
  estimate::QuickBound& bounds;
  const Score& score;
  Evaluations& estimator;
  Bytes capacity = Bytes::max();
  Frontier open;
  std::vector<Candidate> candidates;
  Error first_mistakes;       ///< of the first plan that is none
  Time wanted{0};             ///< below it plans are of interest, however fast the best is
  Time left = Time::max();    ///< least bound of what was not simulated
  std::size_t asked = 0;      ///< bounds, and memory to the byte for several
  bool warm_started = false;  ///< warm_start() has looked for candidates
  Time best_of_its_like{0};   ///< where local_search() has ended
  Answer answer;

  /// Returns the score of the best plan.
  Time best() const { return answer.top.empty() ? Time::max() / 4 : answer.top.front().score; }
  /// Returns a score: a plan whose score is below it is of interest.
  Time cutoff() const { return std::max(best(), wanted); }
  /// A bound below it stays open.
  Time kept_below() const { return std::max(best() * (1 + kKept), wanted); }
  /// Returns a bound: no plan whose bound is above it is faster than the best by more than the
  /// margin.
  Time sure() const { return best() / (1 + kMargin); }

  /// Returns whether the answer has as many plans as are asked for.
  bool has_enough() const { return answer.top.size() >= options.top; }
  bool stop();
  /// Returns whether so large a part of the bounds that the options allow has been asked for.
  bool spent(double part) const {
    return static_cast<double>(asked) >= part * static_cast<double>(options.most_bounds);
  }
  /// Returns the bound of a plan's score.
  Result<Time> least(const plan::Plan& plan) {
    ++asked;
    return score.least(plan);
  }
  /// Returns Evaluations::memory(), which costs as much as some bounds.
  std::pair<bool, Bytes> memory(const plan::Plan& plan);
  /// Returns whether the device has memory for some of these, of which one needs the least of all
  /// like them: by bounds, and to the byte where those come near. Else the most frugal is
  /// remembered.
  bool has_room(const std::vector<plan::Plan>& frugal);
  /// Returns the bound by the kernels and states of a group's plans; 0 where nothing is known,
  /// nothing where the devices have no room for any of them.
  std::optional<Time> least_of_group(const plan::Plan& group);
  /// Returns the same of a valid shape's group alone with what the shape exchanges.
  std::optional<Time> least_of_exchanges(const plan::Plan& shape);
  /// Returns the ways to hold parameters, gradients and states for which the devices have room, on
  /// the mean of the stages; of those that differ in states on the host alone the one with fewest
  /// there. Where there is none, it returns nothing, or the most frugal while no plan at all is
  /// known to fit.
  std::vector<plan::Plan> states_with_room(const plan::Plan& shape);
  /// Remembers the plan that needs the least memory, where nothing has been found to fit yet.
  void remember_frugal(const plan::Plan& plan);
  Candidate* candidate(const plan::Plan& plan);  ///< null: it is none
  /// Estimates a plan that fits, which becomes the last candidate. Null: it takes longer than Time
  /// can say.
  Candidate* estimate(const plan::Plan& plan, Time bound, Bytes memory);
  bool valid(const plan::Plan& plan);
  /// Returns whether the task's launcher can run it, too.
  bool runs(const plan::Plan& plan);
  /// Returns how many plans a group stands for: as many as others of its degrees, but for what a
  /// launcher or devices that differ decide.
  std::uint64_t count_of(const plan::Plan& group);
  /// Has threads look ahead before a question about one variant of `open` below `limit`: at the
  /// next such variants among those that `asks` selects.
  template <class Asks>
  void expect(Question question, Time limit, const Asks& asks) {
    std::vector<plan::Plan> plans;
    for (const Node* node : open.first(estimator.worthwhile(), limit)) {
      if (node->level == Level::variant && asks(*node)) {
        plans.push_back(node->plan);
      }
    }
    estimator.expect(question, plans);
  }

 private:
  /// Numbers of Space::variants_to_save().
  struct StateWays {
    std::vector<std::size_t> with_room{};
    std::size_t frugal = 0;  ///< holds least
  };
  StateWays ways_of(const std::vector<plan::Plan>& variants);
  /// Leaves exchanges that are valid with some of the states, and these.
  void drop_invalid(std::vector<plan::Plan>& exchanges, std::vector<plan::Plan>& states);
  /// Returns the bound by kernels of a plan with each of these exchanges and orders, and each way
  /// to hold its states.
  std::optional<Time> least_of(const plan::Plan& plain, std::vector<plan::Plan> exchanges,
                               const std::vector<std::string>& orders);

  std::map<std::array<std::int64_t, 4>, std::uint64_t> counts_;  ///< of groups, by tp, cp, pp, ep
  /// Holds ways by what decides them in a space without a launcher: degrees, whether gradients of
  /// several microbatches add up, whether a stage has two copies of parameters, whether a tied
  /// table has one.
  std::map<std::array<std::int64_t, 9>, StateWays> ways_;
};

/// Searches a machine of several sorts of devices: the best over its parts, each alone and
/// together, in every order in which ranks may fill them (of more than three parts: each alone, and
/// all as they are and backwards).
Result<Answer> search_device_groups(const Task& task, const Options& options, Knowledge& known);

/// Adds the answer of another part of the space. The fastest is first then.
void merge(Answer& all, Answer one, const Options& options);

/// Puts the simplest of the plans that are as good before the fastest, where Options::simple_within
/// asks for it. Requires plans in the order of their scores.
void put_simple_first(Answer& answer, const Options& options);

/// Returns the field of `only` each of whose values is a space of its own, framework or
/// data_parallel_update; "": none. search_each() searches each of them (search_rounds.cc).
std::string searched_apart(const Task& task);
Result<Answer> search_each(const Task& task, const std::string& field, const Options& options,
                           Knowledge& known);

/// Returns whether workers step alone and nobody says for how many steps; the search that says it
/// (search_rounds.cc).
bool leaves_rounds_open(const Task& task);
Result<Answer> search_rounds(const Task& task, const Options& options, Knowledge& known);

/// Opens every group with its bound. Mistakes: no plan at all.
Result<void> open_groups(SearchState& search);
/// Looks, in a space of very many groups for the bounds that the options allow, for a plan that
/// fits of each way to cut the model (tp, pp), from the group where kernels and the fill of the
/// pipeline take least; the most promising of them are simulated, and local_search() goes on from
/// the best. Best-first alone would split all groups first, as their bounds are much alike.
/// `anyway`: of any space; explore() asks so where what it has looked at for long does not fit.
void warm_start(SearchState& search, bool anyway = false);
/// Estimates what is promising, and simulates it, until nothing is.
void explore(SearchState& search);
/// Simulates what is like the best plan, and single changes; sums up what is certain.
void certify(SearchState& search);
/// Goes from the best simulated plan to better ones like it, in which one or two degrees, or the
/// schedule, exchange or saving of memory are others. Bounds and estimates choose, the simulation
/// decides; ends where no neighbour is better. What the expectations of explore() passed over is
/// found here.
void local_search(SearchState& search);
/// Looks, where the best plan has unusual means, for one with fewer: estimates plans of its degrees
/// with fewer, and simulates the simplest of all that may be within the options' share of it.
void simplify(SearchState& search);
/// Raises the bound of all plans: of those with the least bounds the memory and a tighter bound
/// (estimate/estimate.h), then the simulation, until no bound leaves a plan faster by more than the
/// margin. It takes as many bounds as the options allow estimates, and the simulations that are
/// left.
void raise_bounds(SearchState& search);

/// Returns whether the plan may fit, by bounds: with as many more of its layers recomputed as that
/// takes, where that is open.
bool may_fit_again(SearchState& search, plan::Plan& plan);
/// Gives it the fewest layers more with which it fits, to the byte; false: it does not with all.
bool recompute_enough(SearchState& search, plan::Plan& plan);
/// Returns the memory of the plan when it fits; of plans that recompute an open number of layers,
/// with the fewest that fit.
std::optional<Bytes> fit(SearchState& search, plan::Plan& plan);
/// Estimates, at most `left` times (counted down), the lightest ways to save memory with which a
/// variant fits and its bound stays below `limit`.
void estimate_lightest(SearchState& search, Savings& savings, Time limit, std::size_t& left);
/// Simulates a candidate, once, and puts it into the answer.
void simulate(SearchState& search, Candidate& candidate);
/// Simulates the most promising of the candidates from `first` on that may be the best, at most so
/// many.
void simulate_promising(SearchState& search, std::size_t first, std::size_t most);

}  // namespace orrery::full
