// SPDX-License-Identifier: Apache-2.0
// Outputs have the form and the figures that the tools print on such nodes: nvidia-smi's names and
// MiB, 26.562 GB/s a link of an H100 (NVLink 4), topo's matrix, ibstat's ports, rocm-smi's JSON of
// an MI300X (205,822,885,888 bytes, 750 W), Slurm's lines.
#include "machine/detect.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/node_tools.h"

namespace orrery::machine {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string times(int count, const std::string& line) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += line;
  }
  return text;
}

std::string links(int devices, int up, const std::string& rate) {
  std::string text;
  for (int device = 0; device < devices; ++device) {
    text += fmt::format("GPU {}: NVIDIA (UUID: GPU-1)\n", device);
    for (int link = 0; link < 18; ++link) {
      text += fmt::format("\t Link {}: {}\n", link, link < up ? rate : "<inactive>");
    }
  }
  return text;
}

std::string port(const std::string& adapter, const std::string& state, int rate) {
  return fmt::format(
      "CA '{}'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: {}\n\t\tPhysical "
      "state: LinkUp\n\t\tRate: {}\n\t\tBase lid: 65\n\t\tPort GUID: 0xb83fd20300b7b5a6\n\t\t"
      "Link layer: InfiniBand\n",
      adapter, state, rate);
}

/// Eight H100 with nine adapters, the last of which is far from every device.
ToolOutputs h100_node() {
  std::string matrix =
      "\tGPU0\tGPU1\tNIC0\tNIC1\tNIC2\tNIC3\tNIC4\tNIC5\tNIC6\tNIC7\tNIC8\tCPU Affinity\n";
  matrix += "GPU0\t X \tNV18\tPIX\tPIX\tPXB\tPIX\tNODE\tSYS\tSYS\tSYS\tSYS\t0-47\n";
  matrix += "GPU1\tNV18\t X \tNODE\tSYS\tSYS\tSYS\tPIX\tPIX\tPIX\tPIX\tSYS\t0-47\n";
  matrix += "NIC0\tPIX\tNODE\t X \tNODE\tSYS\tSYS\tSYS\tSYS\tSYS\tSYS\tSYS\n\nNIC Legend:\n\n";
  std::string ports;
  for (int i = 0; i < 9; ++i) {
    matrix += fmt::format("  NIC{}: mlx5_{}\n", i, i);
    ports += port(fmt::format("mlx5_{}", i), "Active", 400);
  }
  ports += port("mlx5_9", "Down", 200);
  return {{"nvidia-smi.csv", times(8, "NVIDIA H100 80GB HBM3, 81559, 700.00\n")},
          {"nvlink.txt", links(8, 18, "26.562 GB/s")},
          {"topo.txt", matrix},
          {"ibstat.txt", ports},
          {"slurm.txt",
           "NodeName=n1 Gres=gpu:h100:8(S:0-1) State=IDLE\n"
           "NodeName=n2 Gres=gpu:h100:8(S:0-1) State=MIXED+PLANNED\n"
           "NodeName=n3 Gres=gpu:h100:8 State=DOWN+DRAIN\n"
           "NodeName=cpu1 Gres=(null) State=IDLE\n"
           "NodeName=a1 Gres=gpu:a100:8 State=IDLE\n"}};
}

// 18 links of 26.562 x 16 / 17 = 25 GB/s are the 450 GB/s that dgx-h100 has; eight near ports of
// 400 Gbit/s are 50 GB/s for each of eight devices; two of three H100 nodes are in service.
TEST(Detect, ADgxH100IsWhatTheShippedMachineSays) {
  const auto detected = detect(h100_node(), std::nullopt);
  ASSERT_TRUE(detected) << detected.error().to_string();
  EXPECT_EQ(detected->like, "dgx-h100");
  EXPECT_EQ(detected->devices, 8);
  EXPECT_EQ(detected->nodes, 2);
  const Machine& machine = detected->machine;
  EXPECT_EQ(machine.device.memory.front().capacity, Bytes(81'559LL << 20));
  EXPECT_EQ(machine.network.front().bandwidth, Bandwidth(450e9));
  EXPECT_EQ(machine.network.back().bandwidth, Bandwidth(50e9));
  EXPECT_EQ(machine.network.back().size, 2);
  EXPECT_THAT(detected->found, Contains(HasSubstr("8 of 9 active ports serve 8 devices")));
  EXPECT_THAT(machine.origins.at("network.infiniband.bandwidth"), HasSubstr("measured: ibstat"));
  const auto again =
      parse_config(to_yaml(machine), "detected.yaml", ConfigSyntax::yaml).and_then(parse_machine);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(*again, machine);
}

// An eighth of the links down leaves 16 x 25 GB/s; a limit of 500 W is held as a power cap.
TEST(Detect, LinksThatAreDownAndPowerLimitsCount) {
  ToolOutputs outputs = h100_node();
  outputs["nvlink.txt"] = links(7, 18, "26.562 GB/s") + links(1, 16, "26.562 GB/s");
  outputs["nvidia-smi.csv"] = times(8, "NVIDIA H100 80GB HBM3, 81559, 500.00\n");
  const auto detected = detect(outputs, std::nullopt);
  ASSERT_TRUE(detected) << detected.error().to_string();
  EXPECT_EQ(detected->machine.network.front().bandwidth, Bandwidth(400e9));
  EXPECT_EQ(detected->machine.device.power_cap, Power(500));
  EXPECT_TRUE(parse_config(to_yaml(detected->machine), "detected.yaml", ConfigSyntax::yaml)
                  .and_then(parse_machine));
}

TEST(Detect, HalfANodeIsItsOwnNode) {
  const auto detected =
      detect({{"nvidia-smi.csv", times(4, "NVIDIA A100-SXM4-40GB, 40960, [N/A]\n")},
              {"nvlink.txt", links(4, 12, "25 GB/s")}},
             std::nullopt);
  ASSERT_TRUE(detected) << detected.error().to_string();
  EXPECT_EQ(detected->like, "dgx-a100-40g");
  EXPECT_EQ(detected->machine.network.front().size, 4);
  EXPECT_EQ(detected->machine.network.front().bandwidth, Bandwidth(300e9));
  EXPECT_THAT(detected->kept, Contains(HasSubstr("ibstat says nothing")));
}

TEST(Detect, RocmSmiNamesCardsInJson) {
  const std::string card =
      "{\"Card Series\": \"AMD Instinct MI300X OAM\", \"Card Model\": \"0x74a1\", "
      "\"Max Graphics Package Power (W)\": \"750.0\", \"VRAM Total Memory (B)\": \"205822885888\"}";
  std::string cards;
  for (int i = 0; i < 8; ++i) {
    cards += fmt::format("\"card{}\": {}, ", i, card);
  }
  const auto detected = detect(
      {{"rocm-smi.json", "WARNING: low power\n{" + cards + "\"system\": {\"Driver\": \"6.8\"}}"}},
      std::nullopt);
  ASSERT_TRUE(detected) << detected.error().to_string();
  EXPECT_EQ(detected->like, "mi300x");
  EXPECT_EQ(detected->devices, 8);
  EXPECT_EQ(detected->machine.device.memory.front().capacity, Bytes(205'822'885'888));
}

TEST(Detect, MistakesSayWhatIsMissingAndWhere) {
  const auto error = [](const ToolOutputs& outputs,
                        const std::optional<std::string>& like = std::nullopt) {
    const auto detected = detect(outputs, like);
    return detected ? "none" : detected.error().to_string();
  };
  EXPECT_THAT(error({}), HasSubstr("neither nvidia-smi nor rocm-smi"));
  EXPECT_THAT(
      error({{"nvidia-smi.csv", "NVIDIA H100 80GB HBM3, 81559, 700\nNVIDIA L4, 23034, 72\n"}}),
      HasSubstr("all devices of a node alike"));
  EXPECT_THAT(error({{"nvidia-smi.csv", "NVIDIA K80, 12206, 149\n"}}), HasSubstr("--like NAME"));
  EXPECT_EQ(error({{"nvidia-smi.csv", "NVIDIA K80, 12206, 149\n"}}, "dgx-a100-80g"), "none");
  const std::string broken = error(
      {{"nvidia-smi.csv", "NVIDIA L4, many, 72\nNVIDIA-SMI has failed\nNVIDIA L4, -1, none\n"}});
  EXPECT_THAT(broken, HasSubstr("nvidia-smi.csv:1: memory.total: found 'many'"));
  EXPECT_THAT(broken, HasSubstr("nvidia-smi.csv:2"));
  EXPECT_THAT(broken, HasSubstr("nvidia-smi.csv:3: power.limit: found 'none'"));
  EXPECT_THAT(error({{"rocm-smi.json", "{\"card0\": {}}"}}), HasSubstr("lacks Card Series"));
  EXPECT_THAT(error({{"rocm-smi.json", "{\"card0\": "}}), HasSubstr("rocm-smi.json"));
  ToolOutputs ports = h100_node();
  ports["ibstat.txt"] = "CA 'mlx5_0'\nPort 1:\nState: Active\nRate: fast\nLink layer: InfiniBand\n";
  EXPECT_THAT(error(ports), HasSubstr("ibstat.txt:4: Rate: found 'fast'"));
}

}  // namespace
}  // namespace orrery::machine
