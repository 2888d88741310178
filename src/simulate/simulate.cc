// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulate/bind.h"
#include "simulate/chain.h"
#include "simulate/fault_places.h"
#include "simulate/fold.h"
#include "simulate/loop.h"
#include "simulate/message_fold.h"
#include "simulate/message_transport.h"
#include "simulate/transport.h"
#include "simulate/wiring.h"

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
  for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
    timeline.by_rank[i].time[timeline.categories.bubble()] +=
        timeline.step_time - timeline.finish[i];
  }
}

/// From what the ranks have done to the timeline; fold and ranks are there already.
template <class Transport>
Timeline finish(Timeline timeline, Loop<Transport>& loop) {
  timeline.categories = loop.categories();
  timeline.events = loop.events();
  timeline.spans = loop.take_spans();
  timeline.instances = loop.take_instances();
  std::size_t critical = 0;
  for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
    timeline.finish.push_back(loop.finish(i));
    timeline.by_rank.push_back(loop.breakdown(i));
    critical = timeline.finish[i] > timeline.finish[critical] ? i : critical;
  }
  timeline.step_time = timeline.finish[critical];
  if (timeline.stopped) {  // faults may go on for long
    timeline.stopped->at = timeline.step_time;
  }
  close_breakdowns(timeline);
  timeline.critical_rank = timeline.ranks[critical];
  timeline.breakdown = timeline.by_rank[critical];
  return timeline;
}

template <class Transport>
void set_up(Loop<Transport>& loop, Transport& transport, const faults::Schedule& faults,
            const SimulateOptions& options) {
  const bool faulty = !options.faults.empty();
  if (options.record_spans) {
    loop.record_spans();
  } else if (options.shortcuts && !faulty && !options.record_messages) {  // none is left out
    loop.take_shortcuts();
  }
  if (faulty) {
    transport.expect_faults();
    loop.strike(faults);
  }
  if constexpr (requires { transport.record_messages(); }) {
    if (options.record_messages) {
      transport.record_messages();
    }
  }
  if constexpr (requires { transport.on_progress(options.progress); }) {
    transport.on_progress(options.progress);
  } else {
    loop.on_progress(options.progress);
  }
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
  Loop<Transport> loop(workload, bound, wiring, transport, queue);
  set_up(loop, transport, *faults, options);
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
  timeline.ranks = std::move(fold.ranks);
  timeline.fold = std::move(fold.report);
  return finish(std::move(timeline), loop);
}

struct Network {
  NetworkModel model;
  Result<Timeline> (*run)(const graph::Workload&, const machine::Machine&, const SimulateOptions&);
};

/// How to run each of kNames<NetworkModel>, in its order.
constexpr std::array kNetworks{
    Network{NetworkModel::ports, run<PortTransport>},
    Network{NetworkModel::fifo, run<MessageTransport<network::FifoNetwork>>},
    Network{NetworkModel::flow, run<MessageTransport<network::FairNetwork>>},
    Network{NetworkModel::flit, run<MessageTransport<flit::FlitNetwork>>},
    Network{NetworkModel::packet, run<MessageTransport<network::PacketLinks>>},
};
static_assert(std::ranges::equal(kNetworks, kNames<NetworkModel>, {}, &Network::model,
                                 &Named<NetworkModel>::value));

}  // namespace

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
  return kNetworks[static_cast<std::size_t>(options.network)].run(workload, machine, options);
}

}  // namespace orrery::simulate
