// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/calendar_queue.h"
#include "machine/network/packets/packet.h"
#include "machine/network/packets/routes.h"
#include "machine/network/packets/state.h"

namespace orrery::packets {

/// The Fabric is ports, the packets in them and on their links, and the flows whose packets hosts
/// put into ports in turn. What a protocol's senders and receivers decide is theirs (`credits.h`,
/// `paced.h`, `delayed.h`): they give flows credit and push events. Private to the folder.
class Fabric {
 public:
  /// `graph` must outlive it. `flows` is how many there are before messages come.
  Fabric(const topology::LinkGraph& graph, const network::PacketOptions& options,
         std::size_t flows);

  const Rules& rules() const { return rules_; }
  Routes& routes() { return routes_; }
  const Routes& routes() const { return routes_; }
  ByFlow<Stream>& streams() { return streams_; }
  Stream& stream(std::uint32_t f) { return streams_[f]; }
  Packet& packet(std::uint32_t id) { return packets_[id]; }
  Port& port(std::uint32_t number) { return ports_[number]; }
  /// Counters of the run; `finish` and `end` are not the fabric's.
  PacketRun& counted() { return counted_; }
  /// Returns the time when a packet left its host (swift).
  Time left_at(std::uint32_t id) const { return left_at_[id]; }
  /// Returns whether nothing of the flow matters any more.
  bool is_gone(std::uint32_t f) const { return f < streams_.first() || streams_[f].ended; }

  engine::CalendarQueue& queue() { return queue_; }
  Time now() const { return queue_.now(); }
  void push_in(Time wait, Event event, std::uint32_t subject, std::uint32_t generation = 0) {
    queue_.push(queue_.now() + wait, event, subject, generation);
  }
  /// Begins again at time 0 with nothing under way.
  void restart();
  /// Returns a number from 0 to 1, the next of a sequence.
  double chance() { return static_cast<double>(next_random() >> 11U) * 0x1p-53; }

  /// Counts the flow's packets and finds its line, its order of paths and its way back. Requires
  /// its bytes, routes and hops.
  void prepare(std::uint32_t f, bool by_message);
  /// The flow has something to send, or may have.
  void offer(std::uint32_t f);

  /// Returns a new packet's place; what is in it is of an earlier one.
  std::uint32_t allocate();
  void release(std::uint32_t id) { free_.push_back(id); }
  /// Sends the port's next packet, if it is idle and not paused.
  void send_next(std::uint32_t number);
  /// Returns the packet that has left the port, which is idle then.
  std::uint32_t end_sending(std::uint32_t number);
  /// Takes that packet on towards the end of the port's link; the port goes on.
  void pass_on(std::uint32_t id, std::uint32_t number);
  /// A packet is at the end of a link: whether that is its route's.
  bool arrive(std::uint32_t id);
  /// Sends an acknowledgement that queues among the packets of its return route, in the place of
  /// the packet `id` whose reports it takes along.
  void send_ack(std::uint32_t id);
  /// Tells the sender, over the cables of the flow's next path.
  void control(std::uint32_t f, Event event, std::uint32_t number) {
    push_in(charge_way_back(f), event, f, number);
  }
  /// Returns the time that a control packet takes to the sender over these cables, whose ports it
  /// charges.
  Time charge_way_back(std::uint32_t f);
  /// Control packets pass before others, which wait for them, but not before what is being sent:
  /// what is left of that, as it is now.
  Time charge(std::int32_t over);

 private:
  std::uint64_t next_random() { return random_ = topology::mixed(random_); }
  std::uint32_t link_of(const Packet& packet) const {
    return static_cast<std::uint32_t>(routes_.at(packet.route + packet.hop));
  }
  std::uint32_t wire_of(const Stream& stream, std::uint32_t number) const {
    return number + 1 == stream.count ? stream.last_wire
                                      : static_cast<std::uint32_t>(rules_.wire());
  }
  /// Returns the bytes in the queue, with the packet that is being sent.
  std::int64_t holding(const Port& port) const {
    return port.queued + (port.sending == kNone ? 0 : packets_[port.sending].wire);
  }
  /// The next packet of a host's flows in turn, put into the port's queue.
  void take_from_host(std::uint32_t number);
  /// Returns the port of a new packet.
  std::uint32_t make_packet(std::uint32_t f, Stream& stream);
  std::uint32_t next_path(Stream& stream);
  /// Enqueues the packet at the port of its next link; a full queue may trim or drop it.
  void enqueue(std::uint32_t id);
  /// Returns whether a queue has no room for a packet, or so little that it drops it by chance
  /// (swift).
  bool overflows(const Port& port, const Packet& packet);
  /// Takes the newest out of the queue.
  std::uint32_t drop_last(Port& port);
  void trim(std::uint32_t id);
  /// A packet that came over the link has left the node at its end.
  void leave(std::uint32_t number, std::uint32_t wire);

  Rules rules_;
  Routes routes_;
  engine::CalendarQueue queue_;
  std::vector<Port> ports_;
  ByFlow<Stream> streams_;
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> free_;
  std::vector<Time> left_at_;  ///< by packet: when it left its host (swift)
  std::uint64_t random_ = 0;   ///< of which packet is trimmed, dropped or marked
  PacketRun counted_;
};

}  // namespace orrery::packets
