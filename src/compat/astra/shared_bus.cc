// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/shared_bus.h"

#include "compat/astra/wires.h"

namespace orrery::astra {
namespace {

constexpr double kMemoryNanosecondsPerByte = 0.0038;  // of ASTRA-sim's memory bus
constexpr std::uint32_t kMostInARow = 8;
constexpr Time kProcessingStart = 50_ns;
constexpr std::int64_t kProcessedAtOnce = 100;  // bytes

}  // namespace

void SharedBus::to_memory(Events& events, std::uint32_t rank, const Transfer& transfer) {
  request(events, rank * kSides + kMemory, {keep(transfer), Then::send});
}

void SharedBus::to_npu(Events& events, std::uint32_t rank, const Transfer& transfer) {
  request(events, rank * kSides + kEndpoint, {keep(transfer)});
}

std::uint32_t SharedBus::keep(const Transfer& transfer) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<std::uint32_t>(transfers_.size()));
    transfers_.emplace_back();
  }
  const std::uint32_t index = unused_.back();
  unused_.pop_back();
  transfers_[index] = transfer;
  return index;
}

/// start + (bytes - 1) G + after, rounded down as a whole, in ASTRA-sim's order of additions.
Time SharedBus::duration(std::uint32_t port, const Request& request, Time start,
                         std::initializer_list<Time> after) const {
  const auto nanoseconds = [](Time time) { return static_cast<double>(time.value()) / 1e3; };
  const auto bytes = static_cast<double>(transfers_[request.transfer].bytes.value() - 1);
  double sum = nanoseconds(start) +
               bytes * (on_memory_bus(port) ? kMemoryNanosecondsPerByte : bus_.gap_per_byte_ns);
  for (const Time each : after) {
    sum += nanoseconds(each);
  }
  return whole_nanoseconds(sum);
}

void SharedBus::request(Events& events, std::uint32_t port, const Request& request) {
  sides_[port].sends.push_back(request);
  send_next(events, port);
}

void SharedBus::send_next(Events& events, std::uint32_t port) {
  Port& from = sides_[port];
  Port& to = sides_[port ^ 1];
  if (from.state != State::free || from.sends.empty()) {
    return;
  }
  if (from.in_a_row > kMostInARow && !to.sends.empty() && to.in_a_row <= kMostInARow) {
    send_next(events, port ^ 1);
    return;
  }
  const Time since = events.now() - from.last;
  const bool waits = from.before == State::sending && bus_.overhead + since <= bus_.gap;
  const Time start = waits ? bus_.gap - since : bus_.overhead;
  const Request next = from.sends.front();
  from.sends.pop_front();
  to.receives.push_back(next);
  to.before = to.state;
  to.state = State::receiving;
  to.in_a_row = 0;
  push(events, duration(port, next, start, {bus_.latency, bus_.overhead}), port ^ 1, kReceived);
  from.state = State::sending;
  push(events, duration(port, next, start, {}), port, kSent);
}

void SharedBus::handle(Events& events, const Event& event) {
  const std::uint32_t port = event.subject;
  Port& side = sides_[port];
  switch (event.phase) {
    case kSent:
      side.last = events.now();
      side.before = side.state;
      side.state = State::free;
      ++side.in_a_row;
      break;
    case kReceived:
      received(events, port);
      break;
    default:
      processed(events, port);
  }
  send_next(events, port);
}

void SharedBus::received(Events& events, std::uint32_t port) {
  Port& side = sides_[port];
  side.last = events.now();
  side.before = side.state;
  if (side.receives.size() < 2) {
    side.state = State::free;
  }
  Request got = side.receives.front();
  side.receives.pop_front();
  Transfer& transfer = transfers_[got.transfer];
  const std::uint32_t behind = port + kNpuOfMemory;  // of the NPU's side
  if (on_memory_bus(port)) {
    if (got.returns) {
      got.returns = false;
      side.sends.push_back(got);
    } else {
      leave_memory_bus(events, npu_of(port), got);
    }
  } else if (port % kSides == kEndpoint) {
    retire(events, port, got.transfer);
  } else if (transfer.processed) {
    transfer.processed = false;
    request(events, behind, {got.transfer, Then::process, true});
  } else if (transfer.sent_back) {
    transfer.sent_back = false;
    request(events, behind, {got.transfer, Then::send, true});
  } else {
    request(events, behind, {got.transfer, Then::retire, false});
  }
}

void SharedBus::leave_memory_bus(Events& events, std::uint32_t port, const Request& request) {
  switch (request.then) {
    case Then::retire:
      retire(events, port, request.transfer);
      break;
    case Then::send:
      sides_[port].sends.push_back({request.transfer});
      break;
    case Then::process:
      sides_[port].processes.push_back(request.transfer);
      process_next(events, port);
      break;
  }
  send_next(events, port);
}

void SharedBus::process_next(Events& events, std::uint32_t port) {
  Port& side = sides_[port];
  if (side.processing || side.processes.empty()) {
    return;
  }
  const std::int64_t bytes = transfers_[side.processes.front()].bytes.value();
  side.processing = true;
  push(events, bus_.reduction * (bytes / kProcessedAtOnce) + kProcessingStart, port, kProcessed);
}

void SharedBus::processed(Events& events, std::uint32_t port) {
  Port& side = sides_[port];
  const std::uint32_t done = side.processes.front();
  side.processes.pop_front();
  side.processing = false;
  const bool back = transfers_[done].sent_back;
  transfers_[done].sent_back = false;
  request(events, port + kNpuOfMemory, {done, back ? Then::send : Then::retire, back});
  process_next(events, port);
}

void SharedBus::retire(Events& events, std::uint32_t port, std::uint32_t index) {
  events.push_own(port / kSides, events.now() + transfers_[index].afterwards,
                  transfers_[index].then);
  unused_.push_back(index);
}

}  // namespace orrery::astra
