// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/config_node.h"
#include "machine/describe.h"
#include "machine/machine.h"

namespace orrery::machine {
namespace {

using ::testing::HasSubstr;

Result<Machine> read(const std::string& text) {
  return parse_machine(parse_config(text, "m.yaml", ConfigSyntax::yaml).value());
}

constexpr const char* kArrays = R"(name: m
device:
  name: d
  units: 2
  model: systolic
  systolic: {rows: 128, cols: 64, dataflow: ws, arrays: 2, input_sram: 4 MiB, filter_sram: 4 MiB,
             output_sram: 2 MiB, mac_energy: 0.5 pJ, sram_energy: 2.5 pJ/B}
  peak: {bf16: 61.6 TFLOP/s}
  memory: [{name: h, capacity: 1 GB, bandwidth: 1 GB/s}]
network:
  - {name: a, kind: switch, size: 8, bandwidth: 400 Gbit/s, latency: 1 us}
)";

TEST(SystolicMachine, SystolicArraysAreReadAndWritten) {
  const Machine machine = read(kArrays).value();
  EXPECT_EQ(machine.device.model, compute::ComputeModel::systolic);
  EXPECT_EQ(machine.device.systolic.cols, 64);
  EXPECT_EQ(machine.device.systolic.mac_energy, Energy(0.5e-12));
  EXPECT_EQ(read(to_yaml(machine)).value(), machine);
  EXPECT_THAT(describe(machine), HasSubstr("device.systolic.dataflow"));
}

TEST(SystolicMachine, SystolicArraysMustMakeSense) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kArrays;
    const auto machine = read(text.replace(text.find(from), from.size(), to));
    return machine ? std::string() : machine.error().to_string();
  };
  EXPECT_THAT(with("rows: 128", "rows: 0"), HasSubstr("device.systolic.rows: found '0'"));
  EXPECT_THAT(with("dataflow: ws", "dataflow: wx"), HasSubstr("device.systolic.dataflow"));
  EXPECT_THAT(with("model: systolic\n", "\n"), HasSubstr("only model systolic has this"));
  EXPECT_THAT(with("output_sram: 2 MiB,", ""), HasSubstr("device.systolic.output_sram"));
  EXPECT_THAT(with("cols: 64", "columns: 64"), HasSubstr("columns"));
}

constexpr const char* kBanks = R"(name: m
device:
  name: d
  units: 2
  model: pim
  pim: {channels: 8, banks: 16, lanes: 16, row: 2 KiB, t_rcd: 12 ns, t_rp: 12 ns, t_ras: 30 ns,
        t_rfc: 455 ns, t_refi: 6825 ns, banks_in_turn: true, t_rrd: 4 ns, t_faw: 16 ns,
        vector_lanes: 128, vector_cycle: 1 ns}
  peak: {bf16: 4.096 TFLOP/s}
  memory: [{name: h, capacity: 1 GB, bandwidth: 1 GB/s}]
network:
  - {name: a, kind: switch, size: 8, bandwidth: 400 Gbit/s, latency: 1 us}
)";

TEST(PimMachine, BanksAreReadAndWritten) {
  const Machine machine = read(kBanks).value();
  EXPECT_EQ(machine.device.pim.banks, 16);
  EXPECT_TRUE(machine.device.pim.banks_in_turn);
  EXPECT_EQ(read(to_yaml(machine)).value(), machine);
  EXPECT_THAT(describe(machine), HasSubstr("device.pim.t_rcd"));
}

TEST(PimMachine, BanksMustMakeSense) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kBanks;
    const auto machine = read(text.replace(text.find(from), from.size(), to));
    return machine ? std::string() : machine.error().to_string();
  };
  EXPECT_THAT(with("row: 2 KiB, ", ""), HasSubstr("device.pim.row"));
  EXPECT_THAT(with("lanes: 16", "lanes: 0"), HasSubstr("device.pim.lanes: found '0'"));
  EXPECT_THAT(with("t_refi: 6825 ns", "t_refi: 400 ns"), HasSubstr("longer than t_rfc"));
  EXPECT_THAT(with("model: pim", "model: spatial"), HasSubstr("only model pim has this"));
  EXPECT_THAT(with("model: pim", "model: spatial"), HasSubstr("device.spatial"));
}

}  // namespace
}  // namespace orrery::machine
