// SPDX-License-Identifier: Apache-2.0
/// A run on a network, for networks.cc: it makes the loop and its transport, a copy of both for
/// each.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulate/bind.h"
#include "simulate/chain.h"
#include "simulate/fault_places.h"
#include "simulate/fold.h"
#include "simulate/loop_events.h"
#include "simulate/message_alone.h"
#include "simulate/message_fold.h"
#include "simulate/network_model.h"
#include "simulate/simulate.h"
#include "simulate/transport.h"
#include "simulate/wiring.h"

namespace orrery::simulate {

/// Returns what ranks that did not finish wait for; empty when all finished.
std::vector<std::string> unfinished(const graph::Workload& workload,
                                    const std::vector<RankState>& ranks);
Error deadlock(const std::vector<std::string>& waiting, const std::vector<std::string>& losses);
/// Time after a rank's end counts as bubble, so that every breakdown sums to the step time.
void close_breakdowns(Timeline& timeline);
/// Sets the step time and the breakdowns to their means over the steps after the warm-up, from what
/// was booked until the end of the warm-up and of the last step. Requires that all steps have
/// ended.
void average_steps(Timeline& timeline, const std::vector<Breakdown>& booked_warm,
                   const std::vector<Breakdown>& booked, std::int64_t warm_steps);

/// From what the ranks have done to the timeline; fold and ranks are there already.
template <class Transport>
Timeline finish(Timeline timeline, Loop<Transport>& loop) {
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
template <class Transport>
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
  if constexpr (requires { transport.record_messages(); }) {
    if (options.record_messages) {
      transport.record_messages();
    }
  }
  if constexpr (requires { transport.on_progress(options.progress); }) {
    transport.on_progress(options.progress);
  } else {
    loop.progress = options.progress;
  }
  return loop;
}

template <class Transport>
std::vector<std::string> stalls_of(const Transport& transport) {
  if constexpr (requires { transport.stalls(); }) {
    return transport.stalls();
  } else {
    return {};
  }
}

template <class Transport>
Fold fold_of(const graph::Workload& workload, const machine::Machine& machine, Binding& bound,
             const SimulateOptions& options) {
  constexpr bool kMessages = Transport::kPhases == PhaseChoice::with_messages;
  const bool recorded = kMessages && options.record_messages;
  const bool laid = machine.wires.graph != nullptr && !kMessages;
  const std::optional<std::string> refusal =
      !options.fold             ? std::optional<std::string>("folding is switched off")
      : !options.faults.empty() ? std::optional<std::string>("faults tell ranks apart")
      : !Transport::kFolds      ? std::optional<std::string>("every message is simulated")
      : recorded                ? std::optional<std::string>("every message is recorded")
      : laid ? std::optional<std::string>("ways on the machine's topology differ from rank to rank")
             : std::nullopt;
  return kMessages ? fold_messages(workload, machine, bound, refusal)
                   : fold_ranks(workload, machine, bound, refusal);
}

template <class Transport>
Result<Timeline> run(const graph::Workload& workload, const machine::Machine& machine,
                     const SimulateOptions& options) {
  const bool laid = machine.wires.graph != nullptr;
  Binding bound(workload, machine, options.algorithms,
                laid ? PhaseChoice::with_messages : Transport::kPhases);
  bound.bind_all();
  Fold fold = fold_of<Transport>(workload, machine, bound, options);
  const Wiring wiring(workload, bound, fold);
  engine::EventQueue queue;
  Transport transport = [&] {
    if constexpr (std::is_constructible_v<Transport, const Wiring&, Binding&,
                                          const machine::Machine&, engine::EventQueue&, bool>) {
      return Transport(wiring, bound, machine, queue, options.shortcuts);
    } else {
      return Transport(wiring, bound, machine, queue);
    }
  }();
  if (auto ok = transport.check(workload, name_of(options.network)); !ok) {
    return fail(std::move(ok.error()));
  }
  const auto faults =
      options.faults.empty()
          ? Result<faults::Schedule>(faults::Schedule{})
          : faults::schedule_of(options.faults, fault_places(machine, name_of(options.network),
                                                             Transport::kLinksChange));
  if (!faults) {
    return fail(faults.error());
  }
  Loop<Transport> loop(workload, bound, wiring, transport, queue,
                       set_up(transport, *faults, options));
  loop.run();
  if (queue.now() >= kEndOfTime) {
    return fail("the step takes longer than 106 days, beyond the range of simulated time");
  }
  Timeline timeline;
  if (const auto waiting = unfinished(workload, loop.ranks()); !waiting.empty()) {
    if (options.faults.empty()) {
      return fail(deadlock(waiting, stalls_of(transport)));
    }
    timeline.stopped = {queue.now(), deadlock(waiting, faults->losses)};
  } else if (const RankState* rank = loop.left_over()) {
    return fail(
        fmt::format("rank {}: instance {} is never issued, for the two before it have nothing "
                    "on the compute stream",
                    rank->number, rank->window.issued()));
  }
  if constexpr (requires { transport.take_messages(); }) {
    timeline.messages = transport.take_messages();
  }
  timeline.categories = TimeCategories(workload);
  timeline.ranks = std::move(fold.ranks);
  timeline.fold = std::move(fold.report);
  return finish(std::move(timeline), loop);
}

/// A network in which Links carry every message; value, names and sentence are the row's.
template <class Links>
NetworkRow message_network(NetworkRow row) {
  row.links_change = Links::kTraits.links_change;
  row.by_byte = Links::kTraits.by_byte;
  row.run = run<MessageTransport<Links>>;
  return row;
}

}  // namespace orrery::simulate
