// SPDX-License-Identifier: Apache-2.0
/// What one run was like.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/units.h"
#include "graph/workload.h"

namespace orrery {

/// What an instant of a rank's time counts as. At every instant exactly one: the compute stream's
/// work if it runs (host: it waits for the host to issue), else the first of the rank's active
/// communications in the order below, else bubble.
enum class TimeCategory : std::uint8_t {
  forward,
  backward,
  recompute,
  optimizer,
  host,
  tp_exposed,
  cp_exposed,
  ep_exposed,
  dp_exposed,
  embedding_exposed,
  pp_exposed,
  copy_exposed,
  bubble
};
inline constexpr int kTimeCategoryCount = 13;
template <>
inline constexpr auto kNames<TimeCategory> = std::to_array<Named<TimeCategory>>({
    {TimeCategory::forward, "forward", "forward kernels"},
    {TimeCategory::backward, "backward", "backward kernels"},
    {TimeCategory::recompute, "recompute", "forward kernels run again before backward"},
    {TimeCategory::optimizer, "optimizer", "optimizer kernels"},
    {TimeCategory::host, "host", "compute stream empty because the host issues too slowly"},
    {TimeCategory::tp_exposed, "tp_exposed", "tensor-parallel communication, nothing computing"},
    {TimeCategory::cp_exposed, "cp_exposed", "context-parallel exchange, nothing computing"},
    {TimeCategory::ep_exposed, "ep_exposed", "tokens on their way to or from experts"},
    {TimeCategory::dp_exposed, "dp_exposed", "data-parallel communication, nothing computing"},
    {TimeCategory::embedding_exposed, "embedding_exposed", "tied-embedding all-reduce"},
    {TimeCategory::pp_exposed, "pp_exposed", "pipeline message under way to or from this rank"},
    {TimeCategory::copy_exposed, "copy_exposed", "copies to or from lower memory tiers"},
    {TimeCategory::bubble, "bubble", "waiting for other stages"},
});

/// What exposed communication on an axis counts as.
constexpr TimeCategory exposed_category(Axis axis) {
  switch (axis) {
    case Axis::tp:
      return TimeCategory::tp_exposed;
    case Axis::cp:
    case Axis::cp_a2a:
    case Axis::cp_ring:
      return TimeCategory::cp_exposed;
    case Axis::ep:
    case Axis::etp:
      return TimeCategory::ep_exposed;
    case Axis::dp:
    case Axis::edp:
    case Axis::shard:
    case Axis::grad_shard:
    case Axis::optimizer_shard:
    case Axis::replica:
    case Axis::update:
      return TimeCategory::dp_exposed;
    case Axis::embedding:
      return TimeCategory::embedding_exposed;
    case Axis::pp:
      return TimeCategory::pp_exposed;
    case Axis::to_host:
    case Axis::from_host:
      return TimeCategory::copy_exposed;
  }
  return TimeCategory::bubble;
}

struct Breakdown {
  std::array<Time, kTimeCategoryCount> time{};  ///< sums to step_time exactly
  std::array<Time, kAxisCount> hidden{};        ///< communication while compute runs, by axis
  Time operator[](TimeCategory c) const { return time[static_cast<std::size_t>(c)]; }
};

/// One span of one stream of a simulated rank (recorded on request).
struct Span {
  std::int64_t rank = 0;
  Stream stream = Stream::compute;
  Axis axis = Axis::tp;  ///< of communication spans
  Phase phase = Phase::forward;
  int template_index = 0;
  int node = 0;
  int chunk = 0;
  std::int64_t microbatch = 0;
  Time begin{0};
  Time end{0};
  Time host_stall{0};  ///< part of a compute span in which it waited for the host
  /// When its stream and its dependencies allowed it. A collective begins with its last member's.
  Time ready{0};
  Time host_begin{0};  ///< the host issued it from here ...
  Time host_end{0};    ///< ... to here; equal when that takes no time
};

struct FoldReport {
  std::int64_t ranks = 0;
  std::int64_t simulated = 0;
  std::vector<std::string> reasons;  ///< why an axis was not folded
};

struct Timeline {
  Time step_time{0};
  std::int64_t critical_rank = 0;   ///< finishes last (the lowest such)
  Breakdown breakdown;              ///< of the critical rank
  std::vector<std::int64_t> ranks;  ///< simulated ranks, ascending
  std::vector<Time> finish;         ///< of each simulated rank
  std::vector<Breakdown> by_rank;   ///< of each simulated rank
  std::uint64_t events = 0;         ///< node completions
  FoldReport fold;
  /// In order of end; empty unless recorded. A message is the span of its send, followed by the
  /// same on the receiver's stream `receive`.
  std::vector<Span> spans;
};

}  // namespace orrery
