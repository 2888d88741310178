// SPDX-License-Identifier: Apache-2.0
/// The tables of plan.cc, which main.cc runs: every rank's calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace plan {

/// C[m, n] = A[m, k] B[k, n], `batch` times; or, with batch 0, `bytes` that are read and written,
/// or else `nanoseconds` that a loop lasts.
struct Work {
  std::int64_t batch;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::int64_t bytes;
  std::int64_t nanoseconds;

  friend bool operator==(const Work&, const Work&) = default;
};

enum class Kind : std::uint8_t {
  compute,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  ring_shift,
  send,
  receive,
};
/// Returns the name of a kind in rows of measurements and in telemetry.
constexpr const char* name_of(Kind kind) {
  constexpr std::array kNames{"compute",        "all_reduce", "all_gather",
                              "reduce_scatter", "all_to_all", "broadcast",
                              "send_recv",      "send",       "receive"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// One step of a rank. It waits for earlier communication (indices of the same list), then computes
/// or starts its own. `elements` are 8 bytes each: of a rank's buffer (all_reduce, broadcast,
/// ring_shift, messages) or of a member's shard (the others).
struct Call {
  Kind kind;
  const char* name;
  int group;  ///< of a collective: number in `groups`
  std::int64_t elements;
  std::int64_t peer;  ///< of a message: the other rank minus the own one
  int tag;
  std::span<const int> waits;
  std::span<const Work> works;
};

/// A family of communicators: by rank, the color of its communicator (-1: in none) and its place.
struct Group {
  const char* name;
  std::span<const int> colors;
  std::span<const int> keys;
};

extern const int ranks;
extern const std::span<const Group> groups;
/// Returns the list of a rank.
std::span<const Call> calls_of(int rank);

}  // namespace plan
