// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulate/bind.h"
#include "simulate/network_model.h"
#include "simulate/rank_state.h"

namespace orrery::simulate {
namespace {

constexpr std::size_t kNamedWaits = 8;  // how many waiting nodes a deadlock message lists

/// The first node that an in-order stream has not completed, or any that another has not.
std::optional<std::string> waiting_node(const graph::Workload& workload, const RankState& rank,
                                        std::size_t stream) {
  const StreamState& state = rank.streams[stream];
  const auto text = [&](std::int64_t instance, std::size_t node) {
    const InstanceSlot& slot = rank.window[instance];
    const graph::Template& shape = workload.shape(rank.role, slot.instance);
    return fmt::format("rank {}: {}, microbatch {}: {} on stream {}", rank.number, shape.name,
                       slot.instance.microbatch, shape.nodes[node].name,
                       workload.streams[stream].name);
  };
  const bool in_order = workload.streams[stream].order == graph::Order::issue;
  for (std::int64_t i = std::max(in_order ? state.instance : 0, rank.window.oldest());
       i < rank.window.issued(); ++i) {
    const InstanceSlot& slot = rank.window[i];
    const auto& list = slot.shape->by_stream[stream];
    const std::size_t position = i == state.instance ? state.position : 0;
    if (in_order && position < list.size()) {
      return text(i, list[position]);
    }
    for (std::size_t n = 0; !in_order && slot.unfinished > 0 && n < slot.pending.size(); ++n) {
      const BoundNode& node = slot.shape->nodes[n];
      const bool waits = slot.pending[n] > 0 || node.kind == graph::Node::Kind::receive ||
                         node.kind == graph::Node::Kind::collective;  // the last two for others
      if (*node.stream == stream && waits) {
        return text(i, n);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> unfinished(const graph::Workload& workload,
                                    const std::vector<RankState>& ranks) {
  std::vector<std::string> waiting;
  for (const RankState& rank : ranks) {
    for (std::size_t stream = 0; stream < workload.streams.size(); ++stream) {
      if (auto node = waiting_node(workload, rank, stream)) {
        waiting.push_back(std::move(*node));
      }
    }
    if (rank.asks) {
      waiting.push_back(fmt::format("rank {}: the next instance", rank.number));
    }
  }
  return waiting;
}

Error deadlock(const std::vector<std::string>& waiting, const std::vector<std::string>& losses) {
  Error error(fmt::format("{}: {} nodes wait for ever, among them:",
                          losses.empty() ? "deadlock" : "the run stops", waiting.size()));
  for (std::size_t i = 0; i < std::min(kNamedWaits, waiting.size()); ++i) {
    error.add({{}, {}, {}, waiting[i]});
  }
  for (std::size_t i = 0; i < std::min(kNamedWaits, losses.size()); ++i) {
    error.add({{}, {}, {}, losses[i]});
  }
  return error;
}

void close_breakdowns(Timeline& timeline) {
  timeline.step_time = timeline.run_time;
  for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
    timeline.by_rank[i].time[timeline.categories.bubble()] +=
        timeline.step_time - timeline.finish[i];
  }
}

namespace {

/// Returns what was booked from one moment to another, over the steps in between; rounded so that
/// the categories sum to the step time.
Breakdown mean_of(const Breakdown& before, const Breakdown& after, std::int64_t steps) {
  Breakdown mean = after;
  Time sum{0};
  for (std::size_t row = 0; row < mean.time.size(); ++row) {
    const Time until = sum + after.time[row] - before.time[row];
    mean.time[row] = Time(until.value() / steps) - Time(sum.value() / steps);
    sum = until;
  }
  for (std::size_t group = 0; group < mean.hidden.size(); ++group) {
    mean.hidden[group] = Time((after.hidden[group] - before.hidden[group]).value() / steps);
  }
  return mean;
}

}  // namespace

void average_steps(Timeline& timeline, const std::vector<Breakdown>& booked_warm,
                   const std::vector<Breakdown>& booked, std::int64_t warm_steps) {
  const std::int64_t steps = std::ssize(timeline.step_ends) - warm_steps;
  const Time begin =
      warm_steps > 0 ? timeline.step_ends[static_cast<std::size_t>(warm_steps) - 1] : Time(0);
  timeline.step_time = Time((timeline.step_ends.back() - begin).value() / steps);
  for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
    Breakdown none = booked[i];
    none.time.assign(none.time.size(), Time(0));
    none.hidden.assign(none.hidden.size(), Time(0));
    timeline.by_rank[i] = mean_of(warm_steps > 0 ? booked_warm[i] : none, booked[i], steps);
  }
}

Result<Timeline> simulate(const graph::Workload& workload, const machine::Machine& machine,
                          const SimulateOptions& options) {
  std::int64_t devices = 1;
  for (const topology::NetworkDimension& dimension : machine.network) {
    devices *= dimension.size;
  }
  if (devices != workload.ranks) {
    return fail(
        fmt::format("the plan needs {} devices, the machine has {}", workload.ranks, devices));
  }
  const std::int64_t steps = workload.source->list() ? workload.source->list()->steps() : 1;
  if (options.warm_steps < 0 || options.warm_steps >= steps) {
    return fail(fmt::format("a warm-up of {} steps leaves none of {} to measure",
                            options.warm_steps, steps));
  }
  return row_of(options.network).run(workload, machine, options);
}

}  // namespace orrery::simulate
