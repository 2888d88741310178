// SPDX-License-Identifier: Apache-2.0
/// Readers of what the tools of a node print (detect.h).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace orrery::machine {

/// One accelerator as its driver names it.
struct NodeDevice {
  std::string name;
  Bytes memory{0};
  std::optional<Power> power;  ///< nothing where the driver shows none

  friend bool operator==(const NodeDevice&, const NodeDevice&) = default;
};

/// Reads rows "NVIDIA H100 80GB HBM3, 81559, 700.00": memory in MiB, power in W or "[N/A]".
Result<std::vector<NodeDevice>> read_nvidia_smi(const std::string& text, const std::string& file);
/// Reads {"card0": {"Card Series": NAME, "VRAM Total Memory (B)": "N", "Max Graphics Package Power
/// (W)": "N"}, ...}; older versions write "Card series".
Result<std::vector<NodeDevice>> read_rocm_smi(const std::string& text, const std::string& file);

/// The links of one device that are up.
struct NodeLinks {
  std::int64_t up = 0;
  std::int64_t all = 0;
  double rate = 0;  ///< of one, GB/s, as printed
};
/// Reads "GPU 0: NAME (UUID: ...)" and under it "Link 0: 26.562 GB/s" or "Link 0: <inactive>".
std::vector<NodeLinks> read_nvlink(const std::string& text);

/// Adapters that share a PCIe switch with a device (PIX or PXB), by their names ("mlx5_0"). Nothing
/// where the matrix has no adapters.
std::set<std::string> read_near_adapters(const std::string& text);

/// A port of an adapter that is up.
struct NodePort {
  std::string adapter;
  double rate = 0;    ///< Gbit/s
  std::string layer;  ///< InfiniBand or Ethernet

  friend bool operator==(const NodePort&, const NodePort&) = default;
};
Result<std::vector<NodePort>> read_ibstat(const std::string& text, const std::string& file);

/// A line of `scontrol show node --oneliner`.
struct SlurmNode {
  std::string type;          ///< of the accelerators ("h100"); "" where Slurm has no type
  std::int64_t devices = 0;  ///< Gres=gpu:TYPE:N
  bool usable = true;        ///< State without DOWN, DRAIN or FAIL
};
std::vector<SlurmNode> read_slurm(const std::string& text);

}  // namespace orrery::machine
