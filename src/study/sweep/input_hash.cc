// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/input_hash.h"

#include <fmt/format.h>

#include <cstdint>

namespace orrery::sweep {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr Wide wide(std::uint64_t high, std::uint64_t low) {
  return (static_cast<Wide>(high) << 64U) | low;
}

constexpr Wide kOffset = wide(0x6c62272e07bb0142, 0x62b821756295c58d);
constexpr Wide kPrime = wide(0x0000000001000000, 0x000000000000013b);

}  // namespace

std::string input_hash(std::string_view text) {
  Wide hash = kOffset;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  }
  return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(hash >> 64U),
                     static_cast<std::uint64_t>(hash));
}

}  // namespace orrery::sweep
