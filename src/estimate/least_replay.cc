// SPDX-License-Identifier: Apache-2.0
#include "estimate/least_replay.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "estimate/stage_state.h"

namespace orrery::estimate {
namespace {

constexpr std::int64_t kPatience = 20'000;  // instances
constexpr std::size_t kMostStale = 64;      // taken arrivals that an inbox carries along

class LeastReplay {
 public:
  explicit LeastReplay(const PreparedPlan& plan) : plan_(plan), stages_(plan.timed.roles.size()) {}

  Time run() {
    if (plan_.lists.repetition.length > 0) {
      run_rounds();
    }
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].limit = std::ssize(plan_.lists.templates[s]);
    }
    advance();
    Time end{0};
    for (const Runner& stage : stages_) {
      if (stage.next < stage.limit) {
        return Time(0);
      }
      for (int clock = 0; clock < kMostClocks; ++clock) {
        if (clock != kHost && clock != kVisible) {
          end = std::max(end, stage.clocks[at(clock)]);
        }
      }
    }
    return end;
  }

 private:
  struct Runner {
    std::int64_t next = 0;
    std::int64_t limit = 0;
    Clocks clocks{};
    std::array<Inbox, plan::kChannelCount> inbox;
    std::array<std::size_t, plan::kChannelCount> passed_over{};  ///< arrivals nobody waited for
  };
  /// Of one stage: how far it is in the round, when compute is free, and what is on its way.
  struct Mark {
    std::int64_t behind = 0;
    std::vector<Time> moments;
    std::array<std::size_t, plan::kChannelCount> waiting{};
  };

  void advance() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        while (stages_[s].next < stages_[s].limit && step(s)) {
          moved = true;
        }
      }
    }
  }

  bool step(std::size_t s) {
    Runner& stage = stages_[s];
    const PassMap& map = plan_.least(s, stage.next);
    if (!has_messages(stage, map)) {
      return false;
    }
    const Time before = stage.clocks[kCompute];
    inputs_.clear();
    for (const int clock : map.clocks) {
      inputs_.push_back(clock == kHost ? kNever : stage.clocks[at(clock)]);
    }
    for (const int flow : map.receives) {
      Inbox& inbox = stage.inbox[at(flow)];
      if (inbox.size() == 0) {
        ++stage.passed_over[at(flow)];
      }
      inputs_.push_back(inbox.size() == 0 ? kNever : inbox.take());
    }
    for (std::size_t o = 0; o < map.outputs.size(); ++o) {
      const PassMap::Output& what = map.outputs[o];
      Time out = kNever;
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        out = std::max(out, inputs_[i] + map.entry(o, i));
      }
      if (what.clock >= 0) {
        stage.clocks[at(what.clock)] = out;
      } else {
        send(s, what.flow, out + what.work);
        Time& lane = stage.clocks[at(clock_of(plan_.timed.message_lane))];
        lane = std::max(lane, out + what.work);
      }
    }
    stage.clocks[kVisible] = before;
    ++stage.next;
    ++evaluated_;
    return true;
  }

  static bool has_messages(const Runner& stage, const PassMap& map) {
    std::array<std::size_t, plan::kChannelCount> needed{};
    return std::all_of(map.receives.begin(), map.receives.begin() + map.leading, [&](int flow) {
      return ++needed[at(flow)] <= stage.inbox[at(flow)].size();
    });
  }

  void send(std::size_t s, int flow, Time there) {
    Runner& target = stages_[at(plan_.timed.targets[s][at(flow)])];
    std::size_t& passed_over = target.passed_over[at(flow)];
    if (passed_over > 0) {
      --passed_over;
      return;
    }
    Inbox& inbox = target.inbox[at(flow)];
    if (inbox.next > kMostStale) {
      inbox.compact();
    }
    inbox.arrivals.push_back(there);
  }

  // --- rounds

  void run_rounds() {
    const Repetition& repetition = plan_.lists.repetition;
    const std::int64_t rounds = repetition.rounds();
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].limit = repetition.from[s];
    }
    advance();
    std::optional<Time> usual;
    std::vector<Mark> before = marks();
    for (std::int64_t round = 0; round < rounds; ++round) {
      std::vector<Mark> now = next_round();
      const auto growth = least_growth(before, now);
      const bool steady = growth && usual && (*growth == *usual || evaluated_ > kPatience);
      const std::int64_t left = rounds - round - 2;
      if (left > 0 && (steady || (repetition.omitted > 0 && left == 1))) {
        forget_clocks();
        before = std::move(now);
        const auto sure = least_growth(before, next_round());
        skip(left, std::max(Time(0), sure.value_or(Time(0))) * (left + repetition.omitted));
        return;
      }
      usual = growth;
      before = std::move(now);
    }
  }

  std::vector<Mark> next_round() {
    for (Runner& stage : stages_) {
      stage.limit += plan_.lists.repetition.length;
    }
    advance();
    return marks();
  }

  std::vector<Mark> marks() const {
    std::vector<Mark> marks;
    for (const Runner& stage : stages_) {
      Mark& mark = marks.emplace_back();
      mark.behind = stage.limit - stage.next;
      mark.moments.push_back(stage.clocks[kCompute]);
      for (std::size_t flow = 0; flow < stage.inbox.size(); ++flow) {
        const Inbox& inbox = stage.inbox[flow];
        mark.waiting[flow] = inbox.size();
        for (std::size_t i = 0; i < inbox.size(); ++i) {
          mark.moments.push_back(inbox[i]);
        }
      }
    }
    return marks;
  }

  /// Nothing where stages are at other places of the round than before.
  static std::optional<Time> least_growth(const std::vector<Mark>& before,
                                          const std::vector<Mark>& now) {
    Time least = Time::max();
    for (std::size_t s = 0; s < now.size(); ++s) {
      if (before[s].behind != now[s].behind || before[s].waiting != now[s].waiting) {
        return std::nullopt;
      }
      for (std::size_t i = 0; i < now[s].moments.size(); ++i) {
        least = std::min(least, now[s].moments[i] - before[s].moments[i]);
      }
    }
    return least;
  }

  void forget_clocks() {
    for (Runner& stage : stages_) {
      const Time compute = stage.clocks[kCompute];
      stage.clocks.fill(kNever);
      stage.clocks[kCompute] = compute;
    }
  }

  /// So many rounds of the lists, in which all that is in flight is later by `growth`.
  void skip(std::int64_t rounds, Time growth) {
    for (Runner& stage : stages_) {
      stage.next += rounds * plan_.lists.repetition.length;
      for (Time& clock : stage.clocks) {
        clock += growth;
      }
      for (Inbox& inbox : stage.inbox) {
        for (Time& arrival : inbox.arrivals) {
          arrival += growth;
        }
      }
    }
  }

  const PreparedPlan& plan_;
  std::vector<Runner> stages_;
  std::vector<Time> inputs_;
  std::int64_t evaluated_ = 0;
};

}  // namespace

Time least_replay(const PreparedPlan& plan) {
  return LeastReplay(plan).run();
}

}  // namespace orrery::estimate
