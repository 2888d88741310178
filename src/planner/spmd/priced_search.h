// SPDX-License-Identifier: Apache-2.0
/// Searches that give a byte of memory a price, of any search that minimises time + price * bytes.
///
/// For every price p
///
///   bound(p) = min over programs of (time + p * bytes) - p * limit
///
/// is at most the time of any program within the limit, as p * (bytes - limit) <= 0 for it
/// (Lagrangian duality). Programs that some price makes the best are the corners of the lower
/// convex hull of time against memory. From two of them on, the price at which both cost the same
/// is searched with: what is better there is a corner between them (Aneja and Nair, Management
/// Science 25, 1979), and where nothing is, bound(p) is the greatest of all prices.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/result.h"
#include "base/units.h"

namespace orrery::spmd {

/// A Priced program is what a search has found at a price.
template <class Solution>
struct Priced {
  Solution solution;
  Time time{0};  ///< without the price
  Bytes memory{0};
  Time bound{0};  ///< no program's time and priced memory are less
};

/// A Pricer answers a price in seconds a byte: Result<Priced<Solution>>. `rounding`: of its sums.
template <class Solution, class Pricer>
class PricedSearch {
 public:
  static constexpr double kLastPrice = 1e-6;  ///< 1000 s a GB: memory is all that counts

  PricedSearch(const Pricer& at, Time rounding) : at_(at), rounding_(rounding) {}

  /// Returns the fastest corner within the limit; its bound is that of every program within it.
  /// Mistakes: those of the pricer; a limit below what every program needs.
  Result<Priced<Solution>> within(Bytes limit) {
    auto above = at_(0);
    if (!above || above->memory <= limit) {
      return above;
    }
    auto found = at_(kLastPrice);
    if (!found) {
      return found;
    }
    if (found->memory > limit) {
      return fail(Error(Mistake{"--max-memory",
                                {},
                                to_string(limit),
                                fmt::format("at least about {}, which every program needs on a "
                                            "device",
                                            to_string(found->memory))}));
    }
    Time bound = std::max(above->bound, found->bound - price_of(kLastPrice, limit));
    constexpr int kMostPrices = 24;
    for (int i = 0; i < kMostPrices && above->time < found->time; ++i) {
      const double price = between(*above, *found);
      auto middle = at_(price);
      if (!middle) {
        return middle;
      }
      bound = std::max(bound, middle->bound - price_of(price, limit));
      if (!is_corner(*middle, *above, price)) {
        break;
      }
      (middle->memory <= limit ? *found : *above) = std::move(*middle);
    }
    found->bound = std::min(bound, found->time);
    return found;
  }

  /// Returns the corners, the fastest first, at most so many. The bound of the fastest is that of
  /// the time of every program.
  Result<std::vector<Priced<Solution>>> corners(std::size_t most) {
    std::vector<Priced<Solution>> points;
    for (const double price : {0.0, kLastPrice}) {
      auto end = at_(price);
      if (!end) {
        return fail(std::move(end.error()));
      }
      points.push_back(std::move(*end));
    }
    const Time bound = points.front().bound;
    // Of each pair of neighbours, until none has a corner between.
    for (std::size_t i = 0; i + 1 < points.size() && points.size() < most;) {
      const bool later_is_no_better = points[i].memory <= points[i + 1].memory;
      if (later_is_no_better || points[i].time >= points[i + 1].time) {
        points.erase(points.begin() + static_cast<std::ptrdiff_t>(later_is_no_better ? i + 1 : i));
        i -= i > 0 ? 1 : 0;
        continue;
      }
      const double price = between(points[i], points[i + 1]);
      auto middle = at_(price);
      if (!middle) {
        return fail(std::move(middle.error()));
      }
      if (is_corner(*middle, points[i], price)) {
        points.insert(points.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(*middle));
      } else {
        ++i;
      }
    }
    points.front().bound = std::min(bound, points.front().time);
    return points;
  }

 private:
  static Time price_of(double price, Bytes memory) {
    return from_seconds(price * static_cast<double>(memory.value()));
  }
  /// The price at which both cost the same.
  static double between(const Priced<Solution>& fast, const Priced<Solution>& small) {
    return to_seconds(small.time - fast.time) /
           static_cast<double>((fast.memory - small.memory).value());
  }
  bool is_corner(const Priced<Solution>& middle, const Priced<Solution>& end, double price) const {
    return middle.time + price_of(price, middle.memory) + rounding_ <
           end.time + price_of(price, end.memory);
  }

  const Pricer& at_;
  Time rounding_;
};

}  // namespace orrery::spmd
