// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "compat/astra/event.h"
#include "compat/astra/run.h"
#include "compat/astra/wires.h"

namespace orrery::astra {

/// A Network carries messages between NPUs. The plain one is the unaware network: no message delays
/// another, and each takes Wires::between.
class Network {
 public:
  explicit Network(const Wires& wires) : unaware_(&wires) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  virtual ~Network() = default;

  /// Says whether a message's time does not depend on others.
  bool stateless() const { return unaware_ != nullptr; }
  /// Sends a message at this instant; `arrival` is the event when it is there.
  void send(Events& events, std::int64_t from, std::int64_t to, Bytes bytes, Event arrival) {
    if (unaware_ != nullptr) {
      events.push(events.now() + unaware_->between(from, to, bytes), arrival);
    } else {
      carry(events, from, to, bytes, arrival);
    }
  }
  /// Handles events of kinds hop and link_free. Returns the arrival when that was the last hop,
  /// until the next send; or null.
  virtual const Event* advance(Events& /*events*/, const Event& /*event*/) { return nullptr; }
  /// Ends an instant: what has begun and ended may change the others.
  virtual void settle(Events& /*events*/) {}
  /// Returns the links that carried anything, where these are told apart by NPU; the switch has the
  /// number after the last NPU's.
  virtual std::vector<RunResult::Link> links() const { return {}; }

 protected:
  Network() = default;
  virtual void carry(Events& /*events*/, std::int64_t /*from*/, std::int64_t /*to*/,
                     Bytes /*bytes*/, Event /*arrival*/) {}

 private:
  const Wires* unaware_ = nullptr;
};

/// One dimension of links that serve one message at a time in the order of its arrival, store and
/// forward: busy floor(bytes / bandwidth), at the other end after floor(latency + bytes /
/// bandwidth). A link takes its next message in an event of its own, so that what arrives at one
/// instant does so in ASTRA-sim's order.
///
///   Ring            2p links; the shorter way round, ties clockwise
///   FullyConnected  p (p-1) links
///   Switch          p up and p down; the message is stored in the switch between
class AwareNetwork final : public Network {
 public:
  /// `single`: NPU 0 stands for all. What others send over their links to it is what it sends
  /// itself; fold.h says when this is exact.
  AwareNetwork(const Wires& wires, bool single);

  const Event* advance(Events& events, const Event& event) override;
  std::vector<RunResult::Link> links() const override;

 private:
  void carry(Events& events, std::int64_t from, std::int64_t to, Bytes bytes,
             Event arrival) override;
  /// Cost is that of a message on any link.
  struct Cost {
    Bytes bytes{0};
    Time busy{0};
    Time crossing{0};
  };
  struct Transfer {
    Cost cost;
    std::int64_t at = 0;  ///< device: an NPU, or the switch (after the last NPU)
    std::int64_t to = 0;
    bool clockwise = true;
    std::uint32_t behind = kNone;  ///< the next that waits for the same link
    Event arrival;
  };
  struct Link {
    bool busy = false;
    std::uint32_t first = kNone;  ///< of the transfers that wait
    std::uint32_t last = kNone;
    Bytes carried{0};
  };
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::int64_t next_device(const Transfer& transfer) const;
  std::size_t link(const Transfer& transfer) const;
  void cross(Events& events, std::uint32_t transfer);
  void start(Events& events, std::uint32_t link, std::uint32_t transfer);
  void release(Events& events, std::uint32_t link);

  const Wires* wires_;
  std::int64_t npus_;
  bool single_;
  Cost cost_{.bytes = Bytes(-1)};  ///< of the last message
  std::vector<Link> links_;
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> unused_;
};

}  // namespace orrery::astra
