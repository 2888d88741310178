// SPDX-License-Identifier: Apache-2.0
#include "calibrate/minimize.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>

namespace orrery::calibrate {
namespace {

/// Coordinates in units of the box, 0 to 1.
using Place = std::vector<double>;

constexpr std::size_t kMembersPerDimension = 8;
constexpr double kDifferentialWeight = 0.7;
constexpr double kCrossover = 0.8;
constexpr double kSimplexEdge = 0.1;
constexpr int kStepsPerDimension = 120;
constexpr int kMostRestarts = 8;
constexpr double kLeastGain = 1e-3;

/// SplitMix64 (Steele, Lea & Flood 2014): the same numbers on every platform.
class Random {
 public:
  double uniform() { return static_cast<double>(next() >> 11U) * 0x1p-53; }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }

 private:
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }
  std::uint64_t state_ = 20210404;  // any fixed number
};

struct Member {
  Place point;
  double loss = 0;
};

class Minimizer {
 public:
  Minimizer(const Loss& loss, std::span<const Bounds> box) : loss_(loss), box_(box) {}

  Minimum run(std::span<const double> start, int generations) {
    Member best = evolve(evaluated(to_unit(start)), generations);
    for (int restart = 0; restart < kMostRestarts; ++restart) {
      Member lower = descend(best);
      const bool gained = lower.loss < best.loss * (1 - kLeastGain);
      best = std::min(best, lower, by_loss);
      if (!gained) {
        break;
      }
    }
    return {from_unit(best.point), best.loss};
  }

 private:
  static bool by_loss(const Member& a, const Member& b) { return a.loss < b.loss; }

  Place to_unit(std::span<const double> values) const {
    Place point(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      point[i] = std::clamp((values[i] - box_[i].low) / (box_[i].high - box_[i].low), 0.0, 1.0);
    }
    return point;
  }

  std::vector<double> from_unit(const Place& point) const {
    std::vector<double> values(point.size());
    for (std::size_t i = 0; i < point.size(); ++i) {
      values[i] = box_[i].low + point[i] * (box_[i].high - box_[i].low);
    }
    return values;
  }

  Member evaluated(Place point) const {
    for (double& coordinate : point) {
      coordinate = std::clamp(coordinate, 0.0, 1.0);
    }
    const double loss = loss_(from_unit(point));
    return {std::move(point), loss};
  }

  /// Each member is challenged by a + F (b - c) of three others, mixed with itself.
  Member evolve(Member start, int generations) {
    const std::size_t dimensions = box_.size();
    const std::size_t members = std::max<std::size_t>(4, kMembersPerDimension * dimensions);
    std::vector<Member> population{std::move(start)};
    while (population.size() < members) {
      Place point(dimensions);
      std::generate(point.begin(), point.end(), [&] { return random_.uniform(); });
      population.push_back(evaluated(std::move(point)));
    }
    for (int generation = 0; generation < generations; ++generation) {
      for (Member& member : population) {
        Member challenger = evaluated(crossed(member, population));
        member = std::min(member, challenger, by_loss);
      }
    }
    return *std::min_element(population.begin(), population.end(), by_loss);
  }

  Place crossed(const Member& member, const std::vector<Member>& population) {
    const auto other = [&]() -> const Place& {
      return population[random_.below(population.size())].point;
    };
    const Place &a = other(), &b = other(), &c = other();
    Place point = member.point;
    const std::size_t always = random_.below(point.size());
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (random_.uniform() < kCrossover || i == always) {
        point[i] = a[i] + kDifferentialWeight * (b[i] - c[i]);
      }
    }
    return point;
  }

  /// One run of the simplex method from an edge-aligned simplex at `start`.
  Member descend(const Member& start) const {
    std::vector<Member> simplex{start};
    for (std::size_t i = 0; i < start.point.size(); ++i) {
      Place corner = start.point;
      corner[i] += corner[i] > 0.5 ? -kSimplexEdge : kSimplexEdge;
      simplex.push_back(evaluated(std::move(corner)));
    }
    const int steps = kStepsPerDimension * static_cast<int>(start.point.size());
    for (int step = 0; step < steps; ++step) {
      std::stable_sort(simplex.begin(), simplex.end(), by_loss);
      improve(simplex);
    }
    return *std::min_element(simplex.begin(), simplex.end(), by_loss);
  }

  /// Reflects the worst corner through the others' centre; then expands, contracts or shrinks.
  void improve(std::vector<Member>& simplex) const {
    Member& worst = simplex.back();
    const Place centre = centre_of(simplex);
    const auto beyond = [&](double factor) {
      Place point = centre;
      for (std::size_t i = 0; i < point.size(); ++i) {
        point[i] += factor * (centre[i] - worst.point[i]);
      }
      return evaluated(std::move(point));
    };
    Member reflected = beyond(1);
    if (reflected.loss < simplex.front().loss) {
      worst = std::min(beyond(2), reflected, by_loss);
    } else if (reflected.loss < simplex[simplex.size() - 2].loss) {
      worst = std::move(reflected);
    } else if (Member contracted = beyond(reflected.loss < worst.loss ? 0.5 : -0.5);
               contracted.loss < std::min(worst.loss, reflected.loss)) {
      worst = std::move(contracted);
    } else {
      shrink(simplex);
    }
  }

  static Place centre_of(const std::vector<Member>& simplex) {
    Place centre(simplex.front().point.size());
    for (std::size_t m = 0; m + 1 < simplex.size(); ++m) {
      for (std::size_t i = 0; i < centre.size(); ++i) {
        centre[i] += simplex[m].point[i] / static_cast<double>(simplex.size() - 1);
      }
    }
    return centre;
  }

  void shrink(std::vector<Member>& simplex) const {
    const Place best = simplex.front().point;
    for (std::size_t m = 1; m < simplex.size(); ++m) {
      Place point = simplex[m].point;
      for (std::size_t i = 0; i < point.size(); ++i) {
        point[i] = best[i] + 0.5 * (point[i] - best[i]);
      }
      simplex[m] = evaluated(std::move(point));
    }
  }

  const Loss& loss_;
  std::span<const Bounds> box_;
  Random random_;
};

}  // namespace

double rounded(double value, int digits) {
  const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(std::abs(value))));
  return std::isfinite(scale) ? std::round(value * scale) / scale : value;
}

Minimum minimize(const Loss& loss, std::span<const Bounds> box, std::span<const double> start,
                 int generations) {
  assert(!box.empty() && box.size() == start.size() && "a start inside the box");
  return Minimizer(loss, box).run(start, generations);
}

}  // namespace orrery::calibrate
