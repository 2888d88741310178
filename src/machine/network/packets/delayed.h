// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "machine/network/packets/fabric.h"

namespace orrery::packets {

/// Delayed holds the senders whose windows follow the delay of their packets: swift of packet.h.
/// Private to the folder.
class Delayed {
 public:
  /// `fabric` must outlive it. `flows` is how many there are before messages come.
  Delayed(Fabric& fabric, std::size_t flows);

  /// Adds one flow more.
  void add() { delays_.add(); }
  void forget_before(std::size_t first) { delays_.forget_before(first); }

  void begin(std::uint32_t f);
  /// Packet `number` has come: all before the returned one have.
  std::uint32_t receive(std::uint32_t f, std::uint32_t number);
  /// The sender hears an acknowledgement of all before `number`, for a packet that left its host at
  /// `sent`: whether it was the last.
  bool hear(std::uint32_t f, std::uint32_t number, Time sent);
  /// A packet has left its host's port: another may be handed over.
  void left(std::uint32_t f);
  /// Handles the clock of a sender whose window is less than a packet.
  void tick(std::uint32_t f, std::uint32_t generation);
  /// Looks at the sender's time-out.
  void expire(std::uint32_t f);

 private:
  /// Delay is the state of a sender with such a window. Packets are counted from 0 to
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

  void set_window(std::uint32_t f, std::uint32_t number, Time found);
  void limit_window(Delay& delay) const;
  /// Takes an acknowledgement of new data. Returns whether a packet must be sent again.
  bool advance(std::uint32_t f, std::uint32_t number);
  /// Takes an acknowledgement of nothing new. Returns whether a packet must be sent again.
  bool repeat(std::uint32_t f);
  /// Sends what the window allows.
  void fill_window(std::uint32_t f);
  void hand_over(std::uint32_t f, std::uint32_t number);
  void space(std::uint32_t f);
  Time target_of(const Delay& delay) const;

  Fabric& fabric_;
  const Rules& rules_;
  ByFlow<Delay> delays_;
};

}  // namespace orrery::packets
