// SPDX-License-Identifier: Apache-2.0
/// The execution graph: what every rank does in one run, as plain values.
///
/// A `Program` (one per role, not per rank) is a set of small DAG `Template`s. A `Source` says
/// which template a role issues as its i-th instance; instances exist only while they run. Nodes of
/// a template are listed in issue order; each goes to one in-order stream of its rank and starts
/// when it is the oldest unfinished node of its stream and all its dependencies have completed.
///
///   Workload = ranks in a mixed-radix layout of parallel axes
///            + role of each rank (its coordinate on the pp axis)
///            + Program per role + Source
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "base/units.h"
#include "graph/operator.h"

namespace orrery {

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
  from_host
};
inline constexpr int kAxisCount = 17;
template <>
inline constexpr auto kNames<Axis> = std::to_array<Named<Axis>>({
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
});

/// What a compute node's time counts as.
enum class Phase : std::uint8_t { forward, backward, recompute, optimizer };
inline constexpr int kPhaseCount = 4;
template <>
inline constexpr auto kNames<Phase> = std::to_array<Named<Phase>>({
    {Phase::forward, "forward", "forward pass"},
    {Phase::backward, "backward", "input and weight gradients"},
    {Phase::recompute, "recompute", "forward again, before backward"},
    {Phase::optimizer, "optimizer", "gradient norm, update, casts"},
});

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send_recv
};
template <>
inline constexpr auto kNames<CollectiveKind> = std::to_array<Named<CollectiveKind>>({
    {CollectiveKind::all_reduce, "all_reduce", "every rank ends with the sum"},
    {CollectiveKind::all_gather, "all_gather", "every rank ends with every shard"},
    {CollectiveKind::reduce_scatter, "reduce_scatter", "every rank ends with its shard of the sum"},
    {CollectiveKind::all_to_all, "all_to_all", "shard i of rank j goes to rank i"},
    {CollectiveKind::broadcast, "broadcast", "every rank ends with the root's buffer"},
    {CollectiveKind::send_recv, "send_recv",
     "a ring shift: every rank's buffer goes to the next rank"},
});

/// Every rank has these in-order streams. Compute nodes run on `compute`; a collective, send or
/// copy on the stream of its communicator, as with one NCCL communicator per axis; `receive` only
/// waits.
enum class Stream : std::uint8_t {
  compute,
  receive,
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
  from_host
};
inline constexpr int kStreamCount = 2 + kAxisCount;
template <>
inline constexpr auto kNames<Stream> = std::to_array<Named<Stream>>({
    {Stream::compute, "compute", "kernels"},
    {Stream::receive, "receive", "pipeline receives"},
    {Stream::tp, "tp", "tensor-parallel collectives"},
    {Stream::cp, "cp", "context-parallel exchange"},
    {Stream::dp, "dp", "data-parallel collectives"},
    {Stream::pp, "pp", "pipeline sends"},
    {Stream::embedding, "embedding", "tied-embedding all-reduce"},
    {Stream::ep, "ep", "tokens to and from experts"},
    {Stream::etp, "etp", "tensor-parallel collectives of experts"},
    {Stream::edp, "edp", "data-parallel collectives of experts"},
    {Stream::cp_a2a, "cp_a2a", "context-parallel all-to-all"},
    {Stream::cp_ring, "cp_ring", "context-parallel ring"},
    {Stream::shard, "shard", "gathers of sharded parameters"},
    {Stream::grad_shard, "grad_shard", "reductions of sharded gradients"},
    {Stream::optimizer_shard, "optimizer_shard", "reductions to optimizer shards"},
    {Stream::replica, "replica", "reductions over replicas of shards"},
    {Stream::update, "update", "gathers of updated parameters"},
    {Stream::to_host, "to_host", "copies to a lower memory tier"},
    {Stream::from_host, "from_host", "copies from a lower memory tier"},
});
constexpr Stream stream_of(Axis axis) {
  return static_cast<Stream>(static_cast<int>(axis) + 2);
}

/// The communicator of a communication stream. Requires one other than compute and receive.
constexpr Axis axis_of(Stream stream) {
  return static_cast<Axis>(static_cast<int>(stream) - 2);
}
static_assert(stream_of(Axis::tp) == Stream::tp && stream_of(Axis::from_host) == Stream::from_host);

/// Which message of the pipeline. Next and previous are cyclic (the last stage's next is the first,
/// for interleaved chunks). Messages of one channel between two ranks are received in the order
/// sent; every flow of a schedule has a channel of its own, so that this is the order wanted.
enum class Channel : std::uint8_t {
  forward,
  backward,
  returning_forward,
  returning_backward,
  mirror
};
inline constexpr int kChannelCount = 5;
template <>
inline constexpr auto kNames<Channel> = std::to_array<Named<Channel>>({
    {Channel::forward, "forward", "activations to the next stage"},
    {Channel::backward, "backward", "gradients to the previous stage"},
    {Channel::returning_forward, "returning_forward", "activations to the previous stage"},
    {Channel::returning_backward, "returning_backward", "gradients to the next stage"},
    {Channel::mirror, "mirror", "between stages s and p-1-s, which hold copies of each other"},
});
/// The stage to which `stage` of `stages` sends on a channel.
constexpr std::int64_t target_stage(Channel channel, std::int64_t stage, std::int64_t stages) {
  switch (channel) {
    case Channel::forward:
    case Channel::returning_backward:
      return (stage + 1) % stages;
    case Channel::backward:
    case Channel::returning_forward:
      return (stage + stages - 1) % stages;
    case Channel::mirror:
      return stages - 1 - stage;
  }
  return stage;
}

/// Node::tier of the machine's remote memory.
inline constexpr int kRemoteTier = -1;

struct Node {
  enum class Kind : std::uint8_t {
    compute,     ///< `operators`, one after the other
    collective,  ///< rendezvous of the group of `axis` that holds the rank
    send,        ///< starts a message; completes when it has arrived
    receive,     ///< completes when the message has arrived
    wait,        ///< takes no time; holds its stream until its dependencies are done
    copy,        ///< `bytes` to or from memory tier `tier`, on the stream to_host or from_host
                 ///< (of the remote memory: by all members of `axis`, if that is a communicator
                 ///< between ranks, through switches that multiply or add up the same bytes)
  };

  Kind kind = Kind::compute;
  Stream stream = Stream::compute;
  Phase phase = Phase::forward;
  std::string name;
  std::vector<Operator> operators;  ///< of compute
  Axis axis = Axis::tp;             ///< of collective, copy
  CollectiveKind collective = CollectiveKind::all_reduce;
  /// Of a collective: the whole buffer as nccl-tests counts it (all_reduce, send_recv: per-rank
  /// buffer;
  /// all_gather, reduce_scatter, all_to_all: the gathered buffer, ranks x shard).
  /// Of a send: the message.
  Bytes bytes{0};
  /// Of an all_to_all of tokens, each for `copies` experts chosen at random: what goes to the same
  /// innermost dimension (node) crosses to it once and is spread inside. 0: every copy travels.
  std::int64_t copies = 0;
  Channel channel = Channel::forward;  ///< of send, receive
  int tier = 1;            ///< of copy: index into the device's memory tiers, or kRemoteTier
  bool host_sync = false;  ///< the host waits for this node before it issues further kernels
  std::vector<int>
      after;  ///< nodes of this template that must be complete; all earlier in the list
};

struct Template {
  std::string name;  ///< "forward chunk 0"
  std::vector<Node> nodes;
};

struct Program {
  std::string name;  ///< "stage 3"
  std::vector<Template> templates;
};

struct Instance {
  int template_index = 0;
  int chunk = 0;  ///< model chunk (virtual stage) on this rank
  std::int64_t microbatch = 0;
};

/// The issue list of each role, as a pure function. Ends with nullopt.
class Source {
 public:
  virtual ~Source() = default;
  virtual std::optional<Instance> issue(int role, std::int64_t index) const = 0;
  virtual std::int64_t length(int role) const = 0;
};

/// Part of a rank number: rank / stride % size.
struct Digit {
  std::int64_t size = 1;
  std::int64_t stride = 1;

  friend bool operator==(const Digit&, const Digit&) = default;
};

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
    std::vector<Digit> digits;  ///< innermost first
  };
  std::vector<Entry> axes;  ///< innermost first; each of tp, cp, dp, pp at most once
  std::vector<Communicator> communicators{};  ///< win over an axis of the same name

  std::int64_t ranks() const;
  /// Digits of the communicator, innermost first, none of size 1. embedding: one of two, if pp > 1.
  std::vector<Digit> digits(Axis axis) const;
  std::int64_t size(Axis axis) const;  ///< members; 1 when absent
  /// Rank distance of neighbours on the innermost digit; 1 when absent.
  std::int64_t stride(Axis axis) const;
  /// Number of `rank` in its group of `axis`.
  std::int64_t coordinate(std::int64_t rank, Axis axis) const;
  /// `rank` with its coordinate on `axis` replaced.
  std::int64_t with(std::int64_t rank, Axis axis, std::int64_t coordinate) const;
  /// Members of the communicator of `axis` that holds `rank`, in order of their coordinate. For
  /// `embedding`: first and last stage (empty when rank is in neither).
  std::vector<std::int64_t> group(std::int64_t rank, Axis axis) const;
  /// The coarsest digits of which every axis but pp and every communicator but embedding is made,
  /// innermost first; nullopt when their boundaries do not divide one another.
  std::optional<std::vector<Digit>> atoms() const;
};

struct Workload {
  RankLayout layout;
  std::vector<Program> programs;  ///< by role = coordinate on pp
  std::shared_ptr<const Source> source;
  Time host_dispatch{0};  ///< host time to issue one kernel (0: the host is never in the way)
};

/// Structural mistakes, named by program, template and node: dependencies not earlier in the list,
/// a node on a stream not its own, sends without receives (counted over the whole issue list per
/// channel), collectives that the members of a group do not all issue in the same order, negative
/// sizes, template indices out of range.
Result<void> verify(const Workload& workload);

struct WorkloadStatistics {
  std::int64_t instances = 0;  ///< over all roles
  std::int64_t nodes = 0;      ///< node executions over all roles, one rank per role
  Flops flops{0};              ///< per step, one rank per role summed
};
WorkloadStatistics statistics(const Workload& workload);

}  // namespace orrery
