// SPDX-License-Identifier: Apache-2.0
/// What the replay knows of one stage.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "estimate/pass_map.h"
#include "estimate/replay.h"

namespace orrery::estimate {

/// Instances back that a message, known late, can still slow down.
inline constexpr std::size_t kWindows = 4;

/// Kernels of one instance, and collectives that messages slow (stretch.h).
struct Window {
  Time begin{0};
  Time end{0};
  double share = 0;  ///< of it in which they run
  Slowdown slowdown;
};

/// Arrivals of one flow that no instance has taken yet, in order.
struct Inbox {
  std::vector<Time> arrivals;
  std::size_t next = 0;
  std::size_t dropped = 0;  ///< before the first of `arrivals`

  std::size_t size() const { return arrivals.size() - next; }
  Time operator[](std::size_t i) const { return arrivals[next + i]; }
  Time take() { return arrivals[next++]; }
  void compact() {
    arrivals.erase(arrivals.begin(), arrivals.begin() + static_cast<std::ptrdiff_t>(next));
    dropped += next;
    next = 0;
  }
  /// Of the next to come, among all that ever came.
  std::size_t number() const { return dropped + arrivals.size(); }
  /// One that nobody has taken yet arrives later.
  void put_off(std::size_t number, Time until) {
    const std::size_t place = number - dropped;
    if (number >= dropped + next && place < arrivals.size()) {
      arrivals[place] = std::max(arrivals[place], until);
    }
  }
};

/// Stages that have come to a meeting.
struct Meeting {
  Time latest = kNever;
  std::vector<std::size_t> stages;
};

/// A stage's last message.
struct Sent {
  std::size_t target = 0;
  std::size_t number = kNoNode;  ///< of the target's (Ports::receive)
  std::int64_t next = 0;         ///< the stage's instance after it
  Time there{0};
  bool awaited = false;  ///< by its compute
};

struct Stage {
  std::int64_t next = 0;
  std::int64_t limit = 0;
  Clocks clocks{};
  std::array<Inbox, plan::kChannelCount> inbox;
  Beside beside;
  Ports ports;
  std::array<Window, kWindows> windows{};
  StageTime time;
  bool queued = false;
  // Of an instance that runs node by node:
  bool running = false;
  NodeRun run;
  NodeRun next_run;  ///< of the next instance, if it begins ahead
  Beside beside_run;
  Time ready{0};
  Time meeting = kNever;     ///< the start of the meeting it has come to
  EarlierHost earlier;       ///< over the last instance
  std::size_t received = 0;  ///< messages
  Sent sent;

  /// In ports nodes of the last instance are none of the running one's.
  void settle() { ports.settle(clocks[kCompute], next_run.is_ahead() ? next_run.base() : kNoNode); }
  /// What another transfer has put off in the ports of this one.
  void follow_moved() {
    if (running) {
      run.follow_moved(ports, beside_run);
    } else {
      run.follow_moved(ports, beside, clocks);
    }
  }
  /// Node by node, from what is known ahead of it.
  void begin_run(const TimedTemplate& nodes, const PassMap& map, bool jumps) {
    ready = clocks[kCompute];
    std::array<std::size_t, plan::kChannelCount> seen{};
    for (std::ptrdiff_t i = 0; i < map.leading; ++i) {
      const auto flow = static_cast<std::size_t>(map.receives[static_cast<std::size_t>(i)]);
      ready = std::max(ready, inbox[flow][seen[flow]++]);
    }
    settle();
    beside.forget(clocks[kCompute]);
    beside_run = beside;
    if (next_run.is_ahead()) {
      std::swap(run, next_run);
      run.go_on(clocks, jumps, earlier);
    } else {
      run.start(nodes, clocks, jumps, earlier);
    }
    running = true;
  }
  /// Of the run that is over and of the next one.
  void keep_collectives() {
    beside.forget_nodes();
    for (Communication one : beside_run.all()) {
      if (one.collective && one.node != kNoNode) {
        one.node = next_run.is_ahead() && next_run.owns(one.node) ? one.node : kNoNode;
        beside.put(one);
      }
    }
  }
  void keep(const Window& window) {
    std::shift_left(windows.begin(), windows.end(), 1);
    windows.back() = window;
  }
  /// What has been evaluated already and ran beside it makes the next kernels late.
  void runs_beside(const Communication& message) {
    Time late{0};
    for (const Window& window : windows) {
      const Time first = std::max(window.begin, message.begin);
      const Time last = std::min(window.end, message.end);
      if (last > first) {
        late += (last - first) * (window.share * (1 - 1 / window.slowdown.message));
      }
    }
    clocks[kCompute] += late;
    beside.put(message);
  }
};

}  // namespace orrery::estimate
