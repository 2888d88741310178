// SPDX-License-Identifier: Apache-2.0
/// A job over months, stop by stop: run, stop, detect, diagnose, take a spare or wait or shrink,
/// restart from the last checkpoint, do the lost work again.
///
/// Between two stops nothing is random, so each stop is one step of arithmetic. Stops come at the
/// constant rate of the scenario times the share of nodes that are in the job, also while the job
/// is down (each begins detection, diagnosis and restart anew, and may take nodes). A checkpoint
/// that is not durable when the stop comes does not count. Copies in memory are lost with stops
/// that say so: the job goes back to the last multiple of storage_every intervals. A node that is
/// repaired becomes a spare; where the job runs with fewer nodes it joins at once, for which the
/// job restarts from a checkpoint that it takes then (no work is lost).
///
/// Ignores: wear (rates change with age), stops that look like progress (silent corruption), the
///          traffic of checkpoints beside the step's.
/// Source:  the mechanism of C4 (arXiv 2406.04594, section 3) and of Daly (2006).
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "goodput/scenario.h"

namespace orrery::goodput {

/// Says where the time of a job goes. The parts add up to the whole of it.
struct JobTime {
  Duration kept{0};        ///< work that no stop undid, at full speed
  Duration checkpoint{0};  ///< held by checkpoints
  Duration lost{0};        ///< work that was done again, or would have to be
  Duration detection{0};
  Duration diagnosis{0};
  Duration restart{0};
  Duration waiting{0};  ///< for a node to be repaired
  Duration slower{0};   ///< what fewer nodes took longer

  Duration total() const {
    return kept + checkpoint + lost + detection + diagnosis + restart + waiting + slower;
  }
  template <class V>
  static void fields(V&& visit) {
    visit("kept", &JobTime::kept, "work that no stop undid");
    visit("checkpoint", &JobTime::checkpoint, "held by checkpoints");
    visit("lost", &JobTime::lost, "work since the last checkpoint, done again");
    visit("detection", &JobTime::detection, "until the stop is noticed");
    visit("diagnosis", &JobTime::diagnosis, "until what failed is known and isolated");
    visit("restart", &JobTime::restart, "until the job runs again");
    visit("waiting", &JobTime::waiting, "for a node to be repaired");
    visit("slower", &JobTime::slower, "what fewer nodes took longer");
  }
};

struct JobRun {
  JobTime time;
  std::vector<std::int64_t> stops;  ///< by component
  std::int64_t checkpoints = 0;

  double goodput() const { return time.kept / time.total(); }
  std::int64_t all_stops() const;
};

/// Runs one life of the job: until `length` has passed, or until it has kept `work`, whichever is
/// first. Work in hand at the end counts as kept. The same seed gives the same run.
/// Requires: components, an interval above 0, `length` or `work` finite.
JobRun run_job(const Scenario& scenario, Duration length, Duration work, std::uint64_t seed);

/// Returns the value below which a share of `values` lie, between neighbours in proportion. It
/// sorts `values`.
double quantile(std::vector<double>& values, double share);

/// Many lives. `low` and `high`: 80 % of the lives lie between them.
struct Band {
  double mean = 0;
  double low = 0;
  double high = 0;
};
struct Lives {
  JobTime time;  ///< sums over all lives
  Band goodput;
  Band stops;
  Band days;  ///< of a life
  Band checkpoints;
  std::vector<double> stops_by_component;  ///< means
};

/// `seeds` lives, seeds 1 to `seeds`.
Lives run_lives(const Scenario& scenario, Duration length, Duration work, std::int64_t seeds);

}  // namespace orrery::goodput
