// SPDX-License-Identifier: Apache-2.0
/// The rows of a training step's tables (graph/workload.h) by name: parallel axes, streams, phases,
/// categories of exposed time; and the messages of a pipeline.
#pragma once

#include <cstdint>

#include "base/names.h"
#include "graph/workload.h"

namespace orrery::plan {

/// A communicator that every rank has one of. tp, cp, dp and pp are the axes of the rank layout;
/// the others are made of parts of them, or are no communicator between ranks at all (to_host,
/// from_host: the rank's own link to its host).
enum class Axis : std::uint8_t {
  tp,
  cp,
  dp,
  pp,
  embedding,
  ep,
  etp,
  edp,
  cp_a2a,
  cp_ring,
  shard,
  grad_shard,
  optimizer_shard,
  replica,
  update,
  to_host,
  from_host,
  secondary,
  reduce_near,
  reduce_far,
  outer
};
inline constexpr int kAxisCount = 21;
constexpr auto named_values(Axis) {
  return std::to_array<Named<Axis>>({
      {Axis::tp, "tp", "tensor (and sequence) parallel"},
      {Axis::cp, "cp", "context parallel"},
      {Axis::dp, "dp", "data parallel, with context parallel ranks; ZeRO shards"},
      {Axis::pp, "pp", "pipeline parallel"},
      {Axis::embedding, "embedding", "tied embedding of first and last stage"},
      {Axis::ep, "ep", "expert parallel"},
      {Axis::etp, "etp", "tensor parallel inside an expert"},
      {Axis::edp, "edp", "data parallel of experts"},
      {Axis::cp_a2a, "cp_a2a", "context parallel, all-to-all part"},
      {Axis::cp_ring, "cp_ring", "context parallel, ring part"},
      {Axis::shard, "shard", "ranks that share ZeRO parameters, fewer than dp"},
      {Axis::grad_shard, "grad_shard", "ranks that share ZeRO gradients, fewer than dp"},
      {Axis::optimizer_shard, "optimizer_shard", "from gradient shards to optimizer shards"},
      {Axis::replica, "replica", "ranks with the same optimizer shard"},
      {Axis::update, "update", "from optimizer shards to parameter shards"},
      {Axis::to_host, "to_host", "copies from the device to a lower memory tier"},
      {Axis::from_host, "from_host", "copies from a lower memory tier to the device"},
      {Axis::secondary, "secondary", "ranks that share a secondary copy of ZeRO parameters"},
      {Axis::reduce_near, "reduce_near", "first hop of quantised gradients"},
      {Axis::reduce_far, "reduce_far", "second hop of quantised gradients"},
      {Axis::outer, "outer", "workers that step alone between averages"},
  });
}
constexpr graph::GroupRow row_of(Axis /*axis*/) {
  return {};
}

enum class StepPhase : std::uint8_t { forward, backward, recompute, optimizer };
constexpr auto named_values(StepPhase) {
  return std::to_array<Named<StepPhase>>({
      {StepPhase::forward, "forward", "forward kernels"},
      {StepPhase::backward, "backward", "backward kernels"},
      {StepPhase::recompute, "recompute", "forward kernels run again before backward"},
      {StepPhase::optimizer, "optimizer", "optimizer kernels"},
  });
}
constexpr graph::PhaseRow row_of(StepPhase /*phase*/) {
  return {};
}

/// A stream of kernels, one that waits for pipeline messages, one per axis (stream_of).
enum class StepStream : std::uint8_t {
  compute,
  receive,
  tp,
  pp = tp + 3,
  to_host = tp + 15,
  from_host
};
constexpr graph::StreamRow row_of(StepStream /*stream*/) {
  return {};
}
constexpr graph::StreamIndex stream_of(Axis axis) {
  return graph::StreamIndex(static_cast<std::size_t>(axis) +
                            static_cast<std::size_t>(StepStream::tp));
}
static_assert(stream_of(Axis::pp) == graph::StreamIndex(StepStream::pp) &&
              stream_of(Axis::from_host) == graph::StreamIndex(StepStream::from_host));

/// Exposed names what exposed communication of a training step counts as, the first that is active
/// first.
enum class Exposed : std::uint8_t { tp, cp, ep, dp, embedding, pp, copy };
constexpr auto named_values(Exposed) {
  return std::to_array<Named<Exposed>>({
      {Exposed::tp, "tp_exposed", "tensor-parallel communication, nothing computing"},
      {Exposed::cp, "cp_exposed", "context-parallel exchange, nothing computing"},
      {Exposed::ep, "ep_exposed", "tokens on their way to or from experts"},
      {Exposed::dp, "dp_exposed", "data-parallel communication, nothing computing"},
      {Exposed::embedding, "embedding_exposed", "tied-embedding all-reduce"},
      {Exposed::pp, "pp_exposed", "pipeline message under way to or from this rank"},
      {Exposed::copy, "copy_exposed", "copies to or from lower memory tiers"},
  });
}
constexpr graph::CategoryRow row_of(Exposed /*category*/) {
  return {};
}
Exposed exposed_of(Axis axis);

/// Names the messages of the pipeline. Next and previous are cyclic (the last stage's next is the
/// first, for interleaved chunks). Messages of one channel between two ranks are received in the
/// order sent; every flow of a schedule has a channel of its own, so that this is the order wanted.
enum class Channel : std::uint8_t {
  forward,
  backward,
  returning_forward,
  returning_backward,
  mirror
};
inline constexpr int kChannelCount = 5;
constexpr auto named_values(Channel) {
  return std::to_array<Named<Channel>>({
      {Channel::forward, "forward", "activations to the next stage"},
      {Channel::backward, "backward", "gradients to the previous stage"},
      {Channel::returning_forward, "returning_forward", "activations to the previous stage"},
      {Channel::returning_backward, "returning_backward", "gradients to the next stage"},
      {Channel::mirror, "mirror", "between stages s and p-1-s, which hold copies of each other"},
  });
}
/// Return the stage to which `stage` of `stages` sends on a channel, and the one from which it
/// receives.
std::int64_t target_stage(Channel channel, std::int64_t stage, std::int64_t stages);
std::int64_t source_stage(Channel channel, std::int64_t stage, std::int64_t stages);

/// Ranks as coordinates: rank = sum over axes of coordinate * stride, innermost axis first.
/// Communicators that are not one axis (expert parallel ranks, shards of a part of dp, dp with cp)
/// are products of digits of the rank number.
struct RankLayout {
  struct Entry {
    Axis axis;
    std::int64_t size;
  };
  struct Communicator {
    Axis axis;
    std::vector<graph::Digit> digits;  ///< innermost first
  };
  std::vector<Entry> axes;  ///< innermost first; each of tp, cp, dp, pp at most once
  std::vector<Communicator> communicators{};  ///< win over an axis of the same name

  std::int64_t ranks() const;
  /// Digits of the communicator, innermost first, none of size 1; of `embedding` those of pp.
  std::vector<graph::Digit> digits(Axis axis) const;
  /// Returns the members along an axis. `embedding`: of the stages only the first and the last, if
  /// they differ.
  graph::Members members(Axis axis) const;
  std::int64_t size(Axis axis) const;  ///< members; 1 when absent
  /// Returns the rank distance of neighbours on the innermost digit; 1 when absent.
  std::int64_t stride(Axis axis) const;
  /// Returns the number of `rank` in its group of `axis`.
  std::int64_t coordinate(std::int64_t rank, Axis axis) const;
  /// Returns `rank` with its coordinate on `axis` replaced.
  std::int64_t with(std::int64_t rank, Axis axis, std::int64_t coordinate) const;

  /// Returns, for a send of `stage` on a channel, or its receive, the other rank minus the own one.
  std::int64_t peer(graph::Node::Kind end, Channel channel, std::int64_t stage) const;
};

/// Returns a workload without programs and source: ranks, roles (one per stage: "stage 0" ...) and
/// tables. Program i is role i's; assign others to roles that share. The last rows of groups and
/// streams, from `secondary` on, are left out where no communicator has them.
graph::Workload step_workload(const RankLayout& layout);

}  // namespace orrery::plan
