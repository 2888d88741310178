// SPDX-License-Identifier: Apache-2.0
/// Traces on ASTRA-sim's system: workload engine, collectives by chunk, phase and message, network,
/// remote memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "base/units.h"
#include "compat/astra/config.h"
#include "compat/astra/custom.h"
#include "compat/astra/quirks.h"
#include "machine/topology/wires.h"
#include "workload/chakra/footprint.h"
#include "workload/chakra/trace.h"

namespace orrery::astra {

enum class Backend : std::uint8_t { unaware, aware, fifo, flow, flit, packet };
constexpr auto named_values(Backend) {
  return std::to_array<Named<Backend>>({
      {Backend::unaware, "unaware", "no message delays another"},
      {Backend::aware, "aware", "links serve one message at a time, store and forward"},
      {Backend::fifo, "fifo", "links of all dimensions, first come first served, cut through"},
      {Backend::flow, "flow", "links of all dimensions, max-min fair"},
      {Backend::flit, "flit", "routers of all dimensions, flit by flit"},
      {Backend::packet, "packet", "links of all dimensions with queues of packets, protocol eqds"},
  });
}
/// Returns whether messages pass a LinkMap (linked_network.h); ASTRA-sim has no such binary.
constexpr bool on_links(Backend backend) {
  return backend > Backend::aware;
}

struct RunInput {
  System system;
  std::vector<Dimension> network;  ///< innermost first; their sizes multiply to traces.ranks()
  RemoteMemory memory;
  chakra::TraceSet traces;
  CustomCollectives customs;
  /// The GPU's speed by rank, above 0: 1 as the files say, 0.5 a straggler that takes twice as
  /// long; empty: all 1.
  std::vector<double> compute_speed;
  double speed(std::int64_t rank) const {
    return compute_speed.empty() ? 1 : compute_speed[static_cast<std::size_t>(rank)];
  }
};

struct RunOptions {
  Backend backend = Backend::unaware;
  topology::Wires
      wires;  ///< of fifo, flow and packet: links instead of the dimensions' own, if any
  Quirks quirks = Quirks::all();
  bool fold = true;  ///< run one rank per class of ranks that do the same at the same times
  std::int64_t queues_per_dimension = 1;
  double injection_scale = 1;  ///< multiplies the endpoint delay
  bool rendezvous = false;     ///< a ready message of 8 KiB before each message
  bool node_times = false;     ///< also say when nodes ran
  bool traffic = false;        ///< also say what NPUs and links sent
  std::function<void(double)> progress;
};

struct RunResult {
  /// Classes of ranks with equal times; without folding every rank is its own.
  struct Class {
    std::int64_t rank = 0;  ///< lowest of the class
    Time finish{0};
    Time exposed{0};  ///< finish less the GPU's compute
  };
  std::vector<Class> classes;
  std::vector<std::uint32_t> class_of;  ///< by rank
  /// The bytes sent, by class, of its lowest rank, and by dimension (traffic.h); with
  /// RunOptions::traffic only.
  std::vector<std::vector<Bytes>> sent;
  /// A Link tells what a link carried that carried anything, of the simulated ranks; with
  /// RunOptions::traffic on the aware back-end only.
  struct Link {
    std::int64_t from = 0;  ///< an NPU, or the switch: as many as there are NPUs
    std::int64_t to = 0;
    Bytes carried{0};
  };
  std::vector<Link> links;
  std::uint64_t events = 0;
  std::uint64_t messages = 0;         ///< simulated ones
  std::vector<std::string> unfolded;  ///< why ranks could not share a class; empty otherwise
  /// Says, by class, when each node of its lowest rank's program started and ended; with
  /// RunOptions::node_times only.
  std::vector<std::vector<chakra::NodeTime>> node_times;
};

/// Mistakes: an implementation that does not do the group (halving-doubling of 6 NPUs), a node
/// without what its kind needs (num_ops under roofline), a deadlock (names the waiting nodes), a
/// time beyond the range of Time. It returns no result in which ranks did not finish.
Result<RunResult> run(const RunInput& input, const RunOptions& options);

}  // namespace orrery::astra
