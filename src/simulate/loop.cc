// SPDX-License-Identifier: Apache-2.0
#include "simulate/loop.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "simulate/message_transport.h"
#include "simulate/steady.h"
#include "simulate/transport.h"

namespace orrery {
namespace {

constexpr std::int64_t kProgressEvery = 4096;  // instances between two progress reports

/// A chain's kernels and collectives in its rank's ledger.
struct LedgerBook {
  Ledger& ledger;

  void begin_compute(Time now, const BoundNode& node) { ledger.begin_compute(now, node.phase); }
  void end_compute(Time now, const Job& job) { ledger.end_compute(now, job.stall(now)); }
  void begin_collective(Time now, const BoundNode& node) {
    ledger.begin_communication(now, node.kind, node.group);
  }
  void end_collective(Time now, const BoundNode& node) {
    ledger.end_communication(now, node.kind, node.group);
  }
  Beside beside() const { return ledger.beside(); }
};

}  // namespace

template <class Transport>
Loop<Transport>::Loop(const Workload& workload, Binding& bound, const Wiring& wiring,
                      Transport& transport, EventQueue& queue)
    : workload_(workload),
      bound_(bound),
      wiring_(wiring),
      transport_(transport),
      queue_(queue),
      rows_(workload),
      source_(workload.source->restart()),
      meetings_(wiring.communicator_count()),
      mailboxes_(wiring.mailbox_count()),
      chains_(workload.programs.size()),
      issued_(workload.roles.size()) {
  ranks_.reserve(wiring.ranks().size());
  for (const std::int64_t number : wiring.ranks()) {
    RankState& rank = ranks_.emplace_back(rows_, workload.streams.size());
    rank.number = number;
    rank.role = workload_.role_of(number);
    rank.program = workload_.role(rank.role).program;
    instances_total_ += source_->list() != nullptr ? source_->list()->length(rank.role) : 0;
  }
}

template <class Transport>
void Loop<Transport>::run() {
  for (RankIndex rank = 0; rank < ranks_.size(); ++rank) {
    issue_ahead(rank, Span::kNone);
  }
  drain();
  settle();
  std::optional<SteadyState<Loop>> steady;
  if constexpr (Transport::kRepeats) {
    if (take_shortcuts_) {
      steady.emplace(*this);
    }
  }
  while (!queue_.empty()) {
    const EventQueue::Event event = queue_.pop();
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
      default:
        if (const std::optional<Activity> done = transport_.handle(event)) {
          finish_transport(*done);
        }
    }
    drain();
    if (queue_.instant_is_over()) {
      settle();
      if constexpr (Transport::kRepeats) {
        if (steady && queue_.instant_is_over()) {
          steady->look();
        }
      }
    }
  }
}

/// Speeds change once per instant, whatever the order of its events.
template <class Transport>
void Loop<Transport>::settle() {
  transport_.settle();
  for (const RankIndex rank : touched_) {
    ranks_[rank].touched = false;
    set_contention(rank);
  }
  touched_.clear();
}

// ---- Issue.

/// Keeps one instance visible beyond the one that computes, so that the next receive is posted and
/// prefetches can start.
template <class Transport>
void Loop<Transport>::issue_ahead(RankIndex rank, std::uint32_t cause) {
  while (ranks_[rank].window.issued() <= ranks_[rank].stream(kComputeStream).instance + 1 &&
         issue_one(rank, cause)) {
  }
}

template <class Transport>
bool Loop<Transport>::issue_one(RankIndex index, std::uint32_t cause) {
  RankState& rank = ranks_[index];
  if (rank.source_done) {
    return false;
  }
  const Next next = source_->next(rank.role, rank.window.issued(), queue_.now());
  if (next.kind != Next::Kind::issue) {
    rank.source_done = next.kind == Next::Kind::done;
    rank.asks = next.kind == Next::Kind::wait;
    if (rank.asks && next.until < Time::max()) {
      queue_.push(next.until, kAskSource, index);
    }
    return false;
  }
  const BoundTemplate& shape = bound_.shape(rank.program, next.instance.template_index);
  if (record_spans_) {
    auto& issued = issued_[static_cast<std::size_t>(rank.role)];
    if (rank.window.issued() == std::ssize(issued)) {
      issued.push_back(next.instance);
    }
  }
  const std::int64_t number = rank.window.issued();
  InstanceSlot& slot = rank.window.push(next.instance, shape);
  slot.chains = take_shortcuts_ ? &chains_of(rank.program, next.instance.template_index) : nullptr;
  for (const StreamIndex stream : shape.streams) {
    if (!rank.stream(stream).busy) {
      enqueue(index, stream, cause);
    }
  }
  for (const std::uint32_t node : shape.free_nodes) {
    make_ready(index, number, node, cause);
  }
  if (progress_ && instances_total_ > 0 && ++instances_ % kProgressEvery == 0) {
    progress_(static_cast<double>(instances_) / static_cast<double>(instances_total_));
  }
  return true;
}

/// The ranks to which the source had nothing to give.
template <class Transport>
void Loop<Transport>::ask_again() {
  for (RankIndex rank = 0; rank < ranks_.size(); ++rank) {
    if (std::exchange(ranks_[rank].asks, false)) {
      issue_ahead(rank, Span::kNone);
    }
  }
}

template <class Transport>
std::optional<std::uint32_t> Loop<Transport>::head(RankIndex index, StreamIndex stream) {
  RankState& rank = ranks_[index];
  StreamState& cursor = rank.stream(stream);
  for (;;) {
    if (cursor.instance >= rank.window.issued()) {
      if (stream != kComputeStream || !issue_one(index, cursor.trigger)) {
        return std::nullopt;
      }
    }
    if (cursor.instance < rank.window.oldest()) {  // retired while this stream had nothing in it
      cursor.instance = rank.window.oldest();
      cursor.position = 0;
      continue;
    }
    const auto& list = rank.window[cursor.instance].shape->by_stream[*stream];
    if (cursor.position < list.size()) {
      return list[cursor.position];
    }
    ++cursor.instance;
    cursor.position = 0;
    if (stream == kComputeStream) {
      issue_ahead(index, cursor.trigger);
    }
  }
}

template <class Transport>
void Loop<Transport>::enqueue(RankIndex rank, StreamIndex stream, std::uint32_t cause) {
  StreamState& state = ranks_[rank].stream(stream);
  state.trigger = cause;
  if (!state.queued) {
    state.queued = true;
    work_.emplace_back(rank, stream);
  }
}

/// All dependencies of the node are done.
template <class Transport>
void Loop<Transport>::make_ready(RankIndex rank, std::int64_t instance, std::uint32_t node,
                                 std::uint32_t cause) {
  const StreamIndex stream = ranks_[rank].window[instance].shape->nodes[node].stream;
  if (workload_.streams[*stream].order != Order::issue) {
    ranks_[rank].stream(stream).ready.push_back({instance, node, cause});
  }
  enqueue(rank, stream, cause);
}

/// Starts what has become ready; first in, first out.
template <class Transport>
void Loop<Transport>::drain() {
  for (std::size_t i = 0; i < work_.size(); ++i) {
    const auto [rank, stream] = work_[i];
    ranks_[rank].stream(stream).queued = false;
    if (workload_.streams[*stream].order == Order::issue) {
      try_start(rank, stream);
    } else {
      try_start_ready(rank, stream);
    }
  }
  work_.clear();
}

template <class Transport>
void Loop<Transport>::try_start(RankIndex index, StreamIndex stream) {
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
      begin_chain(index, cursor.instance,
                  slot.chains->chains[static_cast<std::size_t>(slot.chains->at[*number])])) {
    return;
  }
  cursor.busy = true;
  cursor.running =
      post({.rank = index, .node = *number, .instance = cursor.instance, .cause = cursor.trigger});
  start(cursor.running);
}

template <class Transport>
void Loop<Transport>::try_start_ready(RankIndex index, StreamIndex stream) {
  const bool alone = workload_.streams[*stream].order == Order::readiness;
  for (;;) {
    StreamState& state = ranks_[index].stream(stream);  // start() may issue, which moves nothing
    if ((alone && state.busy) || state.next_ready == state.ready.size()) {
      return;
    }
    const StreamState::Ready next = state.ready[state.next_ready++];
    if (state.next_ready == state.ready.size()) {
      state.ready.clear();
      state.next_ready = 0;
    }
    state.busy = alone;
    const RunningId id =
        post({.rank = index, .node = next.node, .instance = next.instance, .cause = next.cause});
    state.running = id;
    start(id);
  }
}

template <class Transport>
RunningId Loop<Transport>::post(const Running& running) {
  if (free_running_.empty()) {
    running_.push_back(running);
    return static_cast<RunningId>(running_.size() - 1);
  }
  const RunningId id = free_running_.back();
  free_running_.pop_back();
  running_[id] = running;
  return id;
}

template <class Transport>
void Loop<Transport>::start(RunningId id) {
  switch (ranks_[running_[id].rank].node(running_[id]).kind) {
    case Node::Kind::compute:
      return start_compute(id);
    case Node::Kind::collective:
      return start_collective(id);
    case Node::Kind::copy:
    case Node::Kind::host:
      return start_copy(id);
    case Node::Kind::send:
      return start_send(id);
    case Node::Kind::receive:
      return start_receive(id);
    case Node::Kind::wait:
      return complete(id);
  }
}

template <class Transport>
void Loop<Transport>::complete(RunningId id) {
  const Running done = running_[id];
  free_running_.push_back(id);
  StreamState& state = ranks_[done.rank].stream(ranks_[done.rank].node(done).stream);
  if (state.busy && state.running == id) {
    state.busy = false;
  }
  release(done, done.span != Span::kNone ? done.span : done.cause);
}

template <class Transport>
void Loop<Transport>::release(const Running& done, std::uint32_t cause) {
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
  if (--slot.unfinished == 0 && source_->listens()) {
    source_->finished(rank.role, done.instance, queue_.now());
    ask_again();
  }
}

// ---- Compute.

template <class Transport>
void Loop<Transport>::take_host(RankState& rank, std::uint32_t span, Time cost) {
  if (record_spans_) {
    spans_[span].host_begin = rank.host;
    spans_[span].host_cause = rank.host_cause;
    spans_[span].host_waited = rank.host_waited;
  }
  rank.host += cost;
  if (record_spans_) {
    spans_[span].host_end = rank.host;
  }
  if (cost > Time(0)) {
    rank.host_cause = span;
    rank.host_waited = false;
  }
}

template <class Transport>
void Loop<Transport>::start_compute(RunningId id) {
  Running& running = running_[id];
  RankState& rank = ranks_[running.rank];
  const BoundNode& node = rank.node(running);
  const Time now = queue_.now();
  running.span = open_span(running);
  const Time host_end = rank.host + node.host_span;
  take_host(rank, running.span, node.host_cost);
  rank.ledger.begin_compute(now, node.phase);
  const double slowdown = node.contention.slowdown(rank.ledger.beside());
  const Time done = rank.job.start(now, host_end, node, slowdown);
  queue_.push(done, kComputeDone, running.rank, rank.job.generation);
}

template <class Transport>
void Loop<Transport>::finish_compute(RankIndex index) {
  RankState& rank = ranks_[index];
  rank.job.running = false;
  const Time stall = rank.job.stall(queue_.now());
  rank.ledger.end_compute(queue_.now(), stall);
  const RunningId id = rank.stream(kComputeStream).running;
  close_span(running_[id].span, stall);
  complete(id);
}

/// Communication beside the running kernel has begun or ended: the rest of it changes its speed.
template <class Transport>
void Loop<Transport>::set_contention(RankIndex index) {
  RankState& rank = ranks_[index];
  if (rank.chain.chain != nullptr) {
    LedgerBook book{rank.ledger};
    walk_of(rank, book).change_speed(queue_.now());
    push_chain_end(index);
    return;
  }
  const double slowdown = rank.job.contention.slowdown(rank.ledger.beside());
  if (rank.job.running && slowdown != rank.job.slowdown) {
    const Time done = rank.job.change_speed(queue_.now(), slowdown);
    queue_.push(done, kComputeDone, index, rank.job.generation);
  }
}

template <class Transport>
void Loop<Transport>::touch(RankIndex index) {
  RankState& rank = ranks_[index];
  if ((rank.job.running || rank.chain.chain != nullptr) && !rank.touched) {
    rank.touched = true;
    touched_.push_back(index);
  }
}

// ---- Communication.

template <class Transport>
void Loop<Transport>::communication_began(RankIndex index, const BoundNode& node) {
  RankState& rank = ranks_[index];
  if (rank.chain.chain != nullptr) {
    walk_chain(index, queue_.now());
  }
  rank.ledger.begin_communication(queue_.now(), node.kind, node.group);
  touch(index);
}

template <class Transport>
void Loop<Transport>::communication_ended(RankIndex index, const BoundNode& node) {
  RankState& rank = ranks_[index];
  if (rank.chain.chain != nullptr) {
    walk_chain(index, queue_.now());
  }
  rank.ledger.end_communication(queue_.now(), node.kind, node.group);
  touch(index);
}

template <class Transport>
Activity Loop<Transport>::new_activity(bool message) {
  if (free_activities_.empty()) {
    free_activities_.push_back(static_cast<Activity>(moving_.size()));
    moving_.emplace_back();
  }
  const Activity activity = free_activities_.back();
  free_activities_.pop_back();
  moving_[activity].message = message;
  moving_[activity].nodes.clear();
  return activity;
}

template <class Transport>
void Loop<Transport>::start_collective(RunningId id) {
  Running& running = running_[id];
  RankState& rank = ranks_[running.rank];
  const BoundNode& node = rank.node(running);
  const CommunicatorIndex communicator = wiring_.communicator_of(running.rank, node.group);
  if (communicator == Wiring::kNone || bound_.phases(node.collective, rank.number).empty()) {
    complete(id);
    return;
  }
  running.span = open_span(running);
  if (rank.chain.chain != nullptr) {
    walk_chain(running.rank, queue_.now());  // its nodes take the host before this one
  }
  take_host(rank, running.span, node.host_cost);
  if (rank.host > queue_.now()) {
    queue_.push(rank.host, kHostReady, id);
  } else {
    arrive(id);
  }
}

/// A rank has reached its collective, or copy; the last of the group starts it.
template <class Transport>
void Loop<Transport>::arrive(RunningId id) {
  const Running& running = running_[id];
  const BoundNode& node = ranks_[running.rank].node(running);
  if (node.kind == Node::Kind::copy || node.kind == Node::Kind::host) {
    const Activity activity = new_activity(false);
    moving_[activity].nodes.push_back(id);
    if (record_spans_) {
      spans_[running.span].begin = queue_.now();
      spans_[running.span].last_member = running.span;
    }
    communication_began(running.rank, node);
    transport_.begin_copy(activity, node.collective);
    return;
  }
  const CommunicatorIndex number = wiring_.communicator_of(running.rank, node.group);
  std::vector<RunningId>& arrived = meetings_[static_cast<std::size_t>(number)].arrived;
  arrived.push_back(id);
  if (arrived.size() < wiring_.communicator(number).members.size()) {
    return;
  }
  const Activity activity = new_activity(false);
  moving_[activity].nodes.swap(arrived);
  for (const RunningId member : moving_[activity].nodes) {
    if (record_spans_) {
      spans_[running_[member].span].begin = queue_.now();
      spans_[running_[member].span].last_member = running.span;
    }
    communication_began(running_[member].rank, node);
  }
  transport_.begin_collective(activity, number, node.collective);
}

template <class Transport>
void Loop<Transport>::start_copy(RunningId id) {
  Running& running = running_[id];
  RankState& rank = ranks_[running.rank];
  running.span = open_span(running);
  if (rank.chain.chain != nullptr) {
    walk_chain(running.rank, queue_.now());
  }
  take_host(rank, running.span, rank.node(running).host_cost);
  if (rank.host > queue_.now()) {
    queue_.push(rank.host, kHostReady, id);
  } else {
    arrive(id);
  }
}

template <class Transport>
void Loop<Transport>::start_send(RunningId id) {
  Running& running = running_[id];
  const BoundNode& node = ranks_[running.rank].node(running);
  const Way& way = wiring_.way_of(running.rank, node.flow);
  running.span = open_span(running);
  communication_began(running.rank, node);
  communication_began(way.target, node);
  const Activity activity = new_activity(true);
  moving_[activity].nodes.push_back(id);
  transport_.begin_message(activity, way, node.bytes);
}

template <class Transport>
void Loop<Transport>::finish_transport(Activity activity) {
  std::vector<RunningId> nodes;
  nodes.swap(moving_[activity].nodes);
  free_activities_.push_back(activity);
  if (moving_[activity].message) {
    const Running& send = running_[nodes.front()];
    const Way& way = wiring_.way_of(send.rank, ranks_[send.rank].node(send).flow);
    finish_message(way, nodes.front());
  } else {
    for (const RunningId member : nodes) {
      const Running& running = running_[member];
      communication_ended(running.rank, ranks_[running.rank].node(running));
      close_span(running.span, Time(0));
      complete(member);
    }
  }
  nodes.clear();
  moving_[activity].nodes.swap(nodes);  // keeps its memory
}

template <class Transport>
void Loop<Transport>::finish_message(const Way& way, RunningId send) {
  const Running running = running_[send];
  const BoundNode& node = ranks_[running.rank].node(running);
  communication_ended(way.source, node);
  communication_ended(way.target, node);
  close_span(running.span, Time(0));
  if (record_spans_) {  // the same message on the receiver's side
    Span& received = spans_[running.span + 1];
    received = spans_[running.span];
    received.rank = ranks_[way.target].number;
    received.kind = Node::Kind::receive;
    received.cause = running.span;
  }
  complete(send);
  Mailbox& mailbox = mailboxes_[way.mailbox];
  if (mailbox.next_waiting == mailbox.waiting.size()) {
    ++mailbox.arrived;
    return;
  }
  const RunningId receive = mailbox.waiting[mailbox.next_waiting++];
  if (mailbox.next_waiting == mailbox.waiting.size()) {
    mailbox.waiting.clear();
    mailbox.next_waiting = 0;
  }
  running_[receive].cause = running.span;
  if (record_spans_) {
    spans_[running.span + 1].stream = ranks_[way.target].node(running_[receive]).stream;
  }
  complete(receive);
}

template <class Transport>
void Loop<Transport>::start_receive(RunningId id) {
  const Running& running = running_[id];
  const BoundNode& node = ranks_[running.rank].node(running);
  Mailbox& mailbox = mailboxes_[wiring_.mailbox_of(running.rank, node.flow)];
  if (mailbox.arrived > 0) {
    --mailbox.arrived;
    complete(id);
  } else {
    mailbox.waiting.push_back(id);
  }
}

// ---- Chains: the nodes that one event stands for (chain.h).

template <class Transport>
const ChainTable& Loop<Transport>::chains_of(std::size_t program, int template_index) {
  std::vector<std::unique_ptr<ChainTable>>& tables = chains_[program];
  const auto number = static_cast<std::size_t>(template_index);
  if (number >= tables.size()) {
    tables.resize(number + 1);
  }
  if (tables[number] == nullptr) {
    const std::vector<bool> serial =
        serial_streams(workload_.programs[program].templates, workload_.streams.size());
    const auto undisturbed = [&](const BoundNode& node) { return time_alone(program, node); };
    tables[number] = std::make_unique<ChainTable>(
        find_chains(bound_.shape(program, template_index), serial, undisturbed));
  }
  return *tables[number];
}

/// Of a collective that nothing can disturb on any rank of the program; 0 where it does nothing.
template <class Transport>
std::optional<Time> Loop<Transport>::time_alone(std::size_t program, const BoundNode& node) {
  std::optional<Time> same;
  for (RankIndex rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].program != program) {
      continue;
    }
    const CommunicatorIndex communicator = wiring_.communicator_of(rank, node.group);
    const bool idle = communicator == Wiring::kNone ||
                      bound_.phases(node.collective, ranks_[rank].number).empty();
    const std::optional<Time> alone =
        idle ? std::optional(Time(0)) : transport_.undisturbed(communicator, node.collective);
    if (!alone || (!idle && *alone == Time(0)) || (same && *same != *alone)) {
      return std::nullopt;
    }
    same = alone;
  }
  return same;
}

template <class Transport>
bool Loop<Transport>::begin_chain(RankIndex index, std::int64_t instance, const Chain& chain) {
  if (!streams_stand_at(index, instance, chain)) {
    return false;
  }
  RankState& rank = ranks_[index];
  for (std::size_t lane = 0; lane < chain.lane_count; ++lane) {
    rank.stream(chain.streams[lane]).busy = true;
  }
  rank.chain.chain = &chain;
  rank.chain.instance = instance;
  rank.chain.place = {};
  rank.chain.host_in_time = rank.host - queue_.now() <= chain.slack;
  rank.chain.end = Time::max();
  LedgerBook book{rank.ledger};
  walk_of(rank, book).begin(queue_.now());
  push_chain_end(index);
  return true;
}

/// Whether the next node on every other stream of the chain is the chain's first there.
template <class Transport>
bool Loop<Transport>::streams_stand_at(RankIndex index, std::int64_t instance, const Chain& chain) {
  for (std::size_t lane = 1; lane < chain.lane_count; ++lane) {
    const StreamIndex stream = chain.streams[lane];
    const StreamState& state = ranks_[index].stream(stream);
    if (state.busy || head(index, stream) != chain.lanes[lane].front().node ||
        state.instance != instance) {
      return false;
    }
  }
  return true;
}

template <class Transport>
template <class Book>
ChainWalk<Book> Loop<Transport>::walk_of(RankState& rank, Book& book) {
  return {*rank.chain.chain, *rank.window[rank.chain.instance].shape,
          rank.chain.place,  rank.job,
          rank.host,         book};
}

/// To the nodes that run at `now`. What happens at this very instant changes speeds in settle(), as
/// everything else does.
template <class Transport>
void Loop<Transport>::walk_chain(RankIndex index, Time now) {
  RankState& rank = ranks_[index];
  LedgerBook book{rank.ledger};
  ChainWalk<LedgerBook> walk = walk_of(rank, book);
  while (!walk.over() && rank.chain.place.next() <= now) {
    const Time moment = rank.chain.place.next();
    walk.step();
    if (moment < now) {
      walk.change_speed(moment);
    } else {
      touch(index);
    }
  }
}

template <class Transport>
void Loop<Transport>::push_chain_end(RankIndex index) {
  RankState& rank = ranks_[index];
  const ChainRun& run = rank.chain;
  const Time end = chain_end(*run.chain, *rank.window[run.instance].shape, run.place, rank.job,
                             rank.host, outside_of_chain(rank), run.host_in_time);
  if (end != run.end) {
    rank.chain.end = end;
    queue_.push(end, kChainDone, index, ++rank.chain.generation);
  }
}

/// What runs beside the chain's kernels, apart from its own collectives.
template <class Transport>
Beside Loop<Transport>::outside_of_chain(const RankState& rank) const {
  int own = 0;
  for (std::size_t lane = 1; lane < rank.chain.chain->lane_count; ++lane) {
    own += rank.chain.place.end[lane] < Time::max() && !rank.chain.place.waits[lane] ? 1 : 0;
  }
  return rank.ledger.beside_without(own);
}

template <class Transport>
void Loop<Transport>::finish_chain(RankIndex index) {
  walk_chain(index, queue_.now());
  RankState& rank = ranks_[index];
  const Chain& chain = *rank.chain.chain;
  assert(rank.chain.place.done[0] == chain.lanes[0].size() && "the chain ends when it was to end");
  rank.chain.chain = nullptr;
  ++rank.chain.generation;
  const std::uint32_t inside = chain.count - 1;  // release() completes the last
  completions_ += inside;
  rank.window[rank.chain.instance].unfinished -= inside;
  for (std::size_t lane = 0; lane < chain.lane_count; ++lane) {
    StreamState& state = rank.stream(chain.streams[lane]);
    state.busy = false;
    state.position += static_cast<std::uint32_t>(chain.lanes[lane].size());
    if (lane > 0) {
      enqueue(index, chain.streams[lane], Span::kNone);
    }
  }
  --rank.stream(kComputeStream).position;
  release({.rank = index, .node = chain.last(), .instance = rank.chain.instance}, Span::kNone);
}

// ---- Spans.

template <class Transport>
std::uint32_t Loop<Transport>::open_span(const Running& running) {
  if (!record_spans_) {
    return Span::kNone;
  }
  const RankState& rank = ranks_[running.rank];
  const Instance& instance = rank.window[running.instance].instance;
  const BoundNode& node = rank.node(running);
  const auto number = static_cast<std::uint32_t>(spans_.size());
  spans_.push_back({.rank = rank.number,
                    .stream = node.stream,
                    .kind = node.kind,
                    .group = node.group,
                    .phase = node.phase,
                    .template_index = instance.template_index,
                    .node = static_cast<int>(running.node),
                    .chunk = instance.chunk,
                    .microbatch = instance.microbatch,
                    .begin = queue_.now(),
                    .end = queue_.now(),
                    .ready = queue_.now(),
                    .host_begin = rank.host,
                    .host_end = rank.host,
                    .cause = running.cause});
  if (node.kind == Node::Kind::send) {
    spans_.push_back(spans_.back());
  }
  return number;
}

template <class Transport>
void Loop<Transport>::close_span(std::uint32_t span, Time stall) {
  if (record_spans_) {
    spans_[span].end = queue_.now();
    spans_[span].host_stall = stall;
  }
}

template class Loop<PortTransport>;
template class Loop<MessageTransport<FifoNetwork>>;
template class Loop<MessageTransport<FairNetwork>>;

}  // namespace orrery
