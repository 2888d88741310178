// SPDX-License-Identifier: Apache-2.0
/// Packets of packet.h, their ports and their flows are made of these values. Private to the
/// folder.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "machine/network/packet_options.h"

namespace orrery::packets {

inline constexpr std::uint32_t kNone = UINT32_MAX;
inline constexpr double kCalibratedRate =
    12.5e9;  // 100 Gbit/s, of which counts of packets are given

/// Queues trim packets of these.
constexpr bool trims(network::Protocol protocol) {
  return protocol == network::Protocol::eqds || protocol == network::Protocol::ndp;
}

/// Rules are the options with their protocol's defaults filled in, and what follows from them.
class Rules {
 public:
  explicit Rules(const network::PacketOptions& options);

  const network::PacketOptions& options() const { return options_; }
  bool is(network::Protocol protocol) const { return options_.protocol == protocol; }
  bool trims() const { return packets::trims(options_.protocol); }
  bool is_paced() const { return is(network::Protocol::hpcc) || is(network::Protocol::dcqcn); }
  bool pauses() const { return !trims() && !is(network::Protocol::swift); }
  /// Returns the bytes on the wire of a full packet.
  std::int64_t wire() const { return options_.wire.value(); }
  std::int64_t payload() const { return payload_; }
  /// Returns the number of packets that a sender on a line sends at first.
  std::uint32_t window(Bandwidth line) const;
  /// Returns the bytes that a queue before a link may hold.
  std::int64_t room(Bandwidth rate) const;

 private:
  network::PacketOptions options_;
  std::int64_t payload_ = 0;
};

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
  std::uint32_t route = 0;     ///< place of its first link
  std::uint32_t next = kNone;  ///< in a queue
  std::uint16_t hop = 0;
  std::uint16_t hops = 0;
  std::uint32_t path = 0;
  bool ack = false;
  bool marked = false;
  bool asks = false;  ///< to be acknowledged at once (eqds)
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

  bool may_send() const {
    const bool has = !again.empty() || fresh < count;
    return has && (credit > 0 || (unsolicited > 0 && fresh < count));
  }
};

/// Routes of one message after another between two hosts, by their places among the network's.
struct Course {
  std::vector<std::uint32_t> routes;  ///< by path id: first of its links
  std::vector<std::uint16_t> hops;
  std::uint32_t back = kNone;  ///< first link of the route of acknowledgements among packets
  std::uint16_t back_hops = 0;
};

/// Holds an item by the number of a flow or message; the first messages' items are dropped in time.
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

}  // namespace orrery::packets
