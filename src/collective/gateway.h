// SPDX-License-Identifier: Apache-2.0
/// All-reduce of small messages between devices at home, each behind its gateway (TPI-LLM,
/// arXiv 2410.00531). A message of M bytes takes `path` (device, gateway, core, gateway, device: 4
/// links one way) and M / bandwidth on the slower of its ends; a device sends and receives one
/// message at a time.
///
///   star   workers to the master, which adds and sends back   2 path + 2 (n - 1) M / bandwidth
///   tree   through g = floor(sqrt(n - 1)) workers, each of    4 path + 2 (g + c) M / bandwidth
///          which speaks for itself and at most c others, c = ceil((n - 1 - g) / g)
///   ring   2 (n - 1) steps of M / n                           2 (n - 1) (path + M / (n bandwidth))
///
/// Zero for one device; two have no tree but the star.
///
/// Of unequal devices (a list of ends, the master first; a ring in their order) a message takes the
/// mean of the two ends' paths and the lower of their bandwidths:
///
///   star   2 (sum of M / bandwidth over the workers + longest path)
///   tree   2 (the slowest group's sum and longest path + those of the group of its g heads)
///   ring   2 (n - 1) times the slowest of its messages
///
/// Ignores:  the additions; chunks of one message on several links at once.
/// Requires: n >= 1, bandwidth > 0.
/// Source:   TPI-LLM, section on the star: 8 tau, 16 tau and 56 tau of 8 devices; Patarasuk & Yuan
///           2009 for the ring.
#pragma once

#include <cstdint>
#include <span>

#include "base/names.h"
#include "base/units.h"

namespace orrery::collective {

enum class GatewayAlgorithm : std::uint8_t { star, tree, ring };
constexpr auto named_values(GatewayAlgorithm) {
  return std::to_array<Named<GatewayAlgorithm>>({
      {GatewayAlgorithm::star, "star", "to the master and back"},
      {GatewayAlgorithm::tree, "tree", "two levels up and down"},
      {GatewayAlgorithm::ring, "ring", "reduce-scatter and all-gather around a ring"},
  });
}

struct Gateways {
  std::int64_t devices = 1;
  Bandwidth bandwidth{0};  ///< of a device, each way
  Time path{0};            ///< one way between two devices
};

Time gateway_all_reduce(GatewayAlgorithm algorithm, Bytes size, const Gateways& home);
/// A device's way to its like.
struct GatewayEnd {
  Bandwidth bandwidth{0};
  Time path{0};

  friend bool operator==(const GatewayEnd&, const GatewayEnd&) = default;
};
/// Returns the same as of equal Gateways where all ends are alike.
Time gateway_all_reduce(GatewayAlgorithm algorithm, Bytes size, std::span<const GatewayEnd> ends);
GatewayAlgorithm fastest_all_reduce(Bytes size, std::span<const GatewayEnd> ends);

/// Returns the fastest; of equal ones the first of the table.
GatewayAlgorithm fastest_all_reduce(Bytes size, const Gateways& home);

}  // namespace orrery::collective
