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

/// A parallel axis; also names the communicator over it. `embedding` is the communicator of the
/// first and last pipeline stage (tied embeddings); it is no axis of the layout.
enum class Axis : std::uint8_t { tp, dp, pp, embedding };
inline constexpr int kAxisCount = 4;
template <>
inline constexpr auto kNames<Axis> = std::to_array<Named<Axis>>({
    {Axis::tp, "tp", "tensor (and sequence) parallel"},
    {Axis::dp, "dp", "data parallel, ZeRO shards"},
    {Axis::pp, "pp", "pipeline parallel"},
    {Axis::embedding, "embedding", "tied embedding of first and last stage"},
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
  broadcast
};
template <>
inline constexpr auto kNames<CollectiveKind> = std::to_array<Named<CollectiveKind>>({
    {CollectiveKind::all_reduce, "all_reduce", "every rank ends with the sum"},
    {CollectiveKind::all_gather, "all_gather", "every rank ends with every shard"},
    {CollectiveKind::reduce_scatter, "reduce_scatter", "every rank ends with its shard of the sum"},
    {CollectiveKind::all_to_all, "all_to_all", "shard i of rank j goes to rank i"},
    {CollectiveKind::broadcast, "broadcast", "every rank ends with the root's buffer"},
});

/// Every rank has these in-order streams. Compute nodes run on `compute`; a collective or send on
/// the stream of its communicator, as with one NCCL communicator per axis; `receive` only waits.
enum class Stream : std::uint8_t { compute, tp, dp, pp, embedding, receive };
inline constexpr int kStreamCount = 6;
template <>
inline constexpr auto kNames<Stream> = std::to_array<Named<Stream>>({
    {Stream::compute, "compute", "kernels"},
    {Stream::tp, "tp", "tensor-parallel collectives"},
    {Stream::dp, "dp", "data-parallel collectives"},
    {Stream::pp, "pp", "pipeline sends"},
    {Stream::embedding, "embedding", "tied-embedding all-reduce"},
    {Stream::receive, "receive", "pipeline receives"},
});
constexpr Stream stream_of(Axis axis) {
  switch (axis) {
    case Axis::tp:
      return Stream::tp;
    case Axis::dp:
      return Stream::dp;
    case Axis::pp:
      return Stream::pp;
    case Axis::embedding:
      return Stream::embedding;
  }
  return Stream::tp;
}

/// The communicator of a communication stream. Requires tp, dp, pp or embedding.
constexpr Axis axis_of(Stream stream) {
  for (const Axis axis : {Axis::tp, Axis::dp, Axis::pp}) {
    if (stream_of(axis) == stream) {
      return axis;
    }
  }
  return Axis::embedding;
}

/// Which message of the pipeline: activations to the next stage, or gradients to the previous one
/// (cyclic: the last stage's next is the first, for interleaved chunks). Messages of one channel
/// between two ranks are received in the order sent.
enum class Channel : std::uint8_t { forward, backward };
inline constexpr int kChannelCount = 2;

struct Node {
  enum class Kind : std::uint8_t {
    compute,     ///< `operators`, one after the other
    collective,  ///< rendezvous of the group of `axis` that holds the rank
    send,        ///< starts a message; completes when it has arrived
    receive,     ///< completes when the message has arrived
    wait,        ///< takes no time; holds its stream until its dependencies are done
  };

  Kind kind = Kind::compute;
  Stream stream = Stream::compute;
  Phase phase = Phase::forward;
  std::string name;
  std::vector<Operator> operators;  ///< of compute
  Axis axis = Axis::tp;             ///< of collective
  CollectiveKind collective = CollectiveKind::all_reduce;
  /// Of a collective: the whole buffer as nccl-tests counts it (all_reduce: per-rank buffer;
  /// all_gather, reduce_scatter, all_to_all: the gathered buffer, ranks x shard).
  /// Of a send: the message.
  Bytes bytes{0};
  Channel channel = Channel::forward;  ///< of send, receive
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

/// Ranks as coordinates: rank = sum over axes of coordinate * stride, innermost axis first.
struct RankLayout {
  struct Entry {
    Axis axis;
    std::int64_t size;
  };
  std::vector<Entry> axes;  ///< innermost first; each of tp, dp, pp once

  std::int64_t ranks() const;
  std::int64_t size(Axis axis) const;    ///< 1 when absent; embedding: 2 if pp > 1
  std::int64_t stride(Axis axis) const;  ///< rank distance of neighbours on the axis
  std::int64_t coordinate(std::int64_t rank, Axis axis) const;
  /// `rank` with its coordinate on `axis` replaced.
  std::int64_t with(std::int64_t rank, Axis axis, std::int64_t coordinate) const;
  /// Members of the communicator of `axis` that holds `rank`, in order of their coordinate. For
  /// `embedding`: first and last stage (empty when rank is in neither).
  std::vector<std::int64_t> group(std::int64_t rank, Axis axis) const;
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
