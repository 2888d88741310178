// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "machine/network/analytical.h"
#include "machine/topology/link_map.h"
#include "simulate/bind.h"
#include "simulate/fold.h"
#include "simulate/loop.h"

namespace orrery {
namespace {

constexpr std::size_t kNamedWaits = 8;  // how many waiting nodes a deadlock message lists

/// The first node that a stream has not completed.
std::optional<std::string> waiting_node(const Program& program, const RankState& rank,
                                        Stream stream) {
  const Cursor& cursor = rank.cursor(stream);
  for (std::int64_t i = std::max(cursor.instance, rank.window.oldest()); i < rank.window.issued();
       ++i) {
    const InstanceSlot& slot = rank.window[i];
    const auto& list = slot.shape->by_stream[static_cast<std::size_t>(stream)];
    const std::size_t position = i == cursor.instance ? cursor.position : 0;
    if (position < list.size()) {
      const Template& shape =
          program.templates[static_cast<std::size_t>(slot.instance.template_index)];
      return fmt::format("rank {}: {}, microbatch {}: {} on stream {}", rank.number, shape.name,
                         slot.instance.microbatch, shape.nodes[list[position]].name,
                         name_of(stream));
    }
  }
  return std::nullopt;
}

/// What ranks that did not finish wait for; empty when all finished.
std::vector<std::string> unfinished(const Workload& workload, const std::vector<RankState>& ranks) {
  std::vector<std::string> waiting;
  for (const RankState& rank : ranks) {
    const Program& program = workload.programs[static_cast<std::size_t>(rank.role)];
    for (int stream = 0; stream < kStreamCount; ++stream) {
      if (auto node = waiting_node(program, rank, static_cast<Stream>(stream))) {
        waiting.push_back(std::move(*node));
      }
    }
  }
  return waiting;
}

Error deadlock(const std::vector<std::string>& waiting) {
  Error error(fmt::format("deadlock: {} nodes wait for ever, among them:", waiting.size()));
  for (std::size_t i = 0; i < std::min(kNamedWaits, waiting.size()); ++i) {
    error.add({{}, {}, {}, waiting[i]});
  }
  return error;
}

/// Time after a rank's end counts as bubble, so that every breakdown sums to the step time.
void close_breakdowns(Timeline& timeline) {
  for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
    timeline.by_rank[i].time[static_cast<std::size_t>(TimeCategory::bubble)] +=
        timeline.step_time - timeline.finish[i];
  }
}

}  // namespace

Result<Timeline> simulate(const Workload& workload, const Machine& machine,
                          const SimulateOptions& options) {
  LinkMap topology(machine.network);
  if (topology.devices() != workload.layout.ranks()) {
    return fail(fmt::format("the plan needs {} devices, the machine has {}",
                            workload.layout.ranks(), topology.devices()));
  }
  const BoundWorkload bound = bind(workload, machine, options.algorithms);
  Fold fold = fold_ranks(workload, machine, bound, options.fold);
  Loop<AnalyticalNetwork> loop(
      workload, bound, Wiring(workload.layout, bound, std::move(topology), fold.ranks), fold.ranks);
  if (options.record_spans) {
    loop.record_spans();
  }
  loop.on_progress(options.progress);
  loop.run();
  if (const auto waiting = unfinished(workload, loop.ranks()); !waiting.empty()) {
    return fail(deadlock(waiting));
  }

  Timeline timeline;
  timeline.ranks = std::move(fold.ranks);
  timeline.fold = std::move(fold.report);
  timeline.events = loop.events();
  timeline.spans = loop.take_spans();
  std::size_t critical = 0;
  for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
    timeline.finish.push_back(loop.finish(i));
    timeline.by_rank.push_back(loop.breakdown(i));
    critical = timeline.finish[i] > timeline.finish[critical] ? i : critical;
  }
  timeline.step_time = timeline.finish[critical];
  if (timeline.step_time.is_overflow()) {
    return fail("the step takes longer than 106 days, beyond the range of simulated time");
  }
  close_breakdowns(timeline);
  timeline.critical_rank = timeline.ranks[critical];
  timeline.breakdown = timeline.by_rank[critical];
  return timeline;
}

}  // namespace orrery
