// SPDX-License-Identifier: Apache-2.0
#include "goodput/job_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <random>

namespace orrery::goodput {
namespace {

constexpr Duration kNever{std::numeric_limits<double>::infinity()};

/// Draws from a named seed: the same numbers with every library.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  /// Draws a number in (0, 1].
  double uniform() { return static_cast<double>((random_() >> 11) + 1) * 0x1p-53; }
  Duration exponential(Duration mean) { return mean * -std::log(uniform()); }

 private:
  std::mt19937_64 random_;
};

class Life {
 public:
  Life(const Scenario& scenario, Duration length, Duration work, std::uint64_t seed)
      : scenario_(scenario),
        interval_(scenario.interval()),
        mtbf_(mtbf_of(scenario.stops())),
        length_(length),
        work_(work),
        draws_(seed) {
    for (const StopKind& kind : scenario.stops()) {
      cumulative_.push_back((cumulative_.empty() ? 0 : cumulative_.back()) + mtbf_ / kind.mtbf);
    }
    run_.stops.assign(cumulative_.size(), 0);
    spares_ = scenario.spares;
  }

  JobRun run() {
    while (now_ < length_ && run_.time.kept < work_) {
      const Duration stop = now_ + next_stop();
      // A node that comes back to a job that runs without it ends the era as a stop does.
      const Duration back = missing_ > 0 && !repairs_.empty() ? repairs_.top() : kNever;
      if (back < stop && back < length_) {
        work_until(back, Ends::with_checkpoint);
        return_nodes();
        if (!pass(last_->restart, run_.time.restart)) {
          recover();
        }
      } else if (stop < length_) {
        if (work_until(stop, Ends::with_stop)) {
          break;
        }
        recover();
      } else {
        work_until(length_, Ends::with_life);
      }
    }
    return run_;
  }

 private:
  enum class Ends : std::uint8_t { with_stop, with_checkpoint, with_life };

  double share_left() const {
    return 1 - static_cast<double>(missing_) / static_cast<double>(scenario_.nodes());
  }
  Duration next_stop() { return draws_.exponential(mtbf_ / std::max(share_left(), 1e-9)); }

  double speed() const {
    if (missing_ == 0) {
      return 1;
    }
    const double one_less = scenario_.shrunk_speed > 0
                                ? scenario_.shrunk_speed
                                : 1 - 1 / static_cast<double>(scenario_.nodes());
    return std::max(0.0, 1 - static_cast<double>(missing_) * (1 - one_less));
  }

  /// Works from a durable state until `end`; returns true where the work is done before. Segments
  /// of tau + delta.
  bool work_until(Duration end, Ends ends) {
    const Duration delta = scenario_.checkpoint.cost.holds;
    const Duration segment = interval_ + delta;
    const double speed = this->speed();
    Duration span = std::max(end - now_, Duration(0));
    const bool done = finishes(span, segment, speed);
    if (done) {
      ends = Ends::with_life;
    }
    const double segments = std::floor(span / segment);
    const Duration rest = span - segment * segments;
    const Duration worked = interval_ * segments + std::min(rest, interval_);
    Duration durable = worked;
    if (ends == Ends::with_stop) {
      const Duration ready = span - scenario_.checkpoint.cost.persists;
      durable = interval_ * std::max(0.0, std::floor(ready / segment));
      durable = Duration(std::min(durable.value(), worked.value()));
    }
    run_.checkpoints += static_cast<std::int64_t>(segments);
    run_.time.checkpoint += span - worked;
    run_.time.lost += worked - durable;
    run_.time.kept += durable * speed;
    run_.time.slower += durable * (1 - speed);
    now_ += span;
    return done;
  }

  /// Shortens `span` to where the rest of the work ends, if it does within it.
  bool finishes(Duration& span, Duration segment, double speed) const {
    if (work_ == kNever || speed <= 0) {
      return false;
    }
    const Duration rest = (work_ - run_.time.kept) / speed;
    const Duration needed = rest + (segment - interval_) * std::floor(rest / interval_);
    if (needed > span) {
      return false;
    }
    span = needed;
    return true;
  }

  /// Recovers from a stop until the job runs again. Further stops may come meanwhile.
  void recover() {
    for (bool up = false; !up;) {
      strike();
      up = true;
      for (const Phase phase : {Phase{last_->detection, &JobTime::detection},
                                Phase{last_->diagnosis, &JobTime::diagnosis}}) {
        up = up && pass(phase.length, run_.time.*phase.into);
      }
      up = up && take_nodes() && pass(last_->restart, run_.time.restart);
      if (now_ >= length_) {
        return;
      }
    }
  }

  struct Phase {
    Duration length;
    Duration JobTime::*into;
  };

  /// One stop: which component, what it takes with it.
  void strike() {
    const double drawn = draws_.uniform() * cumulative_.back();
    const auto at = std::lower_bound(cumulative_.begin(), cumulative_.end(), drawn);
    const auto index =
        std::min(static_cast<std::size_t>(at - cumulative_.begin()), cumulative_.size() - 1);
    last_ = &scenario_.components[index];
    ++run_.stops[index];
    if (!last_->survives_in_memory && scenario_.checkpoint.storage_every > 1) {
      fall_back_to_storage();
    }
    if (spares_ >= 0) {
      for (std::int64_t node = 0; node < last_->nodes; ++node) {
        repairs_.push(now_ + scenario_.repair);
      }
      needed_ += last_->nodes;
    }
  }

  void fall_back_to_storage() {
    const Duration step = interval_ * static_cast<double>(scenario_.checkpoint.storage_every);
    const Duration stored = step * std::floor(run_.time.kept / step);
    run_.time.lost += run_.time.kept - stored;
    run_.time.kept = stored;
  }

  /// Puts spares, and nodes that are repaired, in the place of those that are gone. Waits for more,
  /// or goes on without. False where a stop comes while it waits.
  bool take_nodes() {
    return_nodes();
    use_spares();
    while (needed_ > 0 && now_ < length_) {
      if (scenario_.without_spare == WithoutSpare::shrink &&
          missing_ + needed_ < scenario_.nodes()) {
        missing_ += needed_;
        needed_ = 0;
        return true;
      }
      if (!pass(repairs_.top() - now_, run_.time.waiting)) {
        return false;
      }
      return_nodes();
      use_spares();
    }
    return true;
  }

  void use_spares() {
    const std::int64_t used = std::min(needed_, std::max<std::int64_t>(spares_, 0));
    needed_ -= used;
    spares_ -= used;
  }

  /// Nodes whose repair is over: into the job where it misses some, else to the spares.
  void return_nodes() {
    while (!repairs_.empty() && repairs_.top() <= now_) {
      repairs_.pop();
      missing_ > 0 ? --missing_ : ++spares_;
    }
  }

  /// Lets time pass while the job is down. False where a stop comes first: then until that.
  bool pass(Duration length, Duration& into) {
    const Duration stop = next_stop();
    const Duration until = std::min(std::min(length, stop), std::max(length_ - now_, Duration(0)));
    into += until;
    now_ += until;
    return stop >= length;
  }

  const Scenario& scenario_;
  Duration interval_;
  Duration mtbf_;
  Duration length_;
  Duration work_;
  Draws draws_;
  std::vector<double> cumulative_;  ///< shares of stops, by component
  JobRun run_;
  Duration now_{0};
  std::int64_t spares_ = -1;
  std::int64_t missing_ = 0;  ///< nodes that the job runs without
  std::int64_t needed_ = 0;   ///< nodes that the job waits for
  const Component* last_ = &scenario_.components.front();
  std::priority_queue<Duration, std::vector<Duration>, std::greater<>> repairs_;
};

Band band_of(std::vector<double> values) {
  Band band;
  band.mean = std::accumulate(values.begin(), values.end(), 0.0) /
              static_cast<double>(std::max<std::size_t>(values.size(), 1));
  band.low = quantile(values, 0.1);
  band.high = quantile(values, 0.9);
  return band;
}

}  // namespace

std::int64_t JobRun::all_stops() const {
  return std::accumulate(stops.begin(), stops.end(), std::int64_t{0});
}

JobRun run_job(const Scenario& scenario, Duration length, Duration work, std::uint64_t seed) {
  return Life(scenario, length, work, seed).run();
}

double quantile(std::vector<double>& values, double share) {
  if (values.empty()) {
    return 0;
  }
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

Lives run_lives(const Scenario& scenario, Duration length, Duration work, std::int64_t seeds) {
  constexpr double kSecondsPerDay = 86400;
  Lives lives;
  lives.stops_by_component.assign(scenario.components.size(), 0);
  std::vector<double> goodput, stops, days, checkpoints;
  for (std::int64_t seed = 1; seed <= seeds; ++seed) {
    const JobRun run = run_job(scenario, length, work, static_cast<std::uint64_t>(seed));
    JobTime::fields([&](std::string_view, auto member, std::string_view) {
      lives.time.*member += run.time.*member;
    });
    goodput.push_back(run.goodput());
    stops.push_back(static_cast<double>(run.all_stops()));
    days.push_back(run.time.total().value() / kSecondsPerDay);
    checkpoints.push_back(static_cast<double>(run.checkpoints));
    for (std::size_t i = 0; i < run.stops.size(); ++i) {
      lives.stops_by_component[i] += static_cast<double>(run.stops[i]) / static_cast<double>(seeds);
    }
  }
  lives.goodput = band_of(std::move(goodput));
  lives.stops = band_of(std::move(stops));
  lives.days = band_of(std::move(days));
  lives.checkpoints = band_of(std::move(checkpoints));
  return lives;
}

}  // namespace orrery::goodput
