// SPDX-License-Identifier: Apache-2.0
/// A dataflow device that runs many operators at once, as its machine file states it.
#pragma once

#include <cstdint>

#include "base/names.h"
#include "base/units.h"

namespace orrery::compute {

enum class FusionMode : std::uint8_t { unfused, software, hardware };
constexpr auto named_values(FusionMode) {
  return std::to_array<Named<FusionMode>>({
      {FusionMode::unfused, "unfused", "the host launches every operator"},
      {FusionMode::software, "software", "the host launches every fused kernel"},
      {FusionMode::hardware, "hardware", "the host starts a sequence of fused kernels once"},
  });
}

/// A kernel takes `launch` on the device (program load, argument load, execute) and, where the host
/// starts it, `host_launch` before that.
struct SpatialDevice {
  FusionMode fusion = FusionMode::hardware;
  Time launch{0};
  Time host_launch{0};
  Bytes sram{0};                ///< 0: not stated, it holds all that fused kernels keep
  Bandwidth sram_bandwidth{0};  ///< 0: not stated, no limit

  template <class V>
  static void fields(V&& visit) {
    visit("fusion", &SpatialDevice::fusion, "what is launched: unfused, software, hardware");
    visit("launch", &SpatialDevice::launch, "of a kernel on the device");
    visit("host_launch", &SpatialDevice::host_launch, "of a round trip of the host");
    visit("sram", &SpatialDevice::sram,
          "on the chip; what a fused kernel keeps beyond crosses memory");
    visit("sram_bandwidth", &SpatialDevice::sram_bandwidth, "of what a fused kernel keeps there");
  }

  friend bool operator==(const SpatialDevice&, const SpatialDevice&) = default;
};

}  // namespace orrery::compute
