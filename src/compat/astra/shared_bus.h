// SPDX-License-Identifier: Apache-2.0
/// The bus between an NPU and its network endpoint, with the memory behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <vector>

#include "base/units.h"
#include "compat/astra/config.h"
#include "compat/astra/event.h"

namespace orrery::astra {

/// Every rank has two buses of two *sides* each: NPU and endpoint (MA), and a memory bus behind the
/// NPU side with the same L, o and g and G = 0.0038 ns/B. A transfer of m bytes from one side to
/// the other:
///
///   sends     for x + floor((m - 1) G), is there after x + floor((m - 1) G + L + o); x = o, or
///             what is left of g when the side has just sent
///   to MA     over the memory bus to the NPU, then over the bus
///   to NPU    over the bus, then over the memory bus and out
///   processed goes to memory and back first, then takes 50 ns and `reduction` per whole 100 bytes
///   sent back comes to memory and back, then over the bus to MA instead of out
///
/// A side sends one transfer at a time, first come first served; after more than 8 in a row it lets
/// the other side go first. Source: ASTRA-sim's LogGP and MemBus (518bd51), whose L, o, g and G are
/// those of Alexandrov et al., "LogGP", SPAA 1995.
class SharedBus {
 public:
  struct Transfer {
    Bytes bytes{0};
    bool processed = false;
    bool sent_back = false;
    Time afterwards{0};  ///< from the end of the transfer to `then`
    Event then;
  };

  SharedBus(std::size_t ranks, const Bus& bus) : bus_(bus), sides_(ranks * kSides) {}

  void to_memory(Events& events, std::uint32_t rank, const Transfer& transfer);
  void to_npu(Events& events, std::uint32_t rank, const Transfer& transfer);

  /// Handles events of kind bus. Transfers that are over push their `then`.
  void handle(Events& events, const Event& event);

 private:
  static constexpr std::uint32_t kSides = 4;
  enum Side : std::uint32_t { kNpu = 0, kEndpoint = 1, kNpuOfMemory = 2, kMemory = 3 };
  enum Ends : std::uint16_t { kSent, kReceived, kProcessed };
  enum class State : std::uint8_t { free, sending, receiving };
  /// Then says what the NPU's side does with a transfer that the memory bus has carried.
  enum class Then : std::uint8_t { retire, send, process };

  struct Request {
    std::uint32_t transfer = 0;
    Then then = Then::retire;
    bool returns = false;  ///< on the memory bus: to memory and back
  };
  struct Port {
    State state = State::free;
    State before = State::free;
    bool processing = false;
    std::uint32_t in_a_row = 0;
    Time last{0};  ///< when a transfer last ended
    std::deque<Request> sends;
    std::deque<Request> receives;
    std::deque<std::uint32_t> processes;
  };

  static bool on_memory_bus(std::uint32_t port) { return port % kSides >= kNpuOfMemory; }
  static std::uint32_t npu_of(std::uint32_t port) { return port / kSides * kSides; }
  std::uint32_t keep(const Transfer& transfer);
  void push(Events& events, Time after, std::uint32_t port, Ends what) {
    events.push_own(port / kSides, events.now() + after, {port, 0, what, Event::Kind::bus});
  }
  Time duration(std::uint32_t port, const Request& request, Time start,
                std::initializer_list<Time> after) const;
  void request(Events& events, std::uint32_t port, const Request& request);
  void send_next(Events& events, std::uint32_t port);
  void received(Events& events, std::uint32_t port);
  void leave_memory_bus(Events& events, std::uint32_t port, const Request& request);
  void process_next(Events& events, std::uint32_t port);
  void processed(Events& events, std::uint32_t port);
  void retire(Events& events, std::uint32_t port, std::uint32_t transfer);

  Bus bus_;
  std::vector<Port> sides_;  ///< by rank and side
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> unused_;
};

}  // namespace orrery::astra
