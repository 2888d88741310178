// SPDX-License-Identifier: Apache-2.0
/// The fastest plan of a space, by branch and bound; or the best by another objective: then times
/// below are scores (objective.h).
///
///   1. of very many groups one plan that fits of every (tp, pp) is estimated at once, and the best
///      of them simulated; then every group gets a bound that no plan of it can beat: its kernels;
///      what its shapes exchange, when it is their turn, one of their own (estimate/quick_bound.h)
///   2. the most promising first: a shape whose most frugal variant has not memory enough is
///      dropped; of the others every variant gets its own bound and least memory; of those whose
///      memory (to the byte, workload/memory) fits the step is estimated (estimate/estimate.h), and
///      simulated where it is the most promising. Promising is a bound times what estimates of
///      plans like it were above theirs, and an estimate times what simulations were above theirs,
///      the least of them. Ends when the next is not below the best simulation by that
///   3. what is like the best plan is estimated and the best of it simulated, as long as that leads
///      to a better one: step 2 passes over plans whose like was slow. Single changes of other
///      fields are tried on the best of them
///   4. the bound of all plans is raised: the least ones by Interval::least, then by the simulation
///   5. fused communication is tried on the plans of the answer; where it is faster the plan takes
///      it. The space is that of plans without: bound and proof are theirs
///
/// What is certain: no plan of the space simulates faster than `bound`, since every plan of it was
/// simulated or has a bound (1, 2, 4) of at least that. `proved`: by bounds or simulations no plan
/// is faster by more than 1 % than the best one; `exhaustive` simulates every plan whose bound
/// alone leaves that open, and nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "planner/full/objective.h"
#include "planner/full/space.h"

namespace orrery::full {

/// A search has at most so many bounds of plans and shapes: some minutes, where bounds say little.
inline constexpr std::size_t kMostBounds = 400'000;

struct Options {
  std::size_t top = 5;  ///< plans in the answer
  std::size_t most_estimates = 1500;
  std::size_t most_simulations = 128;  ///< most of them where the bound of all plans ends
  std::size_t most_bounds = kMostBounds;
  int threads = 1;          ///< the same answer with any number (evaluations.h)
  bool exhaustive = false;  ///< bounds alone decide what is not estimated
  Bytes reserve{0};         ///< of the device's memory, not to be used
  Objective objective = Objective::time;
  /// Plans whose score is above the least by at most this share are as good: the simplest of them
  /// (unusual.h) is first. 0: the best is.
  double simple_within = 0;
  /// Called now and then; false: stop with what there is.
  std::function<bool()> go_on{};
};

/// Simulated is what a simulation says of a plan.
struct Simulated {
  Time step_time{0};
  Time score{0};  ///< what is minimised (objective.h); of objective time the step time
  /// Parts of the step of the rank that computes most; they sum to it.
  Time compute{0};  ///< kernels, but for the optimizer's
  Time exposed{0};  ///< communication and waits for the host, nothing computing
  Time bubble{0};   ///< pipeline fill and drain, waits for messages
  Time tail{0};     ///< the optimizer
  double mfu = 0;
  double tokens_per_s = 0;
  std::optional<Energy> energy;  ///< of a step; nothing: the machine states no power
  std::optional<Money> cost_per_million_tokens;
};

struct Found : Simulated {
  plan::Plan plan;
  std::optional<Time> unfused;  ///< step time without fused communication, if the plan has it
  Time estimate{0};             ///< Interval::value of its step time
  Bytes memory{0};              ///< of the fullest stage
};

/// Plans of the space, by what became of them. All of them add up to `all`.
struct Counts {
  std::uint64_t all = 0;        ///< of a search stopped before it looked at one: those counted
  std::uint64_t by_bound = 0;   ///< cannot be faster than the best
  std::uint64_t by_memory = 0;  ///< do not fit
  std::uint64_t by_family = 0;  ///< plans like them were not fast enough for it
  std::uint64_t invalid = 0;    ///< variants that check() refuses
  std::uint64_t estimated = 0;
  std::uint64_t left = 0;       ///< not looked at: a limit was reached
  std::uint64_t simulated = 0;  ///< of the estimated, and of plans like the best

  friend bool operator==(const Counts&, const Counts&) = default;
};

struct Answer {
  std::vector<Found> top;        ///< fastest first, but for a simpler one; empty: nothing fits
  std::optional<Found> fastest;  ///< where the first is a simpler plan
  Time bound{0};  ///< no plan of the space simulates with a lower score; 0: none is known
  bool proved = false;
  bool complete = false;  ///< no limit was reached
  bool stopped = false;   ///< by the user
  Counts counts;
  double estimate_error = 0;  ///< largest |estimate / simulated - 1| of the simulated plans
  /// The least memory that some plan needs, where nothing fits, and what that plan is.
  Bytes least_memory{0};
  plan::Plan frugal;
  Error missing;  ///< what that plan lacks
  double wall_s = 0;

  /// Says whether a search that has looked at everything found that nothing fits.
  bool fits_nowhere() const { return top.empty() && complete && !stopped; }
  /// Returns nothing where the search was stopped before all plans had a bound.
  std::optional<double> gap() const {
    return top.empty()        ? std::optional(0.0)
           : bound == Time(0) ? std::nullopt
                              : std::optional(top.front().score / bound - 1);
  }
};

/// Knowledge is what searches for one model and objective on one machine with one reserve share:
/// bounds, estimates and simulations of plans that several of them look at. Each answers as it
/// would alone.
class Knowledge {
 public:
  Knowledge();
  ~Knowledge();
  Knowledge(Knowledge&&) noexcept;
  Knowledge& operator=(Knowledge&&) noexcept;

  struct OfMachine;
  /// Returns the knowledge of the machine as the task's parts arrange it.
  OfMachine& of(const Task& task, const Options& options);

 private:
  std::map<std::string, std::unique_ptr<OfMachine>> by_parts_;
};

/// Mistakes: those of the space; no plan at all that the model and the devices allow.
Result<Answer> search(const Task& task, const Options& options, Knowledge& known);
Result<Answer> search(const Task& task, const Options& options);

}  // namespace orrery::full
