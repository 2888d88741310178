// SPDX-License-Identifier: Apache-2.0
/// A second way to run schedules on links, for tests to compare with: store and forward at the
/// ranks, cut-through at the links in between, first come first served on every link. The ranks of
/// one schedule, all of whose messages are of one collective; no event loop but a heap.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/units.h"
#include "collective/schedule.h"
#include "machine/network/fifo.h"
#include "machine/topology/link_map.h"

namespace orrery::testing {

/// Says how a message goes: each link is held for bytes / bandwidth, from when it is free and the
/// first byte is there; a link's latency later the first byte is at the next. `after` the last byte
/// has passed the last link the message has arrived.
struct MessageRoute {
  std::vector<topology::Hop> hops;
  Time after{0};
};

/// The links of a network, and the route of a message on them.
struct Wires {
  std::size_t links = 0;
  std::function<const MessageRoute&(std::int64_t sender, std::int64_t receiver)> route;
};

/// A message leaves when those in its `after` have arrived; among ready ones that want a link the
/// one that was ready first goes first (ties: in order of the schedule).
struct Execution {
  std::vector<Time> departure;  ///< by message: on its first link
  std::vector<Time> arrival;
  Time end{0};
};
/// A message that wants the `hop`-th link of its route at `when`.
struct Want {
  Time when;
  int message;
  std::size_t hop;
  friend bool operator>(const Want& a, const Want& b) {
    return std::tie(a.when, a.message, a.hop) > std::tie(b.when, b.message, b.hop);
  }
};

constexpr int kSlicesInFlight = 2;

class Executor {
 public:
  Executor(const collective::MessageSchedule& schedule, Bytes size, const Wires& wires)
      : schedule_(schedule),
        wires_(wires),
        block_bytes_(schedule.block_share * static_cast<double>(size.value())),
        missing_(schedule.messages.size()),
        unlocks_(schedule.messages.size()),
        last_byte_(schedule.messages.size()),
        links_(wires.links) {
    run_.departure.resize(missing_.size());
    run_.arrival.resize(missing_.size());
    for (std::size_t m = 0; m < missing_.size(); ++m) {
      missing_[m] = schedule.messages[m].after.size();
      for (const int before : schedule.messages[m].after) {
        unlocks_[static_cast<std::size_t>(before)].push_back(static_cast<int>(m));
      }
      if (missing_[m] == 0) {
        wants_.push({Time(0), static_cast<int>(m), 0});
      }
    }
  }

  Execution run() {
    while (!wants_.empty()) {
      const Want want = wants_.top();
      wants_.pop();
      take_link(want);
    }
    return std::move(run_);
  }

 private:
  /// Takes the link as soon as it is free.
  void take_link(const Want& want) {
    const auto m = static_cast<std::size_t>(want.message);
    const collective::Message& message = schedule_.messages[m];
    const MessageRoute& route = wires_.route(message.sender, message.receiver);
    assert(want.hop < route.hops.size() && "a message passes at least one link");
    const topology::Hop& hop = route.hops[want.hop];
    const double bytes = static_cast<double>(message.blocks.size()) * block_bytes_;
    const Time held = from_seconds(bytes / hop.bandwidth.value());
    const Time start = links_[hop.link].take(want.when, held);
    run_.departure[m] = want.hop == 0 ? start : run_.departure[m];
    last_byte_[m] = std::max(start + held, last_byte_[m]) + hop.latency;
    if (want.hop + 1 < route.hops.size()) {
      wants_.push({start + hop.latency, want.message, want.hop + 1});
    } else {
      arrive(m, last_byte_[m] + route.after);
    }
  }

  /// Tells what waited for the message: it may go now or when the last of its others has arrived.
  void arrive(std::size_t m, Time when) {
    run_.arrival[m] = when;
    run_.end = std::max(run_.end, when);
    for (const int next : unlocks_[m]) {
      if (--missing_[static_cast<std::size_t>(next)] == 0) {
        wants_.push({ready(schedule_.messages[static_cast<std::size_t>(next)]), next, 0});
      }
    }
  }
  Time ready(const collective::Message& message) const {
    Time latest(0);
    for (const int before : message.after) {
      latest = std::max(latest, run_.arrival[static_cast<std::size_t>(before)]);
    }
    return latest;
  }

  const collective::MessageSchedule& schedule_;
  const Wires& wires_;
  double block_bytes_;
  std::vector<std::size_t> missing_;       ///< by message: arrivals that it waits for
  std::vector<std::vector<int>> unlocks_;  ///< by message: those that wait for it
  std::vector<Time> last_byte_;            ///< by message: has passed its present link
  std::vector<network::FifoLink> links_;
  std::priority_queue<Want, std::vector<Want>, std::greater<>> wants_;
  Execution run_;
};

/// One schedule run by several groups at once on the same links, as one schedule: rank r of group i
/// is groups[i][r]. The buffer is cut into `slices` that run beside each other, as transports cut
/// messages into packets, two of a message in flight at once. Message by message, slice by slice,
/// group by group.
inline collective::MessageSchedule together(const collective::MessageSchedule& schedule,
                                            std::span<const std::vector<std::int64_t>> groups,
                                            int slices = 1) {
  collective::MessageSchedule all = schedule;
  all.messages.clear();
  all.block_share /= slices;
  const int count = static_cast<int>(groups.size());
  const int copies = count * slices;
  for (const collective::Message& original : schedule.messages) {
    for (int copy = 0; copy < copies; ++copy) {
      const std::vector<std::int64_t>& devices =
          groups[static_cast<std::size_t>(copy) % groups.size()];
      collective::Message message = original;
      message.sender = static_cast<int>(devices[static_cast<std::size_t>(original.sender)]);
      message.receiver = static_cast<int>(devices[static_cast<std::size_t>(original.receiver)]);
      for (int& earlier : message.after) {
        earlier = earlier * copies + copy;
      }
      if (copy >= kSlicesInFlight * count) {
        message.after.push_back(static_cast<int>(all.messages.size()) - kSlicesInFlight * count);
      }
      all.messages.push_back(std::move(message));
    }
  }
  return all;
}

inline Execution execute(const collective::MessageSchedule& schedule, Bytes size,
                         const Wires& wires) {
  return Executor(schedule, size, wires).run();
}

}  // namespace orrery::testing
