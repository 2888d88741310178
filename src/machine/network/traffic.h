// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/names.h"
#include "machine/network/flows.h"

namespace orrery::network {

/// Flows between n hosts that all begin at 0.
enum class Traffic : std::uint8_t { permutation, ring, shift, all_to_all, incast };
constexpr auto named_values(Traffic) {
  return std::to_array<Named<Traffic>>({
      {Traffic::permutation, "permutation",
       "every host to another, every host from one: random, seeded, without hosts to themselves"},
      {Traffic::ring, "ring", "every host to the one `stride` further"},
      {Traffic::shift, "shift", "every host to the one half of the hosts further"},
      {Traffic::all_to_all, "all_to_all", "every host to every other"},
      {Traffic::incast, "incast", "every other host to host 0"},
  });
}

struct TrafficSpec {
  Traffic kind = Traffic::permutation;
  Bytes bytes{0};           ///< of every flow
  std::int32_t stride = 1;  ///< of ring
  std::uint64_t seed = 0;   ///< of permutation
};

std::vector<FlowRequest> make_traffic(const TrafficSpec& spec, std::int32_t hosts);

}  // namespace orrery::network
