// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "machine/network/packets/state.h"

namespace orrery::packets {
namespace {

constexpr std::int64_t kLeastRoom = 2;  // packets: one is sent, one waits

// Packets at 100 Gbit/s, as csg-htsim's runs have them.
constexpr std::int64_t usual_queue(network::Protocol protocol) {
  return protocol == network::Protocol::eqds ? 35 : protocol == network::Protocol::swift ? 50 : 15;
}
constexpr std::int64_t usual_window(network::Protocol protocol) {
  return protocol == network::Protocol::eqds ? 50 : protocol == network::Protocol::swift ? 15 : 20;
}

/// Returns a count of packets at 100 Gbit/s scaled to another rate.
std::int64_t scaled(std::int64_t given, std::int64_t usual, Bandwidth rate) {
  return given > 0
             ? given
             : std::max<std::int64_t>(
                   1, std::llround(static_cast<double>(usual) * rate.value() / kCalibratedRate));
}

}  // namespace

Rules::Rules(const network::PacketOptions& options) : options_(options) {
  if (is(network::Protocol::swift)) {
    options_.header = Bytes(40);
  }
  if (options_.wire == Bytes(0)) {
    options_.wire = Bytes(is(network::Protocol::eqds)    ? 4150
                          : is(network::Protocol::swift) ? 4000
                                                         : 9064);
  }
  if (options_.pause == 0) {
    options_.pause = is(network::Protocol::dcqcn) ? 200 : 15;
    options_.resume = is(network::Protocol::dcqcn) ? 180 : 12;
  }
  payload_ = wire() - (is(network::Protocol::swift) ? 0 : options_.header.value());
}

std::uint32_t Rules::window(Bandwidth line) const {
  return static_cast<std::uint32_t>(scaled(options_.window, usual_window(options_.protocol), line));
}

std::int64_t Rules::room(Bandwidth rate) const {
  const std::int64_t each = is(network::Protocol::ndp) ? payload() : wire();
  return std::max(scaled(options_.queue, usual_queue(options_.protocol), rate) * each,
                  kLeastRoom * wire());
}

}  // namespace orrery::packets
