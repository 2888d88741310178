// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "machine/network/packets/fabric.h"

namespace orrery::packets {

/// Credits are what receivers grant their flows: eqds and ndp of packet.h. Private to the folder.
class Credits {
 public:
  /// `fabric` must outlive it.
  explicit Credits(Fabric& fabric)
      : fabric_(fabric),
        rules_(fabric.rules()),
        receivers_(static_cast<std::size_t>(fabric.routes().graph().hosts)) {}

  /// A packet has come whole: whether the receiver acknowledges it at once.
  bool receive(const Packet& packet);
  /// The header of a trimmed packet has come.
  void receive_header(std::uint32_t f, std::uint32_t number);
  /// A sender hears that a packet must come again.
  void refuse(std::uint32_t f, std::uint32_t number);
  /// A sender hears of credit. The first ends the first window (eqds): what is left of it waits for
  /// credit too, of which the receiver learns with the next packet.
  void take(std::uint32_t f);
  /// A host pulls from the flow whose turn it is.
  void pull(std::uint32_t host);
  /// A pull of ndp is at the next node on its way to the sender; it decides when the next packet
  /// leaves: port by port, what is being sent when it comes there before it.
  void carry_pull(std::uint32_t id);
  /// The flow is gone: nothing of it is pulled.
  void forget(std::uint32_t f);

 private:
  /// A Receiver is what a host pulls from.
  struct Receiver {
    std::deque<std::uint32_t> flows;
    std::deque<std::uint32_t> urgent;
    Time next{0};
    bool ticking = false;
  };

  void send_pull(std::uint32_t f);
  /// The receiver hears of packet `number`, or that it must come again (eqds).
  void learn(std::uint32_t f, std::uint32_t number, bool trimmed);
  /// Every packet asks for one more of its flow (ndp).
  void ask(std::uint32_t f);
  /// The receiver pulls for the flow when its turn comes.
  void want(std::uint32_t f);

  Fabric& fabric_;
  const Rules& rules_;
  std::vector<Receiver> receivers_;
};

}  // namespace orrery::packets
