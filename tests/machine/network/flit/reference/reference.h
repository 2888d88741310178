// SPDX-License-Identifier: Apache-2.0
/// Rows of the public cases (README.md), as experiments.
#pragma once

#include <string>

#include "base/csv.h"
#include "base/reader.h"
#include "machine/network/flit/experiment.h"

namespace orrery::flit {

struct ReferenceRow {
  const CsvTable& table;
  const CsvRow& row;

  std::string text(const char* column) const {
    return std::string(row.cells[*table.column(column)]);
  }
  double number(const char* column) const { return *parse_number(text(column)); }
  int whole(const char* column) const { return static_cast<int>(number(column)); }

  Experiment experiment() const {
    Experiment made;
    const std::string& topology = text("topology");
    const std::string& k = text("k");
    const std::string& n = text("n");
    const std::string square = n == "1" ? k : k + "x" + k;
    made.topology = topology == "anynet" ? "graph:" ORRERY_SOURCE_DIR
                                           "/tests/machine/network/flit/reference/ring6"
                    : topology == "flatfly" ? "flatfly:" + square + ",c=" + text("concentration")
                    : topology == "fattree" || topology == "fly" ? topology + ":k=" + k + ",n=" + n
                                                                 : topology + ":" + square;
    made.routing = text("routing");
    made.pattern = text("traffic");
    made.router.vcs = whole("num_vcs");
    made.router.buffer = whole("vc_buf_flits");
    made.load.packet = whole("packet_flits");
    made.load.sample_period = whole("sample_period_cycles");
    made.load.warmup_periods = whole("warmup_periods");
    made.load.max_samples = whole("max_samples");
    made.load.seed = static_cast<std::uint64_t>(whole("seed"));
    made.load.latency_limit = number("latency_limit_cycles");
    made.load.stopping_threshold = number("stopping_threshold");
    made.states_periods = true;
    return made;
  }
};

}  // namespace orrery::flit
