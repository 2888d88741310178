// SPDX-License-Identifier: Apache-2.0
/// Rates of links as NCCL and RCCL count them. Private to the folder.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <pugixml.hpp>
#include <string_view>

#include "base/units.h"

namespace orrery::topology {

/// Returns the bandwidth of one NVLink and direction, from a GPU's compute capability (NVIDIA's
/// data sheets: P100 20, V100, Turing and A100 25, A40 and RTX A6000 14.06, H100 25, B200 50 GB/s).
inline Bandwidth nvlink_of(std::int64_t sm) {
  return Bandwidth(sm < 70 ? 20e9 : sm == 86 ? 14.0625e9 : sm < 100 ? 25e9 : 50e9);
}

/// One xGMI link and direction: the bandwidth that RCCL counts, and its part of the wire's rate
/// (AMD's data sheets: 76.8 GB/s of MI350 and MI355X, 64 of MI300, 50 before).
struct Xgmi {
  Bandwidth bandwidth;
  float reached;
};
inline Xgmi xgmi_of(std::string_view gcn) {
  gcn.remove_prefix(gcn.starts_with("gfx") ? 3 : 0);
  if (gcn.starts_with("94") || gcn.starts_with("95")) {
    return {Bandwidth(48e9), gcn.starts_with("95") ? 0.625F : 0.75F};
  }
  return gcn.starts_with("90a") || gcn == "910" ? Xgmi{Bandwidth(36e9), 0.72F}
                                                : Xgmi{Bandwidth(24e9), 0.48F};
}

/// Returns the bandwidth of a PCIe device's link and direction. Line codes: 8b/10b of the first two
/// generations, 128b/130b, flits of the sixth.
inline Bandwidth pcie_of(const pugi::xml_node& pci) {
  constexpr double kUsualRate = 8;  // GT/s and lanes that NCCL takes for what it does not know
  constexpr double kUsualLanes = 16;
  double rate = std::strtod(pci.attribute("link_speed").value(), nullptr);
  double lanes = std::strtod(pci.attribute("link_width").value(), nullptr);
  rate = rate > 0 && rate < 1e3 ? rate : kUsualRate;
  lanes = lanes > 0 && lanes <= 64 ? lanes : kUsualLanes;
  const double code = rate < 8 ? 8.0 / 10 : rate < 64 ? 128.0 / 130 : 242.0 / 256;
  return Bandwidth(rate * lanes * 1e9 / 8 * code);
}

inline bool is_gpu_class(std::string_view pci_class) {
  return pci_class.starts_with("0x03") || pci_class.starts_with("0x12");
}

}  // namespace orrery::topology
