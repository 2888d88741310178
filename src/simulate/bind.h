// SPDX-License-Identifier: Apache-2.0
/// A workload's templates with the times that this machine gives them: what the event loop runs on.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "collective/cost.h"
#include "graph/workload.h"
#include "machine/machine.h"

namespace orrery::simulate {

/// Concurrent says what runs on a device beside its kernels and takes units or bandwidth from them.
/// Copies to other memory tiers do not: copy engines make them.
enum class Concurrent : std::uint8_t { nothing, messages, collectives };
inline constexpr std::size_t kConcurrentCount = 3;

/// Says how many communications of each sort are in flight.
struct ConcurrentCounts {
  std::array<int, kConcurrentCount> active{};

  void add(Concurrent sort, int change) { active[static_cast<std::size_t>(sort)] += change; }
  ConcurrentCounts without(const ConcurrentCounts& others) const {
    ConcurrentCounts left;
    for (std::size_t sort = 0; sort < kConcurrentCount; ++sort) {
      left.active[sort] = active[sort] - others.active[sort];
    }
    return left;
  }
  /// Returns the sort that takes most.
  Concurrent most() const {
    return active[static_cast<std::size_t>(Concurrent::collectives)] > 0 ? Concurrent::collectives
           : active[static_cast<std::size_t>(Concurrent::messages)] > 0  ? Concurrent::messages
                                                                         : Concurrent::nothing;
  }
};

/// One of a compute node. What is beside it takes its share whatever its number.
struct BoundKernel {
  Time work{0};                                            ///< alone
  std::array<double, kConcurrentCount> slowdown{1, 1, 1};  ///< by Concurrent, >= 1
  std::array<Time, kConcurrentCount> after{};  ///< of the node's kernels after it, by Concurrent

  double slow(Concurrent concurrent) const {
    return slowdown[static_cast<std::size_t>(concurrent)];
  }
  Time time(Concurrent concurrent) const {
    return Time::from_double(static_cast<double>(work.value()) * slow(concurrent));
  }
};

struct BoundNode {
  graph::Node::Kind kind = graph::Node::Kind::compute;
  bool host_sync = false;
  Concurrent takes =
      Concurrent::nothing;  ///< of communication: what it takes from kernels beside it
  graph::StreamIndex stream;
  graph::PhaseIndex phase;
  graph::GroupIndex group;
  std::uint32_t first_dependent = 0;  ///< into BoundTemplate::dependents
  std::uint32_t dependent_count = 0;
  int collective = -1;  ///< into Binding::collectives; of a copy too
  int flow = -1;        ///< of send and receive: into Binding::flows of the program
  Bytes bytes{0};       ///< of a send
  Time work{0};         ///< kernels back to back
  /// The time from the host's free moment until the last kernel is done, if the host is what
  /// limits: max over i of (i+1) dispatches + kernels i..n-1 back to back.
  Time host_span{0};
  Time host_cost{0};               ///< host time to issue the node
  std::uint32_t first_kernel = 0;  ///< into BoundTemplate::kernels
  std::uint32_t kernel_count = 0;
};

struct BoundTemplate {
  std::vector<BoundNode> nodes;
  std::vector<std::uint32_t> dependents;
  std::vector<BoundKernel> kernels;
  /// Holds, by stream of order `issue`, node numbers in issue order.
  std::vector<std::vector<std::uint32_t>> by_stream;
  /// Streams of order `issue` that have nodes, by their first node: the host issues in this order.
  std::vector<graph::StreamIndex> streams;
  /// Nodes of other streams that depend on nothing.
  std::vector<std::uint32_t> free_nodes;
  std::vector<std::uint32_t> pending;  ///< dependencies per node
};

/// One distinct collective of a group; or a copy, or work on the host, which are one phase: the
/// former's serialisation is what it takes of the port that its tier goes through, if any.
struct BoundCollective {
  bool is_copy = false;  ///< or work on the host
  graph::GroupIndex group;
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  Bytes bytes{0};
  int tier = 0;                 ///< of a copy
  graph::GroupIndex sharers{};  ///< of a copy: ranks that move the same bytes; none: it alone
  graph::TokenRoute route{};    ///< Node::route
  bool background = false;      ///< Node::background
  Time host{0};                 ///< of work on the host; zero: a copy
  graph::CopyDirection direction = graph::CopyDirection::none;  ///< of a copy
  bool continues = false;                                       ///< of a copy: Node::continues
  std::size_t part = 0;                                         ///< of a copy: of the machine

  friend auto operator<=>(const BoundCollective&, const BoundCollective&) = default;
};

/// Messages that a program sends to one peer on one channel, or receives.
struct Flow {
  bool sends = false;
  std::int64_t peer = 0;
  std::uint32_t channel = 0;
  friend auto operator<=>(const Flow&, const Flow&) = default;
};

/// Names the phases among which an automatic choice of algorithms takes the fastest.
enum class PhaseChoice : std::uint8_t {
  all,
  with_messages,  ///< the ring or direct exchange where the fastest has none (phase_messages.h)
};

/// Binds a template when it is first asked for and keeps it. References stay valid.
class Binding {
 public:
  /// Requires a verified workload, machine and algorithms that outlive the binding.
  Binding(const graph::Workload& workload, const machine::Machine& machine,
          const collective::AlgorithmChoice& algorithms, PhaseChoice choice = PhaseChoice::all);

  const BoundTemplate& shape(std::size_t program, int template_index);
  /// Binds everything that the programs hold by now.
  void bind_all();

  const collective::AlgorithmChoice& algorithms() const { return algorithms_; }
  const graph::Workload& workload() const { return workload_; }
  /// Returns the collectives of all templates bound so far.
  const std::vector<BoundCollective>& collectives() const { return collectives_; }
  const BoundCollective& collective(int index) const {
    return collectives_[static_cast<std::size_t>(index)];
  }
  /// Returns the collective's phases in the communicator that holds `rank`; none where none does.
  /// All communicators of a family by digits lie alike.
  const std::vector<collective::CollectivePhase>& phases(int collective, std::int64_t rank);
  const std::vector<Flow>& flows(std::size_t program) const { return flows_[program]; }
  /// Returns the number of a flow among flows(program). Requires that it is there, as verify()
  /// makes sure of every send's receive.
  int flow(std::size_t program, const Flow& flow) const { return index_of_flow_[program].at(flow); }

 private:
  BoundTemplate bind(std::size_t program, const graph::Template& source);
  BoundNode bind_node(std::size_t program, const graph::Node& node,
                      std::vector<BoundKernel>& kernels);
  void bind_compute(std::size_t program, const graph::Node& node, BoundNode& bound,
                    std::vector<BoundKernel>& kernels) const;
  const machine::Machine& machine_of(std::size_t part) const {
    return machines_.empty() ? machine_ : machines_[part];
  }
  int flow_index(std::size_t program, const Flow& flow);
  int collective_index(const BoundCollective& collective);
  std::vector<collective::CollectivePhase> plan(const BoundCollective& collective,
                                                std::int64_t rank) const;

  const graph::Workload& workload_;
  const machine::Machine& machine_;
  std::vector<machine::Machine> machines_;  ///< by part; empty: of one sort of devices
  const collective::AlgorithmChoice& algorithms_;
  PhaseChoice choice_;
  std::vector<std::vector<std::unique_ptr<BoundTemplate>>> shapes_;  ///< [program][template]
  std::vector<std::vector<Flow>> flows_;                             ///< [program]
  std::vector<std::map<Flow, int>> index_of_flow_;                   ///< [program]
  std::vector<BoundCollective> collectives_;
  std::map<BoundCollective, int> index_of_;
  /// Holds phases by collective and by the communicator's first rank: 0 where all lie alike, -1
  /// where there is none.
  std::map<std::pair<int, std::int64_t>, std::vector<collective::CollectivePhase>> phases_;
};

}  // namespace orrery::simulate
