// SPDX-License-Identifier: Apache-2.0
/// The chain of work that decides how long a step takes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/names.h"
#include "machine/machine.h"
#include "simulate/timeline.h"
#include "study/kernel_bound.h"

namespace orrery::study {

enum class PathKind : std::uint8_t { kernel, slowdown, collective, message, copy, host, wait };
inline constexpr int kPathKindCount = 7;
constexpr auto named_values(PathKind) {
  return std::to_array<Named<PathKind>>({
      {PathKind::kernel, "kernel", "kernels at full speed"},
      {PathKind::slowdown, "slowdown", "what concurrent communication adds to kernels"},
      {PathKind::collective, "collective", "collectives, from their last member's arrival"},
      {PathKind::message, "message", "sends, until the message has arrived"},
      {PathKind::copy, "copy", "copies to or from a lower memory tier"},
      {PathKind::host, "host", "the host issues kernels and collectives, or works itself"},
      {PathKind::wait, "wait", "nothing recorded ran"},
  });
}

struct PathEntry {
  PathKind kind = PathKind::kernel;
  std::string name;  ///< of a category "backward gemm", of an item "backward fc1_gemm"
  Time time{0};
  std::int64_t count = 0;  ///< pieces of the path
};

/// All of a path's pieces by category and by name. Each list sums to step_time exactly.
struct CriticalPath {
  Time step_time{0};
  std::array<Time, kPathKindCount> by_kind{};
  std::array<Time, kBoundCount> kernels{};  ///< its kernels by what bounds them
  std::vector<PathEntry> categories;        ///< longest first; ties by name
  std::vector<PathEntry> items;
  Time operator[](PathKind kind) const { return by_kind[static_cast<std::size_t>(kind)]; }
};

/// Walks back from the end of the step. Whatever ends at a moment was waiting, before it began, for
///
///   compute, send   the last of its stream's previous node and its dependencies
///   collective      its last member to arrive, and that member's previous node and dependencies
///   receive         the message: goes on at the sender
///   host            where issuing was what limited: the host's previous work, back to the last
///                   node that the host waited for
///
/// so that the pieces touch and cover [0, step_time]. Of several that ended at the same moment, one
/// is taken; there may be further critical paths. Pieces of folded ranks are those of their mirror.
/// A kernel's `slowdown` is its time beyond the one on an idle device.
/// Requires a timeline with recorded spans of this workload on this machine.
/// Source: Yang & Miller, Critical path analysis for the execution of parallel and distributed
/// programs, ICDCS 1988.
CriticalPath critical_path(const graph::Workload& workload, const simulate::Timeline& timeline,
                           const machine::Machine& machine);

}  // namespace orrery::study
