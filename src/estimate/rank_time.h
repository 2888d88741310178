// SPDX-License-Identifier: Apache-2.0
/// Makespan of templates on one rank, by list scheduling of its in-order streams.
#pragma once

#include <array>
#include <vector>

#include "collective/cost.h"
#include "graph/workload.h"
#include "machine/compute/compute_model.h"
#include "machine/machine.h"

namespace orrery {

/// What a node takes on this machine.
struct TimedNode {
  Stream stream = Stream::compute;
  Time work{0};           ///< of kernels back to back, or of a collective on idle links
  Time host_span{0};      ///< from the host's free moment to the end, if the host is what limits
  Time host_cost{0};      ///< for which the host is busy issuing
  double contention = 1;  ///< slowdown of kernels while a collective runs
  double message_contention = 1;  ///< the same beside a point-to-point message
  bool kernels = false;
  bool host_sync = false;
  std::vector<int> after;
};

/// Nodes of one template or, joined, of several instances one after the other.
using TimedTemplate = std::vector<TimedNode>;

/// Times single nodes. Kernels are timed once per distinct operator, the names of which are
/// ignored. Pipeline messages take no time here: the estimate adds them.
class NodeTimer {
 public:
  /// `machine` must outlive the timer. `layout` places the collectives on it.
  NodeTimer(const Machine& machine, const RankLayout& layout, const AlgorithmChoice& algorithms,
            Time host_dispatch);

  TimedTemplate time(const Template& source);
  Time time(const Node& collective) const;

 private:
  struct KnownKernel {
    Operator kernel;
    KernelTime time;
  };

  KernelTime time(const Operator& kernel);
  void time_kernels(const Node& node, TimedNode& timed);

  const Machine& machine_;
  std::array<std::vector<Extent>, kAxisCount> extents_;
  AlgorithmChoice algorithms_;
  Time host_dispatch_;
  std::vector<KnownKernel> kernels_;  ///< a few dozen: searching is cheaper than hashing names
};

/// Appends one more instance; its streams follow those of the instances before it.
void join(TimedTemplate& chain, const TimedTemplate& next);

/// Time until the last node is done, all of the rank's streams idle and the host free at 0.
/// with_host: kernels and collectives also wait for the host, which issues them in order.
Time makespan(const TimedTemplate& nodes, bool with_host);

}  // namespace orrery
