// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulate/bind.h"
#include "simulate/fault_places.h"
#include "simulate/fold.h"
#include "simulate/loop.h"
#include "simulate/message_fold.h"
#include "simulate/network_model.h"
#include "simulate/run.h"
#include "simulate/wiring.h"

namespace orrery::simulate {
namespace {

constexpr std::size_t kNamedWaits = 8;  // how many waiting nodes a deadlock message lists

/// Returns the first node that an in-order stream has not completed, or any that another has not.
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

/// Returns what ranks that did not finish wait for; empty when all finished.
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

/// Time after a rank's end counts as bubble, so that every breakdown sums to the step time.
void close_breakdowns(Timeline& timeline) {
  timeline.step_time = timeline.run_time;
  for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
    timeline.by_rank[i].time[timeline.categories.bubble()] +=
        timeline.step_time - timeline.finish[i];
  }
}

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

/// Sets the step time and the breakdowns to their means over the steps after the warm-up, from what
/// was booked until the end of the warm-up and of the last step. Requires that all steps have
/// ended.
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

/// Fills the timeline with what the ranks have done; fold and ranks are there already.
Timeline finish(Timeline timeline, Loop& loop) {
  timeline.events = loop.events();
  timeline.spans = loop.spans().take_spans();
  timeline.instances = loop.spans().take_instances();
  std::size_t critical = 0;
  for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
    const Ledger& ledger = loop.ranks()[i].ledger;
    timeline.finish.push_back(ledger.last());
    timeline.by_rank.push_back(ledger.breakdown());
    critical = timeline.finish[i] > timeline.finish[critical] ? i : critical;
  }
  timeline.run_time = timeline.finish[critical];
  if (timeline.stopped) {  // faults may go on for long
    timeline.stopped->at = timeline.run_time;
  }
  const StepBook& steps = loop.steps();
  timeline.step_ends = steps.ends;
  if (steps.booked.empty()) {
    close_breakdowns(timeline);
    timeline.step_ends.push_back(timeline.run_time);
  } else {
    average_steps(timeline, steps.booked_warm, steps.booked, steps.warm);
  }
  timeline.critical_rank = timeline.ranks[critical];
  timeline.breakdown = timeline.by_rank[critical];
  return timeline;
}

/// Tells the transport what the run is to keep and to expect; returns what the loop is to.
LoopOptions set_up(Transport& transport, const faults::Schedule& faults,
                   const SimulateOptions& options) {
  const bool faulty = !options.faults.empty();
  const bool whole = faulty || options.record_spans || options.record_messages;  // none is left out
  LoopOptions loop{.record_spans = options.record_spans,
                   .shortcuts = options.shortcuts && !whole,
                   .faults = faulty ? &faults : nullptr,
                   .warm_steps = options.warm_steps};
  if (faulty) {
    transport.expect_faults();
  }
  if (options.record_messages) {
    transport.record_messages();
  }
  if (!transport.take_progress(options.progress)) {
    loop.progress = options.progress;
  }
  return loop;
}

Fold fold_of(const Transport::Traits& traits, const graph::Workload& workload,
             const machine::Machine& machine, Binding& bound, const SimulateOptions& options) {
  const bool messages = traits.phases == PhaseChoice::with_messages;
  const bool recorded = messages && options.record_messages;
  const bool laid = machine.wires.graph != nullptr && !messages;
  const std::optional<std::string> refusal =
      !options.fold             ? std::optional<std::string>("folding is switched off")
      : !options.faults.empty() ? std::optional<std::string>("faults tell ranks apart")
      : !traits.folds           ? std::optional<std::string>("every message is simulated")
      : recorded                ? std::optional<std::string>("every message is recorded")
      : laid ? std::optional<std::string>("ways on the machine's topology differ from rank to rank")
             : std::nullopt;
  return messages ? fold_messages(workload, machine, bound, refusal)
                  : fold_ranks(workload, machine, bound, refusal);
}

}  // namespace

Result<Timeline> run_on(const Transport::Traits& traits, MakeTransport make,
                        const graph::Workload& workload, const machine::Machine& machine,
                        const SimulateOptions& options) {
  const bool laid = machine.wires.graph != nullptr;
  Binding bound(workload, machine, options.algorithms,
                laid ? PhaseChoice::with_messages : traits.phases);
  bound.bind_all();
  Fold fold = fold_of(traits, workload, machine, bound, options);
  const Wiring wiring(workload, bound, fold);
  engine::EventQueue queue;
  const std::unique_ptr<Transport> transport =
      make(wiring, bound, machine, queue, options.shortcuts);
  if (auto ok = transport->check(workload, name_of(options.network)); !ok) {
    return fail(std::move(ok.error()));
  }
  const auto faults =
      options.faults.empty()
          ? Result<faults::Schedule>(faults::Schedule{})
          : faults::schedule_of(options.faults, fault_places(machine, name_of(options.network),
                                                             traits.links_change));
  if (!faults) {
    return fail(faults.error());
  }
  Loop loop(workload, bound, wiring, *transport, queue, set_up(*transport, *faults, options));
  loop.run();
  if (queue.now() >= kEndOfTime) {
    return fail("the step takes longer than 106 days, beyond the range of simulated time");
  }
  Timeline timeline;
  if (const auto waiting = unfinished(workload, loop.ranks()); !waiting.empty()) {
    if (options.faults.empty()) {
      return fail(deadlock(waiting, transport->stalls()));
    }
    timeline.stopped = {queue.now(), deadlock(waiting, faults->losses)};
  } else if (const RankState* rank = loop.left_over()) {
    return fail(
        fmt::format("rank {}: instance {} is never issued, for the two before it have nothing "
                    "on the compute stream",
                    rank->number, rank->window.issued()));
  }
  timeline.messages = transport->take_messages();
  timeline.categories = TimeCategories(workload);
  timeline.ranks = std::move(fold.ranks);
  timeline.fold = std::move(fold.report);
  return finish(std::move(timeline), loop);
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
