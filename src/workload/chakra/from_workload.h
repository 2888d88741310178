// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "graph/workload.h"
#include "workload/chakra/trace.h"

namespace orrery::chakra {

/// ComputeTimes are those of the kernels of a node, one after the other.
struct ComputeTimes {
  Time alone{0};
  Time beside_collective{0};
  Time beside_message{0};
};

struct FromWorkloadOptions {
  /// Returns the times of a compute node; it is not asked for others. Absent: times are what the
  /// operators' durations say, 0 (for a roofline) where they have none.
  std::function<ComputeTimes(const graph::Node&)> times;
  std::int64_t most_nodes = 20'000'000;  ///< one rank per role
};

/// Name of the row (Workload::groups) that copies to a lower memory tier count as. What counts as
/// any other comes from there.
inline constexpr std::string_view kToHost = "to_host";

/// Returns all that a workload does, as traces.
///
///   compute      COMP: num_ops and tensor_size are the sums over its operators; how much slower it
///                is beside communication where it is (record.h)
///   collective   COMM_COLL in the rank's communicator. comm_size: the buffer; of an all-gather the
///                input of one rank, buffer / members
///   send_recv    COMM_SEND to the next member of the group, COMM_RECV from the previous; that the
///                two are a shift says an attribute (record.h)
///   send         COMM_SEND, receive: COMM_RECV; the k-th from a rank to another on a channel
///                have one tag
///   copy         MEM_STORE to and MEM_LOAD from a lower tier
///   host         COMP on the CPU
///   wait         nothing: what comes after it in its stream depends on what it waits for
///
/// A node depends on the nodes of Node::after, on the one before it in its stream (if that runs in
/// the order of issue), and, if it is its stream's first of an instance, on the compute nodes of
/// the instances before the previous one: an instance is issued while the one before it computes
/// (simulate/loop.h).
/// Durations are whole microseconds; what rounding takes from a node is given to the next, so that
/// their sum is right to a microsecond.
/// Every family of communicators has groups of its own, numbered by family and lowest member,
/// although two may have equal members.
/// Ignores: host dispatch and host_sync, `copies` of token exchanges, which memory tier, phases.
/// Requires a verified workload.
/// Mistakes: more than most_nodes; a source that is no list.
Result<TraceSet> from_workload(const graph::Workload& workload, const FromWorkloadOptions& options);

}  // namespace orrery::chakra
