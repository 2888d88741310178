// SPDX-License-Identifier: Apache-2.0
/// Runs of the flit network for people and programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "machine/network/flit/closed_loop.h"
#include "machine/network/flit/deadlock.h"
#include "machine/network/flit/experiment.h"
#include "report/fields.h"
#include "report/plot.h"

namespace orrery::report {

struct FlitReport {
  flit::Experiment experiment;
  std::string routing;  ///< the algorithm taken
  std::size_t routers = 0;
  std::size_t nodes = 0;
  flit::DependencyCheck dependencies;
  flit::OpenLoopResult point;            ///< at the rate asked for; nothing where there is a loop
  std::optional<flit::LoopResult> loop;  ///< a batch or messages of a file
  std::vector<std::string> names;        ///< of the events of a file
  std::optional<flit::Saturation> saturation;
  std::vector<flit::OpenLoopResult> curve;  ///< with saturation: latency by load up to it
  std::vector<std::string> notes;
};

std::string flit_table(const FlitReport& report, const flit::RouterGraph& graph);
/// Declares docs/schema/flit.json.
void declare(const FlitReport& report, Fields& fields);
/// Returns the text of a batch or of messages: when all is done, and each of a file's.
std::string flit_loop_table(const FlitReport& report, const flit::RouterGraph& graph);
/// Declares docs/schema/flit-loop.json, of a report with a loop.
void declare_loop(const FlitReport& report, Fields& fields);
/// Columns source, target, load: flits per cycle over each channel.
std::string flit_links_csv(const FlitReport& report, const flit::RouterGraph& graph);
/// Returns a plot of the mean packet and network latency over offered load.
Result<Plot> flit_plot(const FlitReport& report);

}  // namespace orrery::report
