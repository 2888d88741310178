// SPDX-License-Identifier: Apache-2.0
/// The loop's instants, streams and kernels (members of Loop).
#include <algorithm>
#include <cassert>
#include <utility>

#include "simulate/chain.h"
#include "simulate/loop.h"
#include "simulate/steady.h"

namespace orrery::simulate {
namespace {

constexpr std::uint64_t kProgressEvery = 4096;  // queue events between two progress reports

}  // namespace

Loop::Loop(const graph::Workload& workload, Binding& bound, const Wiring& wiring,
           Transport& transport, engine::EventQueue& queue, const LoopOptions& options)
    : workload_(workload),
      bound_(bound),
      wiring_(wiring),
      transport_(transport),
      queue_(queue),
      options_(options),
      rows_(workload),
      source_(workload.source->restart()),
      rendezvous_(wiring),
      chains_(workload, bound, wiring, transport),
      spans_(workload.roles.size(), options.record_spans) {
  ranks_.reserve(wiring.ranks().size());
  for (const std::int64_t number : wiring.ranks()) {
    RankState& rank = ranks_.emplace_back(rows_, workload.streams.size());
    rank.number = number;
    rank.role = workload_.role_of(number);
    rank.program = workload_.role(rank.role).program;
    instances_total_ += source_->list() != nullptr ? source_->list()->length(rank.role) : 0;
  }
  steps_.count = source_->list() != nullptr ? source_->list()->steps() : 1;
  steps_.warm = options.warm_steps;
  steps_.behind = ranks_.size();
}

void Loop::run() {
  for (RankIndex rank = 0; rank < ranks_.size(); ++rank) {
    issue_ahead(rank, Span::kNone);
  }
  drain();
  settle();
  push_fault();
  std::uint64_t handled = 0;
  std::optional<SteadyState> steady;
  if (transport_.traits().repeats && options_.shortcuts) {
    steady.emplace(*this);
  }
  while (!queue_.empty()) {
    const engine::EventQueue::Event event = queue_.pop();
    if (event.when >= kEndOfTime) {
      return;  // times have saturated: which of two comes first can no longer be told
    }
    handle(event);
    drain();
    if (queue_.instant_is_over()) {
      settle();
      if (steady && queue_.instant_is_over()) {
        steady->look();
      }
    }
    if (options_.progress && instances_total_ > 0 && ++handled % kProgressEvery == 0) {
      options_.progress(static_cast<double>(instances_) / static_cast<double>(instances_total_),
                        completions_);
    }
  }
}

void Loop::handle(const engine::EventQueue::Event& event) {
  switch (event.kind) {
    case kComputeDone:
      if (event.generation == ranks_[event.subject].job.generation) {
        finish_compute(event.subject);
      }
      break;
    case kChainDone:
      if (event.generation == ranks_[event.subject].chain.generation) {
        finish_chain(event.subject);
      }
      break;
    case kHostReady:
      arrive(event.subject);
      break;
    case kAskSource:
      ask_again();
      break;
    case kFault:
      strike_now();
      break;
    case kReroute:
      transport_.reroute();
      break;
    default:
      if (const std::optional<Activity> done = transport_.handle(event)) {
        finish_transport(*done);
      }
  }
}

/// Speeds change once per instant, whatever the order of its events.
void Loop::settle() {
  const bool last = transport_.traits().looks_ahead;
  if (!last) {
    transport_.settle();
  }
  for (const RankIndex rank : touched_) {
    ranks_[rank].touched = false;
    set_contention(rank);
  }
  touched_.clear();
  if (last) {
    transport_.settle();
  }
}

void Loop::enqueue(RankIndex rank, graph::StreamIndex stream, std::uint32_t cause) {
  StreamState& state = ranks_[rank].stream(stream);
  state.trigger = cause;
  if (!state.queued) {
    state.queued = true;
    work_.emplace_back(rank, stream);
  }
}

/// All dependencies of the node are done.
void Loop::make_ready(RankIndex rank, std::int64_t instance, std::uint32_t node,
                      std::uint32_t cause) {
  const graph::StreamIndex stream = ranks_[rank].window[instance].shape->nodes[node].stream;
  if (workload_.streams[*stream].order != graph::Order::issue) {
    ranks_[rank].stream(stream).ready.push({instance, node, cause});
  }
  enqueue(rank, stream, cause);
}

/// Starts what has become ready; first in, first out.
void Loop::drain() {
  for (std::size_t i = 0; i < work_.size(); ++i) {
    const auto [rank, stream] = work_[i];
    ranks_[rank].stream(stream).queued = false;
    const bool in_order = workload_.streams[*stream].order == graph::Order::issue;
    in_order ? try_start(rank, stream) : try_start_ready(rank, stream);
  }
  work_.clear();
}

void Loop::try_start(RankIndex index, graph::StreamIndex stream) {
  if (ranks_[index].stream(stream).busy) {
    return;
  }
  const std::optional<std::uint32_t> number = head(index, stream);
  if (!number) {
    return;
  }
  RankState& rank = ranks_[index];
  StreamState& cursor = rank.stream(stream);
  const InstanceSlot& slot = rank.window[cursor.instance];
  if (slot.pending[*number] > 0) {
    return;
  }
  if (slot.chains != nullptr && slot.chains->at[*number] >= 0 &&
      try_chain(index, cursor.instance,
                slot.chains->chains[static_cast<std::size_t>(slot.chains->at[*number])])) {
    return;
  }
  cursor.busy = true;
  cursor.running = running_.add(
      {.rank = index, .node = *number, .instance = cursor.instance, .cause = cursor.trigger});
  start(cursor.running);
}

void Loop::try_start_ready(RankIndex index, graph::StreamIndex stream) {
  const bool alone = workload_.streams[*stream].order == graph::Order::readiness;
  for (;;) {
    StreamState& state = ranks_[index].stream(stream);  // start() may issue, which moves nothing
    if ((alone && state.busy) || state.ready.empty()) {
      return;
    }
    const StreamState::Ready next = state.ready.pop();
    state.busy = alone;
    state.running = running_.add(
        {.rank = index, .node = next.node, .instance = next.instance, .cause = next.cause});
    start(state.running);
  }
}

void Loop::start(RunningId id) {
  if (is_gone(ranks_[running_[id].rank])) {
    held_.push_back({id, false});
    return;
  }
  switch (ranks_[running_[id].rank].node(running_[id]).kind) {
    case graph::Node::Kind::compute:
      return start_compute(id);
    case graph::Node::Kind::collective:
    case graph::Node::Kind::copy:
    case graph::Node::Kind::host:
      return start_moving(id);
    case graph::Node::Kind::send:
      return start_send(id);
    case graph::Node::Kind::receive:
      return start_receive(id);
    case graph::Node::Kind::wait:
      return complete(id);
  }
}

void Loop::complete(RunningId id) {
  const Running done = running_[id];
  running_.remove(id);
  StreamState& state = ranks_[done.rank].stream(ranks_[done.rank].node(done).stream);
  if (state.busy && state.running == id) {
    state.busy = false;
  }
  release(done, done.span != Span::kNone ? done.span : done.cause);
}

void Loop::release(const Running& done, std::uint32_t cause) {
  RankState& rank = ranks_[done.rank];
  InstanceSlot& slot = rank.window[done.instance];
  const BoundNode& node = slot.shape->nodes[done.node];
  if (node.host_sync && queue_.now() > rank.host) {
    rank.host = queue_.now();
    rank.host_cause = cause;
    rank.host_waited = true;
  }
  ++completions_;
  ++rank.stream(node.stream).position;
  for (std::uint32_t i = 0; i < node.dependent_count; ++i) {
    const std::uint32_t dependent = slot.shape->dependents[node.first_dependent + i];
    if (--slot.pending[dependent] == 0) {
      make_ready(done.rank, done.instance, dependent, cause);
    }
  }
  enqueue(done.rank, node.stream, cause);
  if (steps_.count > 1 && node.stream == graph::kComputeStream &&
      steps_.note(ranks_, done.rank, done.instance, queue_.now())) {
    for (RankIndex other = 0; other < ranks_.size(); ++other) {
      if (walk_chain(ranks_[other], queue_.now())) {
        touch(other);
      }
    }
    steps_.book(ranks_, queue_.now());
  }
  if (--slot.unfinished == 0 && source_->listens()) {
    source_->finished(rank.role, done.instance, queue_.now());
    ask_again();
  }
}

void Loop::start_compute(RunningId id) {
  Running& running = running_[id];
  RankState& rank = ranks_[running.rank];
  const BoundNode& node = rank.node(running);
  const Time now = queue_.now();
  running.span = spans_.open(running, rank, now);
  const Time host_end = rank.host + node.host_span;
  spans_.issue(running.span, rank, node.host_cost);
  rank.take_host(running.span, node.host_cost);
  rank.ledger.begin_compute(now, node.phase);
  const BoundTemplate& shape = *rank.window[running.instance].shape;
  const Time done = rank.job.start(now, host_end, shape, node, rank.ledger.concurrent());
  queue_.push(done, kComputeDone, running.rank, rank.job.generation);
}

void Loop::finish_compute(RankIndex index) {
  RankState& rank = ranks_[index];
  rank.job.running = false;
  const Time stall = rank.job.stall(queue_.now());
  rank.ledger.end_compute(queue_.now(), stall);
  const RunningId id = rank.stream(graph::kComputeStream).running;
  spans_.close(running_[id].span, queue_.now(), stall);
  complete(id);
}

/// Communication beside the running kernel has begun or ended: the rest of it changes its speed.
void Loop::set_contention(RankIndex index) {
  RankState& rank = ranks_[index];
  if (rank.chain.chain != nullptr) {
    change_chain_speed(rank, queue_.now());
    push_chain_end(index);
    return;
  }
  if (rank.job.running && rank.job.concurrent != rank.ledger.concurrent()) {
    const Time before = rank.job.done();
    const Time done = rank.job.change_speed(queue_.now(), rank.ledger.concurrent());
    if (done != before) {
      queue_.push(done, kComputeDone, index, ++rank.job.generation);
    }
  }
}

void Loop::touch(RankIndex index) {
  RankState& rank = ranks_[index];
  if ((rank.job.running || rank.chain.chain != nullptr) && !rank.touched) {
    rank.touched = true;
    touched_.push_back(index);
  }
}

}  // namespace orrery::simulate
