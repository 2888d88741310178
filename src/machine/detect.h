// SPDX-License-Identifier: Apache-2.0
/// detect() makes a machine of what the tools of a node say of its accelerators and network.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "machine/machine.h"

namespace orrery::machine {

/// A command of a node and the file that a recorded output of it has.
struct DetectTool {
  std::string_view file;
  std::string_view command;
};

inline constexpr auto kDetectTools = std::to_array<DetectTool>({
    {"nvidia-smi.csv",
     "nvidia-smi --query-gpu=name,memory.total,power.limit --format=csv,noheader,nounits"},
    {"nvlink.txt", "nvidia-smi nvlink --status"},
    {"topo.txt", "nvidia-smi topo -m"},
    {"rocm-smi.json", "rocm-smi --showproductname --showmeminfo vram --showmaxpower --json"},
    {"ibstat.txt", "ibstat"},
    {"slurm.txt", "scontrol show node --oneliner"},
});

/// Outputs by the tools' files.
using ToolOutputs = std::map<std::string, std::string>;

struct Detected {
  Machine machine;
  std::string like;                ///< the machine that everything else is from
  std::int64_t devices = 0;        ///< of a node
  std::int64_t nodes = 0;          ///< that Slurm has of this kind; 0: not known
  std::vector<std::string> found;  ///< what was read, a sentence each
  std::vector<std::string> kept;   ///< what stays as in `like`, and why
};

/// Returns the machine that the driver's name of the accelerators means, or `like`, with what the
/// tools state in place of its own figures:
///
///   memory of a device, power limit      nvidia-smi, rocm-smi
///   devices of a node                    rows of these
///   bandwidth of the first dimension     sum of the links that are up x payload rate (nvlink)
///   bandwidth of the last dimension      sum of the rates of active ports / devices (ibstat); with
///                                        topo only ports behind the same PCIe switch as a device
///   extent of the last dimension         nodes with that many devices (Slurm)
///
/// Payload rates: NVLink 2 and 3 carry 64 bits in 66 (25.781 -> 25 GB/s), NVLink 4 and 5 16 bits in
/// 17 (26.562 -> 25 GB/s). Every figure that is replaced has its tool as origin.
/// Ignores: clocks, ECC, MIG, links between hosts beyond ports' rates, other nodes' devices.
/// Mistakes: no accelerator found; devices of several kinds in a node; a name that is no shipped
/// machine's without `like`; lines that are not what the tool prints, each with file and line.
Result<Detected> detect(const ToolOutputs& outputs, const std::optional<std::string>& like);

}  // namespace orrery::machine
