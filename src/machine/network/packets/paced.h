// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine/network/packets/fabric.h"

namespace orrery::packets {

/// Paced holds the senders that send by clocks of their own: hpcc and dcqcn of packet.h. Private to
/// the folder.
class Paced {
 public:
  /// `fabric` must outlive it. `flows` is how many there are before messages come.
  Paced(Fabric& fabric, std::size_t flows);

  /// Adds one flow more.
  void add() { paces_.add(); }
  void forget_before(std::size_t first) { paces_.forget_before(first); }
  void forget(std::uint32_t f) { std::erase(by_port_[fabric_.stream(f).nic], f); }
  /// Packets of reports over so many hops come (hpcc).
  void make_room_for_reports(std::size_t hops);

  void begin(std::uint32_t f);
  /// Handles the clock of the flow's sender.
  void tick(std::uint32_t f, std::uint32_t generation);
  /// The port of these senders goes on.
  void resume(std::uint32_t port);
  /// Returns the number of packets handed to the host's port.
  std::uint32_t granted(std::uint32_t f) const { return paces_[f].granted; }
  /// Writes the port's report into the packet that leaves it (hpcc); what comes at the instant at
  /// which a packet leaves is not yet in the queue.
  void report(std::uint32_t id, Port& port);
  /// The sender reads the reports of an acknowledgement (hpcc): whether it was the last.
  bool adapt(std::uint32_t id);
  /// A port marks a packet that leaves it, by chance (dcqcn).
  void mark(Packet& packet, const Port& port, Bandwidth rate);
  /// The receiver has seen a mark (dcqcn).
  void notify(std::uint32_t f);
  /// The sender has heard of marks (dcqcn).
  void cut(std::uint32_t f);
  /// Handles a timer of the sender since a cut (dcqcn).
  void recover(std::uint32_t f, std::uint32_t generation, bool increases);

 private:
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

  void pace(std::uint32_t f);
  double use_of(const Pace& pace, const Stream& stream, const Report* now) const;
  void count_window(std::uint32_t f);
  void raise(std::uint32_t f, bool by_time);
  void set_rate(std::uint32_t f, double rate);

  Fabric& fabric_;
  const Rules& rules_;
  ByFlow<Pace> paces_;
  std::vector<std::vector<std::uint32_t>> by_port_;  ///< flows
  std::vector<Report> reports_;                      ///< by packet, `report_stride_` each
  std::size_t report_stride_ = 0;
};

}  // namespace orrery::packets
