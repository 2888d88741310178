// SPDX-License-Identifier: Apache-2.0
/// Packets of packet.h and their ends are made of these values. Private to the folder.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "machine/network/packet.h"

namespace orrery::network::packets {

inline constexpr std::uint32_t kNone = UINT32_MAX;
inline constexpr double kCalibratedRate =
    12.5e9;                                    // 100 Gbit/s, of which counts of packets are given
inline constexpr std::int64_t kLeastRoom = 2;  // packets: one is sent, one waits
inline constexpr Bytes kPull{4096};            // wire bytes of one credit
inline constexpr double kPacerShare = 0.99;
inline constexpr Bytes kFraming{38};            // preamble and gap, that only the pacer counts
inline constexpr std::int64_t kUntold = 16384;  // bytes that eqds acknowledges together

/// Queues trim packets of these.
constexpr bool trims(Protocol protocol) {
  return protocol == Protocol::eqds || protocol == Protocol::ndp;
}
/// Packets at 100 Gbit/s, as csg-htsim's runs have them.
constexpr std::int64_t usual_queue(Protocol protocol) {
  return protocol == Protocol::eqds ? 35 : protocol == Protocol::swift ? 50 : 15;
}
constexpr std::int64_t usual_window(Protocol protocol) {
  return protocol == Protocol::eqds ? 50 : protocol == Protocol::swift ? 15 : 20;
}

enum Event : std::uint32_t {
  start,
  started,
  sent,
  arrived,
  acknowledged,
  refused,
  header,
  pulled,
  carried,
  tick,
  pause,
  go,
  paced,
  notified,
  decay,
  increase,
  scan,
  watch
};

struct Packet {
  std::uint32_t flow = 0;
  std::uint32_t number = 0;
  std::uint32_t wire = 0;
  std::uint32_t route = 0;     ///< first of its links in routes_
  std::uint32_t next = kNone;  ///< in a queue
  std::uint16_t hop = 0;
  std::uint16_t hops = 0;
  std::uint32_t path = 0;
  bool ack = false;
  bool marked = false;
  bool asks = false;  ///< to be acknowledged at once (eqds)
};

/// A Report is what a switch port says of itself when a packet leaves it (hpcc).
struct Report {
  std::int64_t queued = 0;  ///< bytes, with the packet's
  std::int64_t passed = 0;  ///< bytes before it
  Time at{0};
};

/// Pace is the state of a sender that paces its packets.
struct Pace {
  Time spacing{0};            ///< of its packets
  Time last{0};               ///< when it might last send
  std::uint32_t turn = 0;     ///< generation of the event that is due
  std::uint32_t granted = 0;  ///< packets handed to the host's port
  // hpcc
  std::int64_t window = 0;  ///< bytes of payload
  std::int64_t flight = 0;
  std::int64_t updated = 0;  ///< payload sent when the window last counted
  int stage = 0;
  double use = 0;             ///< U of packet.h
  std::vector<Report> first;  ///< of the first acknowledgement's route
  // dcqcn
  double rate = 0;  ///< bytes per second
  double target = 0;
  double alpha = 1;
  int timed = 0;  ///< increases since the last cut, by time and by bytes
  int counted = 0;
  std::int64_t sent = 0;     ///< bytes towards the next increase
  std::uint32_t cuts = 0;    ///< generation of timers
  bool cut = false;          ///< ever: timers run
  Time told{INT64_MIN / 2};  ///< when the receiver last told of marks
};

/// Delay is the state of a sender with a window after delays (swift). Packets are counted from 0 to
/// the number given.
struct Delay {
  std::uint32_t acknowledged = 0;  ///< all before have come
  std::uint32_t recover = 0;       ///< acknowledging this ends the recovery
  std::uint32_t repeated = 0;      ///< acknowledgements of nothing new, one after another
  std::uint32_t expired = 0;       ///< time-outs without an acknowledgement
  std::uint32_t in_nic = 0;        ///< packets handed to the host's port, not yet sent
  std::uint32_t turn = 0;          ///< generation of the paced packet that is due
  bool recovering = false;
  bool pacing = false;
  std::int64_t window = 0;   ///< bytes, as the next two
  std::int64_t before = 0;   ///< the window before the latest acknowledgement
  std::int64_t inflate = 0;  ///< what the recovery adds to it
  Time trip{0};              ///< smoothed
  Time deviation{0};
  Time patience{0};  ///< of the time-out
  Time expires{0};   ///< 0: nothing is in flight
  Time last_cut{0};
  Time last_sent{0};
  Time spacing{0};          ///< of packets while the window is less than one, else 0
  std::vector<bool> ahead;  ///< of the receiver: packets that came before an earlier one
};

/// The sending end of a link. What every packet touches is one line of the cache.
struct alignas(64) Port {
  std::uint32_t first = kNone;
  std::uint32_t last = kNone;
  std::uint32_t sending = kNone;
  bool paused = false;
  bool stopping = false;    ///< its far end has asked for a pause
  std::int64_t room = 0;    ///< bytes that it may hold
  std::int64_t queued = 0;  ///< bytes, without what is being sent
  Time full{0};             ///< of a full packet on the link
  Time control{0};          ///< of a control packet
  Time until{0};            ///< end of what is being sent
  Time debt{0};             ///< of control packets that passed while it was busy

  std::int64_t ingress = 0;  ///< bytes in the node at its far end that came over it
  // hpcc
  std::int64_t passed = 0;  ///< bytes
  Time came{-1};            ///< when the latest packet came, and the bytes of all then
  std::int64_t just_came = 0;
  // of a host
  std::vector<std::uint32_t> flows;  ///< that may have something to send
  std::size_t turn = 0;
};

struct Stream {
  std::uint32_t count = 0;        ///< packets
  std::uint32_t last_wire = 0;    ///< of the last of them
  std::uint32_t fresh = 0;        ///< next that was never sent
  std::uint32_t unsolicited = 0;  ///< packets left of the first window
  std::uint32_t acknowledged = 0;
  std::uint32_t received = 0;
  std::int64_t untold = 0;      ///< bytes come since the last acknowledgement (eqds)
  Time heard{0};                ///< when the latest packet came
  std::int64_t credit = 0;      ///< bytes
  std::int64_t wanted = 0;      ///< bytes that the receiver has yet to pull
  std::int64_t unreported = 0;  ///< of them, of which the receiver has not heard
  std::uint32_t told = 0;       ///< packets that the receiver knows are to be sent (eqds)
  bool urgent = false;          ///< the receiver wants trimmed packets again
  std::uint32_t nic = 0;        ///< link, the first of path 0
  Bandwidth line{0};            ///< of all links that its paths begin with
  std::deque<std::uint32_t> again;
  std::vector<std::uint32_t> routes;  ///< by path id: first of its links
  std::vector<std::uint16_t> hops;
  std::vector<std::uint32_t> order;  ///< of path ids in this round
  std::vector<bool> avoided;         ///< path ids that trimmed in this round
  std::size_t next_path = 0;
  std::uint64_t random = 0;
  Time reverse{0};              ///< of a control packet over path 0
  std::uint32_t back = kNone;   ///< first link of the return route, if there is one
  std::uint16_t back_hops = 0;  ///< of it
  bool listed = false;          ///< among its host's flows
  bool waiting = false;         ///< among its receiver's
  std::int32_t target = 0;      ///< host
  // of a message
  Bytes bytes{0};
  bool whole = false;  ///< all of it has come
  bool ended = false;  ///< and the sender knows
};

/// Routes of one message after another between two hosts, by their places among the network's.
struct Course {
  std::vector<std::uint32_t> routes;  ///< by path id: first of its links
  std::vector<std::uint16_t> hops;
  std::uint32_t back = kNone;  ///< first link of the route of acknowledgements among packets
  std::uint16_t back_hops = 0;
};

/// By the number of a flow or message; of messages the first are gone in time.
template <class T>
class ByFlow {
 public:
  T& operator[](std::size_t f) { return items_[f - first_]; }
  const T& operator[](std::size_t f) const { return items_[f - first_]; }
  std::size_t first() const { return first_; }
  std::size_t end() const { return first_ + items_.size(); }
  void resize(std::size_t count) { items_.resize(count); }
  void add() { items_.emplace_back(); }
  /// Requires first() <= first <= end().
  void forget_before(std::size_t first) {
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first - first_));
    first_ = first;
  }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;
};

/// Mark is what is known of a flow's rate.
struct Mark {
  std::uint32_t received = 0;  ///< at the beginning of the window
  Time heard{0};
  double first = 0;            ///< packets per second, in the first window of those that are alike
  double sum = 0;              ///< in all of them
  std::uint32_t since = 0;     ///< received before the first of them
  std::int64_t in_flight = 0;  ///< then
};

/// How steady a part of the network is.
struct Steadiness {
  std::vector<std::uint32_t> flows;  ///< in flight
  std::vector<Mark> marks;           ///< of these
  Time window{0};
  Time since{0};           ///< beginning of the windows that are alike
  int windows = 0;         ///< that are alike
  std::uint32_t turn = 0;  ///< generation of the end of the window
};

/// A Receiver is what a host pulls from.
struct Receiver {
  std::deque<std::uint32_t> flows;
  std::deque<std::uint32_t> urgent;
  Time next{0};
  bool ticking = false;
};

}  // namespace orrery::network::packets
