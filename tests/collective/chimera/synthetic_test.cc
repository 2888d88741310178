// SPDX-License-Identifier: Apache-2.0
#include "collective/chimera/synthetic.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cctype>

#include "base/csv.h"
#include "base/reader.h"

namespace orrery::chimera {
namespace {

using layout::Pair;

struct Row {
  Synthetic study;
  bool fused = false;
  std::int64_t published = 0;
  std::string where;
};

/// synthetic.csv: reference runs of the public artifact of Chimera (ISCA 2025,
/// redbird-arch/isca2025-chimera-artifact, commit 4f02d5d), cycles at 1 GHz.
std::vector<Row> published_rows() {
  const auto table =
      load_csv(std::string(ORRERY_SOURCE_DIR) + "/tests/collective/chimera/synthetic.csv");
  EXPECT_TRUE(table) << table.error().to_string();
  std::vector<Row> rows;
  for (const CsvRow& row : table->rows) {
    const auto text = [&](std::string_view column) {
      return std::string(row.cells[*table->column(column)]);
    };
    std::string pair = text("pair");
    std::transform(pair.begin(), pair.end(), pair.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    Row read;
    read.published = parse_integer(text("cycles")).value();
    read.where = table->where(row);
    read.study.topology = value_of<Topology>(text("topology")).value();
    read.study.pair = value_of<Pair>(pair).value();
    read.study.message = Bytes(parse_integer(text("message_bytes")).value());
    read.fused = text("variant") == "fused";
    rows.push_back(read);
  }
  return rows;
}

TEST(Synthetic, PublishedCycles) {
  int exact = 0;
  int rows = 0;
  for (const Row& row : published_rows()) {
    SCOPED_TRACE(row.where);
    const flit::LoopResult run = run_synthetic(row.study, row.fused, true);
    ASSERT_EQ(run.deadlock, "");
    const double error = static_cast<double>(run.end) / static_cast<double>(row.published) - 1;
    EXPECT_LE(std::abs(error), 0.004) << run.end << ", published " << row.published;
    exact += run.end == row.published ? 1 : 0;
    ++rows;
  }
  EXPECT_EQ(rows, 80);
  EXPECT_EQ(exact, 75);  // ways at random on tori too: seed and draws are the artifact's
}

/// F(B) of packets of 256 bytes: 6 flits of 50 bytes and a head.
std::int64_t flits(std::int64_t bytes) {
  const std::int64_t rest = bytes % 256;
  return 7 * (bytes / 256) + (rest > 0 ? (rest + 49) / 50 + 1 : 0);
}

/// Published formulas hold for the groups of 2 x 2 and 4, in steps in which nothing meets.
RC_GTEST_PROP(Synthetic, CollectivesOfFourTakeTheClosedForm, ()) {
  const auto topology = *rc::gen::element(Topology::mesh2d, Topology::torus2d, Topology::torus3d,
                                          Topology::two_switch);
  const std::int64_t m = 16 * *rc::gen::inRange<std::int64_t>(1, 4000);
  const auto cycles = [&](Pair pair, bool fused) {
    return run_synthetic({topology, pair, Bytes(m), 1, 1}, fused, false).end;
  };
  const auto step = [&](std::int64_t bytes) {
    return flits(bytes) + (topology == Topology::two_switch ? 205 : 109);
  };
  const std::int64_t gather = step(m / 4) + step(m / 2);
  RC_ASSERT(cycles(Pair::tp_sp, true) == gather + 3);                // 2 additions, 1 release
  RC_ASSERT(cycles(Pair::tp_sp, false) == gather + 3 + 1 + gather);  // RS, release, AG
  RC_ASSERT(cycles(Pair::sp_ep, true) == 2 * step(m / 8));
  RC_ASSERT(cycles(Pair::sp_ep, false) == gather + 2 * step(m / 8));
}

TEST(Synthetic, WithoutTheDefectsOfTheArtifact) {
  Synthetic study{.topology = Topology::two_switch, .pair = Pair::tp_sp, .message = 4_KiB};
  const auto cycles = [&](bool fused, bool artifact) {
    return run_synthetic(study, fused, artifact).end;
  };
  // F(1 KiB) = 28, F(2 KiB) = 56; 205 each, 2 additions, 1 release: 497 instead of 995.
  EXPECT_EQ(cycles(true, false), 497);
  EXPECT_EQ(cycles(true, true), 995);
  // AR = 497 + 1 + 494: the fused one is 2 times as fast, not 1.5.
  EXPECT_EQ(cycles(false, false), 992);
  study.topology = Topology::torus3d;
  EXPECT_EQ(cycles(true, false), 305);
  EXPECT_EQ(cycles(true, true), 194);
}

TEST(Synthetic, EveryFlitSimulatedGivesTheSame) {
  for (const Topology topology :
       {Topology::mesh2d, Topology::torus2d, Topology::torus3d, Topology::two_switch}) {
    for (const Pair pair : {Pair::tp_pp, Pair::pp_ep, Pair::sp_ep}) {
      for (const bool fused : {false, true}) {
        const Synthetic study{.topology = topology, .pair = pair, .message = 4_KiB};
        EXPECT_EQ(run_synthetic(study, fused, false, true).end,
                  run_synthetic(study, fused, false, false).end)
            << name_of(topology) << " " << name_of(pair) << " " << fused;
      }
    }
  }
}

}  // namespace
}  // namespace orrery::chimera
