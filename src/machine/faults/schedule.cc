// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <tuple>

#include "base/format.h"
#include "base/reader.h"
#include "machine/faults/faults.h"

namespace orrery::faults {
namespace {

constexpr double kGone = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostFaults = 2'000'000;  // more fill the memory

/// A place is at `value` from `from` until `to`.
struct Interval {
  Time from{0};
  Time to{0};
  double value = 1;
};
using PlaceKey = std::pair<bool, std::int64_t>;  // link, number

class Maker {
 public:
  Maker(const FaultPlan& plan, const Places& places) : plan_(plan), places_(places) {}

  Result<Schedule> make() {
    for (std::size_t f = 0; f < plan_.faults.size(); ++f) {
      add(plan_.faults[f], f);
    }
    if (plan_.recolour && places_.compute) {
      error_.add({{}, "recolour", "true", "false: only bare flows (`orrery flow`) are coloured"});
    }
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    Schedule schedule{.changes = {},
                      .reroute_after = plan_.reroute_after,
                      .recolour = plan_.recolour,
                      .losses = {}};
    for (auto& [key, intervals] : intervals_) {
      append(key, intervals, schedule.changes);
    }
    std::ranges::sort(schedule.changes, {}, [](const Change& change) {
      return std::tuple(change.at, change.link, change.place);
    });
    std::ranges::stable_sort(losses_, {}, &std::pair<Time, std::string>::first);
    for (auto& [at, text] : losses_) {
      schedule.losses.push_back(fmt::format("{} at {}", text, to_string(at)));
    }
    return schedule;
  }

 private:
  void add(const Fault& fault, std::size_t number) {
    if (fault.kind == FaultKind::straggler && !places_.compute) {
      refuse(fault, "kind", "straggler", "a link or a node: flows have no kernels");
      return;
    }
    if (fault.kind == FaultKind::link && !places_.no_links.empty()) {
      refuse(fault, "kind", "link", places_.no_links);
      return;
    }
    for (const std::string& name : fault.places) {
      if (fault.kind == FaultKind::link) {
        add_links(fault, name, number);
      } else {
        add_numbers(fault, name, number);
      }
    }
  }

  void add_links(const Fault& fault, const std::string& name, std::size_t number) {
    const std::vector<std::size_t> links = places_.links_named(name);
    if (links.empty()) {
      refuse(fault, "links", name,
             "links such as " + places_.link_example + ", with -- instead of -> both ways, or all");
      return;
    }
    draw(fault, number, links.front(), [&](const Interval& interval) {
      for (const std::size_t link : links) {
        intervals_[{true, static_cast<std::int64_t>(link)}].push_back(interval);
      }
      note(fault, interval, "link " + name);
    });
  }

  /// Ranks, or nodes.
  void add_numbers(const Fault& fault, const std::string& text, std::size_t number) {
    const bool nodes = fault.kind == FaultKind::node;
    const std::int64_t size = nodes ? places_.ranks_of_node : 1;
    const std::int64_t count = places_.ranks / size;
    const auto range = range_of(text, count);
    if (!range) {
      refuse(fault, nodes ? "nodes" : "ranks", text,
             fmt::format("a number below {}, a range such as 0-{}, or all", count, count - 1));
      return;
    }
    for (std::int64_t n = range->first; n <= range->second; ++n) {
      draw(fault, number, static_cast<std::size_t>(n), [&](const Interval& interval) {
        for (std::int64_t rank = n * size; rank < (n + 1) * size; ++rank) {
          break_rank(fault, rank, interval);
        }
        note(fault, interval, fmt::format("{} {}", nodes ? "node" : "rank", n));
      });
    }
  }

  void break_rank(const Fault& fault, std::int64_t rank, const Interval& interval) {
    if (places_.compute) {
      intervals_[{false, rank}].push_back(interval);
    }
    if (fault.kind != FaultKind::node || !places_.no_links.empty()) {
      return;
    }
    for (const std::size_t link : places_.links_of_rank(rank)) {
      intervals_[{true, static_cast<std::int64_t>(link)}].push_back(
          {interval.from, interval.to, 0});
    }
  }

  static std::optional<std::pair<std::int64_t, std::int64_t>> range_of(const std::string& text,
                                                                       std::int64_t count) {
    if (text == "all") {
      return std::pair<std::int64_t, std::int64_t>{0, count - 1};
    }
    const std::size_t dash = text.find('-', 1);
    const auto first = parse_integer(std::string_view(text).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : parse_integer(std::string_view(text).substr(dash + 1));
    if (!first || !last || *first < 0 || *first > *last || *last >= count) {
      return std::nullopt;
    }
    return std::pair{*first, *last};
  }

  /// Calls visit for every time that the fault strikes a place.
  template <class Visit>
  void draw(const Fault& fault, std::size_t number, std::size_t place, Visit visit) {
    const auto from = [&](Time at) {
      Interval interval{at, at + fault.lasts, fault.value};
      if (fault.kind == FaultKind::node) {
        interval.value = kGone;
      }
      return interval;
    };
    if (fault.mtbf_hours == 0) {
      visit(from(fault.at));
      return;
    }
    constexpr double kSecondsPerHour = 3600;
    std::seed_seq seeds{plan_.seed, static_cast<std::uint64_t>(number),
                        static_cast<std::uint64_t>(place)};
    std::mt19937_64 random(seeds);
    for (Time at{0}; drawn_ < kMostFaults; ++drawn_) {
      const double uniform = static_cast<double>(random() >> 11U) * 0x1p-53;  // [0, 1)
      at += from_seconds(-std::log1p(-uniform) * fault.mtbf_hours * kSecondsPerHour);
      if (at >= plan_.until) {
        return;
      }
      visit(from(at));
      at += fault.lasts;
    }
    error_ = Error(fmt::format("{}: more than {} faults until {}", fault.where, kMostFaults,
                               to_string(plan_.until)));
  }

  void note(const Fault& fault, const Interval& interval, const std::string& what) {
    const bool gone = fault.kind == FaultKind::node || fault.value == 0;
    if (gone && fault.lasts.is_overflow()) {
      losses_.emplace_back(interval.from, what + " is lost");
    }
  }

  void refuse(const Fault& fault, std::string field, std::string found, std::string expected) {
    error_.add({fault.where, std::move(field), std::move(found), std::move(expected)});
  }

  /// The place's value after every moment at which it may change.
  static void append(const PlaceKey& key, const std::vector<Interval>& intervals,
                     std::vector<Change>& changes) {
    std::multimap<Time, std::pair<bool, double>> edges;  // begins or ends, value
    for (const Interval& interval : intervals) {
      edges.emplace(interval.from, std::pair(true, interval.value));
      if (!interval.to.is_overflow()) {
        edges.emplace(interval.to, std::pair(false, interval.value));
      }
    }
    std::multiset<double> active;
    double before = 1;
    for (auto edge = edges.begin(); edge != edges.end();) {
      const Time at = edge->first;
      for (; edge != edges.end() && edge->first == at; ++edge) {
        const auto& [begins, value] = edge->second;
        if (begins) {
          active.insert(value);
        } else {
          active.erase(active.find(value));
        }
      }
      double now = 1;
      for (const double value : active) {
        now *= value;
      }
      if (now != before) {
        changes.push_back({at, key.first, key.second, now});
        before = now;
      }
    }
  }

  const FaultPlan& plan_;
  const Places& places_;
  std::map<PlaceKey, std::vector<Interval>> intervals_;
  std::vector<std::pair<Time, std::string>> losses_;
  std::size_t drawn_ = 0;
  Error error_;
};

}  // namespace

Result<Schedule> schedule_of(const FaultPlan& plan, const Places& places) {
  return Maker(plan, places).make();
}

}  // namespace orrery::faults
