// SPDX-License-Identifier: Apache-2.0
/// Settings that the public cases leave out, row by row (reference/README.md says where they are
/// from).
#include <gtest/gtest.h>

#include <cmath>

#include "base/csv.h"
#include "machine/network/flit/experiment.h"
#include "reference/reference.h"

namespace orrery::flit {
namespace {

TEST(FlitRouterRules, EveryRowIsEqualToNineDigits) {
  const std::string common =
      "topology = mesh; k = 4; n = 2; routing_function = dor; num_vcs = 4; vc_buf_size = 4;\n"
      "credit_delay = 2; routing_delay = 0; vc_allocator = separable_input_first;\n"
      "sw_allocator = separable_input_first; seed = 1; injection_rate_uses_flits = 1; "
      "sample_period = 400;\n"
      "injection_rate = 0.4;\n";
  const auto table =
      load_csv(ORRERY_SOURCE_DIR "/tests/machine/network/flit/reference/router_rules.csv");
  ASSERT_TRUE(table);
  for (const CsvRow& row : table->rows) {
    const ReferenceRow reference{*table, row};
    const std::string& settings = reference.text("settings");
    const auto experiment = parse_booksim(common + settings + ";\n", settings);
    ASSERT_TRUE(experiment) << experiment.error().to_string();
    const auto prepared = prepare(*experiment);
    ASSERT_TRUE(prepared) << settings << prepared.error().to_string();
    const OpenLoopResult run = run_open_loop(prepared->network(*experiment), experiment->load);
    ASSERT_TRUE(run.stable) << settings << run.reason;
    const ClassResult& of = run.classes.at(static_cast<std::size_t>(reference.whole("class")));
    const auto expect = [&](double ours, const char* column) {
      const double theirs = reference.number(column);
      EXPECT_NEAR(ours / theirs, 1, 5.1e-9) << settings << " " << column;
    };
    expect(of.packet_latency, "packet_latency");
    expect(of.network_latency, "network_latency");
    expect(of.flit_latency, "flit_latency");
    expect(of.hops, "hops");
    expect(of.injected, "injected_rate");
    expect(of.accepted, "accepted_rate");
    EXPECT_EQ(of.packets, static_cast<std::uint64_t>(reference.whole("packets"))) << settings;
    EXPECT_EQ(run.cycles, reference.whole("simulated_cycles")) << settings;
  }
}

}  // namespace
}  // namespace orrery::flit
