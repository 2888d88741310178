// SPDX-License-Identifier: Apache-2.0
#include "calibrate/impossible_times.h"

#include <fmt/format.h>

#include "base/format.h"
#include "collective/sweep.h"

namespace orrery::calibrate {
namespace {

/// Returns the rate at which a member sends and receives over its links of all dimensions of the
/// group at once.
Bandwidth links_of(const std::vector<collective::Extent>& extents,
                   const machine::Machine& machine) {
  Bandwidth sum{0};
  for (const collective::Extent& extent : extents) {
    const topology::NetworkDimension& dimension =
        machine.network[static_cast<std::size_t>(extent.dimension)];
    const std::int64_t links = dimension.kind == topology::DimensionKind::switched ? 1
                               : dimension.kind == topology::DimensionKind::fully_connected
                                   ? extent.count - 1
                                   : 2;  // of a ring or line
    sum += dimension.bandwidth * links;
  }
  return sum;
}

}  // namespace

Error impossible_times(const std::vector<CollectiveMeasurement>& measurements,
                       const machine::Machine& machine, const std::string& source) {
  constexpr double kFaster = 1.5;  // than stated: in-switch reduction (NVLS) moves less
  Error mistakes;
  const machine::Machine expanded = machine::expand_shapes(machine);
  for (const CollectiveMeasurement& measured : measurements) {
    const Bandwidth links = links_of(group_of(measured, expanded), expanded);
    const double moved = collective::bus_factor(measured.kind, measured.members);
    const Time least = measured.bytes * moved / (links * kFaster);
    if (links > Bandwidth(0) && measured.time < least) {
      mistakes.add({source,
                    fmt::format("{} of {} over {}", name_of(measured.kind),
                                to_string(measured.bytes), measured.members),
                    to_string(measured.time),
                    fmt::format("at least {}: its links move {} each way", to_string(least),
                                to_string(links))});
    }
  }
  return mistakes;
}

}  // namespace orrery::calibrate
