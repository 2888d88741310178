// SPDX-License-Identifier: Apache-2.0
/// A job on many devices: what stops it, how it keeps its state, how it gets going again.
///
/// YAML (`orrery goodput --failures FILE`), all but name and mtbf optional:
///
///   components:
///     - {name: gpu, mtbf: 130000 h, per: device}
///     - {name: host, mtbf: 40000 h, per: node, detection: 30 s, diagnosis: 20 min, nodes: 1}
///     - {name: pod power, mtbf: 4000 h, per: job, nodes: 32, survives_in_memory: false}
///
/// Rates of the job: sum over components of units / mtbf; units are the devices, the nodes or 1.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/names.h"
#include "base/result.h"
#include "base/units.h"
#include "goodput/interval.h"

namespace orrery::goodput {

enum class Unit : std::uint8_t { device, node, job };
constexpr auto named_values(Unit) {
  return std::to_array<Named<Unit>>({{Unit::device, "device", "each device"},
                                     {Unit::node, "node", "each node"},
                                     {Unit::job, "job", "the whole job"}});
}

/// A component stops the job, always in the same way.
struct Component {
  std::string name = "any";
  Duration mtbf{0};  ///< of one unit
  Unit per = Unit::device;
  Duration detection{0};
  Duration diagnosis{0};   ///< with isolation of what failed
  Duration restart{0};     ///< new processes, communicators, the checkpoint read
  std::int64_t nodes = 1;  ///< lost with one stop: a correlated domain takes several in one draw
  bool survives_in_memory = true;  ///< copies of the state in other nodes' memory outlast the stop

  Duration down() const { return detection + diagnosis + restart; }
};

/// The way in which the state is kept.
struct Checkpoint {
  CheckpointCost cost;
  Duration interval{0};  ///< tau; 0: the best
  /// Every so many checkpoints in memory one also reaches storage; 1: all do.
  std::int64_t storage_every = 1;
};

/// The rule where no spare node is left.
enum class WithoutSpare : std::uint8_t { wait, shrink };
constexpr auto named_values(WithoutSpare) {
  return std::to_array<Named<WithoutSpare>>(
      {{WithoutSpare::wait, "wait", "for a node to be repaired"},
       {WithoutSpare::shrink, "shrink", "run on with fewer nodes"}});
}

struct Scenario {
  std::int64_t devices = 1;
  std::int64_t node = 8;  ///< devices of a node
  std::vector<Component> components;
  Checkpoint checkpoint;
  std::int64_t spares = -1;  ///< nodes; -1: one is always at hand
  Duration repair{86400};    ///< until a node that was lost is a spare again, or back in the job
  WithoutSpare without_spare = WithoutSpare::wait;
  /// Speed with a node less, as a share; with k less 1 - k (1 - it). 0: devices that are left /
  /// devices, which assumes that work divides as it likes.
  double shrunk_speed = 0;

  std::int64_t nodes() const { return (devices + node - 1) / node; }
  /// Returns the stops of the job, by component.
  std::vector<StopKind> stops() const;
  Duration interval() const;  ///< the stated one, else the best
};

/// Returns the components of a file. `otherwise` has the times of what states none. Mistakes: an
/// mtbf of 0, nodes below 0, no component, unknown fields.
Result<std::vector<Component>> read_components(const ConfigNode& root, const Component& otherwise);

/// A rate that a log of failures gives.
struct FittedRate {
  Component component;     ///< per device
  std::int64_t stops = 0;  ///< in the log
  Duration mtbf_low{0};    ///< 80 % interval of the device's mtbf, from Poisson counts
  Duration mtbf_high{0};
};

/// Rates from a CSV file with a row for each stop: columns `hours` (since the log began) and
/// `component`; `nodes` is optional. mtbf = devices x hours of the log / stops. The interval is
/// that of a Poisson count n: chi-square quantiles with 2n and 2n + 2 degrees of freedom, by Wilson
/// and Hilferty (PNAS 17, 1931), within 1 % for n >= 2. Mistakes: unknown or missing columns, hours
/// that are negative or beyond `length`, no row.
Result<std::vector<FittedRate>> fit_log(const std::string& file, std::int64_t devices,
                                        Duration length, const Component& otherwise);

}  // namespace orrery::goodput
