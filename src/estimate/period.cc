// SPDX-License-Identifier: Apache-2.0
#include "estimate/period.h"

#include <algorithm>
#include <utility>

namespace orrery::estimate {
namespace {

template <class Spans>
bool all_later(const Spans& before, const Spans& now, Time later) {
  return std::equal(before.begin(), before.end(), now.begin(), now.end(),
                    [&](const auto& a, const auto& b) {
                      return b.begin - a.begin == later && b.end - a.end == later;
                    });
}

Time lateness(const StageMark& before, const StageMark& now) {
  return now.clocks[kCompute] - before.clocks[kCompute];
}

bool same(const StageMark& before, const StageMark& now, Time later, bool contends) {
  if (before.behind != now.behind || lateness(before, now) != later) {
    return false;
  }
  for (std::size_t clock = 0; clock < now.clocks.size(); ++clock) {
    if (now.clocks[clock] - before.clocks[clock] > later) {
      return false;
    }
  }
  const auto later_by_that = [&](const std::vector<Time>& one, const std::vector<Time>& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [&](Time a, Time b) { return b - a == later; });
  };
  return std::equal(before.arrivals.begin(), before.arrivals.end(), now.arrivals.begin(),
                    later_by_that) &&
         later_by_that(before.ahead, now.ahead) && all_later(before.beside, now.beside, later) &&
         all_later(before.flights, now.flights, later) &&
         (!contends || all_later(before.windows, now.windows, later));
}

}  // namespace

std::optional<Mark> mark_of(std::vector<Stage>& stages) {
  Mark mark;
  mark.reserve(stages.size());
  for (Stage& stage : stages) {
    if (stage.running) {
      return std::nullopt;
    }
    stage.beside.forget(stage.clocks[kCompute]);
    stage.settle();
    StageMark& one = mark.emplace_back();
    one.behind = stage.limit - stage.next;
    one.clocks = stage.clocks;
    for (std::size_t flow = 0; flow < one.arrivals.size(); ++flow) {
      stage.inbox[flow].compact();
      one.arrivals[flow] = stage.inbox[flow].arrivals;
    }
    one.beside = stage.beside.all();
    one.flights = stage.ports.flights();
    one.ahead = stage.next_run.ends_ahead(stage.clocks[kCompute]);
    one.windows = stage.windows;
    one.time = stage.time;
  }
  return mark;
}

std::optional<Time> shift(const Mark& before, const Mark& now, bool contends) {
  const Time later = lateness(before.front(), now.front());
  for (std::size_t s = 0; s < now.size(); ++s) {
    if (!same(before[s], now[s], later, contends)) {
      return std::nullopt;
    }
  }
  return later;
}

void RoundMarks::add(Mark mark) {
  marks_.push_back(std::move(mark));
  if (marks_.size() > kRemembered) {
    marks_.pop_front();
  }
}

std::int64_t RoundMarks::length(bool contends) const {
  for (std::int64_t rounds = 1; rounds <= most_back(); ++rounds) {
    if (shift(back(rounds), back(0), contends)) {
      return rounds;
    }
  }
  return 0;
}

bool next_alike(const PreparedPlan& plan, const std::vector<Stage>& stages,
                std::int64_t instances) {
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const std::int64_t here = stages[s].next;
    const std::int64_t there = here + instances;
    const bool begins = !plan.ahead(s, here).empty() || !plan.ahead(s, there).empty();
    if (begins && (there >= std::ssize(plan.lists.templates[s]) ||
                   plan.template_of(s, here) != plan.template_of(s, there))) {
      return false;
    }
  }
  return true;
}

namespace {

template <class Times>
void move_on(std::vector<Stage>& stages, const Period& period, Times times,
             std::int64_t instances) {
  for (std::size_t s = 0; s < stages.size(); ++s) {
    Stage& stage = stages[s];
    const StageMark& before = period.before[s];
    const StageMark& now = period.now[s];
    const Time later = lateness(before, now) * times;
    stage.next += instances;
    for (std::size_t clock = 0; clock < stage.clocks.size(); ++clock) {
      stage.clocks[clock] += (now.clocks[clock] - before.clocks[clock]) * times;
    }
    for (Inbox& inbox : stage.inbox) {
      for (Time& arrival : inbox.arrivals) {
        arrival += later;
      }
    }
    stage.beside.move(later);
    stage.ports.move(later);
    stage.next_run.move_ahead(later);
    for (Window& window : stage.windows) {
      window.begin += later;
      window.end += later;
    }
    stage.time.busy += (now.time.busy - before.time.busy) * times;
    stage.time.kernels += (now.time.kernels - before.time.kernels) * times;
  }
}

}  // namespace

void jump(std::vector<Stage>& stages, const Period& period, std::int64_t times,
          std::int64_t instances) {
  move_on(stages, period, times, instances);
}

void extrapolate(std::vector<Stage>& stages, const Period& period, double times,
                 std::int64_t instances) {
  move_on(stages, period, times, instances);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Time later = lateness(period.before[s], period.now[s]);
    Time most{0};
    for (int lane = 1; lane < kMostLanes; ++lane) {
      const auto clock = static_cast<std::size_t>(clock_of(lane));
      const Time behind = period.now[s].clocks[clock] - period.before[s].clocks[clock] - later;
      if (behind > Time(0)) {
        stages[s].ports.prolong(lane, behind * times);
        stages[s].next_run.prolong_ahead(lane, behind * times);
        most = std::max(most, behind * times);
      }
    }
    stages[s].beside.prolong_last(most);
  }
}

}  // namespace orrery::estimate
