// SPDX-License-Identifier: Apache-2.0
/// The execution graph: what every rank does in one run, as plain values.
///
/// A `Program` is a set of small DAG `Template`s; ranks of one role run one program, and roles that
/// do the same share it. A `Source` (source.h) says which template a role issues next; instances
/// exist only while they run. Nodes of a template are listed in issue order; each goes to one
/// stream of its rank and starts when the stream lets it and all its dependencies have completed.
///
///   Workload = ranks + role of each rank + Program per role + Source
///            + tables: communicators, streams, phases, categories of time, kinds of memory
///
/// The tables are filled by who makes the workload (workload/parallel: tp, cp, dp ...; a trace: its
/// process groups); nothing here knows what a row means.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "base/units.h"
#include "graph/index.h"
#include "graph/members.h"
#include "graph/operator.h"
#include "graph/source.h"
#include "graph/tensor.h"
#include "graph/token_route.h"

namespace orrery::graph {

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send_recv
};
constexpr auto named_values(CollectiveKind) {
  return std::to_array<Named<CollectiveKind>>({
      {CollectiveKind::all_reduce, "all_reduce", "every rank ends with the sum"},
      {CollectiveKind::all_gather, "all_gather", "every rank ends with every shard"},
      {CollectiveKind::reduce_scatter, "reduce_scatter",
       "every rank ends with its shard of the sum"},
      {CollectiveKind::all_to_all, "all_to_all", "shard i of rank j goes to rank i"},
      {CollectiveKind::broadcast, "broadcast", "every rank ends with the root's buffer"},
      {CollectiveKind::send_recv, "send_recv",
       "a ring shift: every rank's buffer goes to the next rank"},
  });
}

/// A Phase names what a compute node's time counts as: "forward".
struct Phase {
  std::string name;
  std::string meaning;
};

/// A Category names what communication counts as while nothing computes: "tp_exposed". Where
/// several communicate at once, the first in the table counts.
struct Category {
  std::string name;
  std::string meaning;
};

/// A MemoryKind names what the bytes of an allocation are for: "activations".
struct MemoryKind {
  std::string name;
  std::string meaning;
};

/// A family of communicators, of which every rank has at most one; or, without members, a name for
/// what is no communicator between ranks (messages, a rank's own link to its host).
struct Group {
  std::string name;
  std::string meaning;
  Members members;
  CategoryIndex category;
};

/// Says in which order the nodes of a stream run.
enum class Order : std::uint8_t {
  issue,      ///< one after the other, as issued: a GPU stream, an NCCL communicator
  readiness,  ///< one after the other, as they become ready (ties: as issued)
  none,       ///< each as soon as it is ready, beside others
};

struct Stream {
  std::string name;
  std::string meaning;
  Order order = Order::issue;
};

/// The stream of kernels: a row of every workload.
inline constexpr StreamIndex kComputeStream(std::size_t{0});

/// Node::tier of the machine's remote memory.
inline constexpr int kRemoteTier = -1;

/// Says which way a copy passes the port between its device and the machine around it.
enum class CopyDirection : std::uint8_t {
  none,  ///< not at all: it stays on the other side
  out,
  in,
};

struct Node {
  enum class Kind : std::uint8_t {
    compute,     ///< `operators`, one after the other, on kComputeStream
    collective,  ///< rendezvous of the rank's communicator of `group`; nothing where it is alone
    send,        ///< starts a message; completes when it has arrived
    receive,     ///< completes when the message has arrived
    wait,        ///< takes no time; holds its stream until its dependencies are done
    copy,        ///< `bytes` to or from memory tier `tier` (of the remote memory: by all members of
                 ///< `sharers`, if any, through switches that multiply or add up the same bytes)
    host,        ///< the sum of the durations of `operators`, on the host beside all kernels
  };

  Kind kind = Kind::compute;
  StreamIndex stream = kComputeStream;
  PhaseIndex phase{std::size_t{0}};
  std::string name;
  std::vector<Operator> operators;  ///< of compute and host
  int layer = -1;  ///< of communication: index into its role's `layers`; -1: of none
  /// The communicator of a collective; for messages, copies and work of the host the row that they
  /// count as.
  GroupIndex group;
  GroupIndex sharers;  ///< of a copy; none: the rank alone
  CollectiveKind collective = CollectiveKind::all_reduce;
  /// The size of a collective is the whole buffer as nccl-tests counts it (all_reduce, send_recv:
  /// per-rank buffer; all_gather, reduce_scatter, all_to_all: the gathered buffer, ranks x shard).
  /// Of a send, and of its receive: the message.
  Bytes bytes{0};
  /// An all_to_all of tokens has a route: what goes to the same innermost dimension (node) crosses
  /// to it once and is spread inside. None: every copy travels.
  TokenRoute route{};
  /// The peer of a message is the other rank minus the own one. Messages between two ranks with one
  /// `channel` are received in the order sent.
  std::int64_t peer = 0;
  std::uint32_t channel = 0;
  int tier = 1;  ///< of copy: index into the device's memory tiers, or kRemoteTier
  CopyDirection direction = CopyDirection::none;  ///< of copy
  /// A copy that goes on with the copy before it on its stream: it pays neither the tier's latency
  /// nor the host's dispatch.
  bool continues = false;
  /// A collective that a DMA engine moves once what it waits for is done: concurrent kernels lose
  /// to it what they lose to a message, and the host does not dispatch it.
  bool by_engine = false;
  /// A collective that runs beside whole training steps, at the network's background_share.
  bool background = false;
  bool host_sync = false;  ///< the host waits for this node before it issues further kernels
  /// Nodes of this template that must be complete; all earlier in the list. What tensors and the
  /// order of the own stream imply is among them or follows from them.
  std::vector<int> after;
  std::vector<Use> reads;
  std::vector<Use> writes;

  friend bool operator==(const Node&, const Node&) = default;
};

struct Template {
  std::string name;  ///< "forward chunk 0"
  std::vector<Node> nodes;
  std::vector<Tensor> tensors{};

  friend bool operator==(const Template&, const Template&) = default;
};

struct Program {
  std::vector<Template> templates;
  std::size_t part = 0;  ///< whose devices of a machine of several sorts run it
};

struct Role {
  std::string name;  ///< "stage 3"
  std::size_t program = 0;
  /// Every rank of the role holds these when the run begins; to its end, but for what a template's
  /// allocations that `enter` without having left before end.
  std::vector<Tensor> state{};
  std::vector<std::int64_t> layers{};  ///< numbers of the model's layers that it holds
};

/// The role of each rank: the number that `digits` make of it, or what the list says.
struct RoleMap {
  std::vector<Digit> digits;
  std::vector<std::int32_t> list;  ///< by rank; empty: by digits

  int of(std::int64_t rank) const {
    return list.empty() ? static_cast<int>(coordinate_of(digits, rank))
                        : list[static_cast<std::size_t>(rank)];
  }
};

struct Workload {
  std::int64_t ranks = 1;
  RoleMap role_map;
  std::vector<Role> roles;
  std::vector<Program> programs;
  std::shared_ptr<const Source> source;
  std::vector<Phase> phases;
  std::vector<Category> categories;
  std::vector<Group> groups;
  std::vector<Stream> streams;
  std::vector<MemoryKind> memory;
  Time host_dispatch{0};  ///< host time to issue one kernel (0: the host is never in the way)

  int role_of(std::int64_t rank) const { return role_map.of(rank); }
  const Role& role(int number) const { return roles[static_cast<std::size_t>(number)]; }
  const Program& program_of(int role_number) const { return programs[role(role_number).program]; }
  const Template& shape(int role_number, const Instance& instance) const {
    return program_of(role_number).templates[static_cast<std::size_t>(instance.template_index)];
  }
  const Group& group(GroupIndex index) const { return groups[*index]; }
  /// Returns the row of that name; none when there is none.
  GroupIndex group_named(std::string_view name) const;
};

/// Returns the coarsest digits of which all communicators and roles are made, those of roles left
/// out (their ranks run different programs), innermost first. nullopt where communicators or roles
/// are listed, or boundaries do not divide one another.
std::optional<std::vector<Digit>> atoms(const Workload& workload);

/// Reports structural mistakes, named by role, template and node: tables that do not fit
/// (verify_tables.h), dependencies not earlier in the list, rows that the tables do not have,
/// messages to ranks that do not exist, sends without receives (counted over the whole issue list
/// per channel), collectives that the members of a group do not all issue in the same order,
/// negative sizes, template indices out of range, tensors that are read before they are written or
/// without waiting for it. What only a run tells (a source that is no list) is not looked at.
Result<void> verify(const Workload& workload);

struct WorkloadStatistics {
  std::int64_t instances = 0;  ///< over all roles
  std::int64_t nodes = 0;      ///< node executions over all roles, one rank per role
  Flops flops{0};              ///< per step, one rank per role summed
};
/// Requires a source that is a list.
WorkloadStatistics statistics(const Workload& workload);

}  // namespace orrery::graph
