// SPDX-License-Identifier: Apache-2.0
#include "simulate/loop.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace orrery {
namespace {

template <class Enum>
constexpr std::size_t index_of(Enum value) {
  return static_cast<std::size_t>(value);
}
constexpr std::int64_t kProgressEvery = 4096;  // instances between two progress reports

}  // namespace

template <class Network>
Loop<Network>::Loop(const Workload& workload, const BoundWorkload& bound, Wiring wiring,
                    const std::vector<std::int64_t>& ranks)
    : workload_(workload),
      bound_(bound),
      wiring_(std::move(wiring)),
      network_(wiring_.topology().links()),
      ranks_(ranks.size()),
      groups_(wiring_.group_count()) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks_[i].number = ranks[i];
    ranks_[i].role = static_cast<int>(workload_.layout.coordinate(ranks[i], Axis::pp));
    instances_total_ += workload_.source->length(ranks_[i].role);
  }
}

template <class Network>
void Loop<Network>::run() {
  for (RankIndex rank = 0; rank < ranks_.size(); ++rank) {
    issue_ahead(rank);
  }
  drain();
  settle();
  while (!queue_.empty()) {
    const EventQueue::Event event = queue_.pop();
    if (event.kind == kComputeDone) {
      if (event.generation == ranks_[event.subject].job.generation) {
        finish_compute(event.subject);
      }
    } else if (event.kind == kHostReady) {
      arrive(event.subject);
    } else if (network_.handle(event)) {
      const Owner owner = owners_[event.subject];
      if (owner >= 0) {
        finish_phase(owner);
      } else {
        finish_send(wiring_.way(~owner));
      }
    }
    drain();
    if (queue_.instant_is_over()) {
      settle();
    }
  }
}

/// Speeds change once per instant, whatever the order of its events.
template <class Network>
void Loop<Network>::settle() {
  network_.settle(queue_);
  for (const RankIndex rank : touched_) {
    ranks_[rank].job.touched = false;
    set_contention(rank);
  }
  touched_.clear();
}

/// Keeps one instance visible beyond the one that computes, so that the next receive is posted and
/// prefetches can start.
template <class Network>
void Loop<Network>::issue_ahead(RankIndex rank) {
  while (ranks_[rank].window.issued() <= ranks_[rank].cursor(Stream::compute).instance + 1 &&
         issue_one(rank)) {
  }
}

template <class Network>
bool Loop<Network>::issue_one(RankIndex index) {
  RankState& rank = ranks_[index];
  if (rank.source_done) {
    return false;
  }
  const std::optional<Instance> instance = workload_.source->issue(rank.role, rank.window.issued());
  if (!instance) {
    rank.source_done = true;
    return false;
  }
  const auto& shapes = bound_.roles[static_cast<std::size_t>(rank.role)];
  const BoundTemplate& shape = shapes[static_cast<std::size_t>(instance->template_index)];
  rank.window.push(*instance, shape);
  for (const Stream stream : shape.streams) {
    if (!rank.cursor(stream).busy) {
      enqueue(index, stream);
    }
  }
  if (progress_ && ++instances_ % kProgressEvery == 0) {
    progress_(static_cast<double>(instances_) / static_cast<double>(instances_total_));
  }
  return true;
}

template <class Network>
std::optional<std::uint32_t> Loop<Network>::head(RankIndex index, Stream stream) {
  RankState& rank = ranks_[index];
  Cursor& cursor = rank.cursor(stream);
  for (;;) {
    if (cursor.instance >= rank.window.issued()) {
      if (stream != Stream::compute || !issue_one(index)) {
        return std::nullopt;
      }
    }
    if (cursor.instance < rank.window.oldest()) {  // retired while this stream had nothing in it
      cursor = {.instance = rank.window.oldest(), .position = 0};
      continue;
    }
    const auto& list = rank.window[cursor.instance].shape->by_stream[index_of(stream)];
    if (cursor.position < list.size()) {
      return list[cursor.position];
    }
    ++cursor.instance;
    cursor.position = 0;
    if (stream == Stream::compute) {
      issue_ahead(index);
    }
  }
}

template <class Network>
void Loop<Network>::enqueue(RankIndex rank, Stream stream) {
  Cursor& cursor = ranks_[rank].cursor(stream);
  if (!cursor.queued) {
    cursor.queued = true;
    work_.emplace_back(rank, stream);
  }
}

/// Starts what has become ready; first in, first out.
template <class Network>
void Loop<Network>::drain() {
  for (std::size_t i = 0; i < work_.size(); ++i) {
    const auto [rank, stream] = work_[i];
    ranks_[rank].cursor(stream).queued = false;
    try_start(rank, stream);
  }
  work_.clear();
}

template <class Network>
void Loop<Network>::try_start(RankIndex index, Stream stream) {
  if (ranks_[index].cursor(stream).busy) {
    return;
  }
  const std::optional<std::uint32_t> number = head(index, stream);
  if (!number) {
    return;
  }
  RankState& rank = ranks_[index];
  Cursor& cursor = rank.cursor(stream);
  const InstanceSlot& instance = rank.window[cursor.instance];
  if (instance.pending[*number] > 0) {
    return;
  }
  cursor.post(queue_.now(), rank.host);
  start(index, instance.shape->nodes[*number]);
}

template <class Network>
void Loop<Network>::start(RankIndex rank, const BoundNode& node) {
  switch (node.kind) {
    case Node::Kind::compute:
      return start_compute(rank, node);
    case Node::Kind::collective:
    case Node::Kind::copy:  // bound as a collective of one rank
      return start_collective(rank, node);
    case Node::Kind::send:
      return start_send(rank, node);
    case Node::Kind::receive:
      return receive(rank, node.channel);
    case Node::Kind::wait:
      return complete(rank, node.stream);
  }
}

template <class Network>
void Loop<Network>::complete(RankIndex index, Stream stream) {
  RankState& rank = ranks_[index];
  Cursor& cursor = rank.cursor(stream);
  InstanceSlot& instance = rank.window[cursor.instance];
  const std::uint32_t number = rank.running_node(stream);
  const BoundNode& node = instance.shape->nodes[number];
  if (node.host_sync) {
    rank.host = std::max(rank.host, queue_.now());
  }
  ++completions_;
  ++cursor.position;
  cursor.busy = false;
  for (std::uint32_t i = 0; i < node.dependent_count; ++i) {
    const std::uint32_t dependent = instance.shape->dependents[node.first_dependent + i];
    if (--instance.pending[dependent] == 0) {
      enqueue(index, instance.shape->nodes[dependent].stream);
    }
  }
  enqueue(index, stream);
  --instance.unfinished;
}

template <class Network>
void Loop<Network>::start_compute(RankIndex index, const BoundNode& node) {
  RankState& rank = ranks_[index];
  const Time now = queue_.now();
  const Time host_end = rank.host + node.host_span;
  rank.cursor(node.stream).host_end = rank.host += node.host_cost;
  rank.ledger.begin_compute(now, node.phase);
  const double slowdown = node.contention.slowdown(rank.ledger.beside());
  const Time done = rank.job.start(now, host_end, node, slowdown);
  queue_.push(done, kComputeDone, index, rank.job.generation);
}

template <class Network>
void Loop<Network>::finish_compute(RankIndex index) {
  RankState& rank = ranks_[index];
  rank.job.running = false;
  const Time stall = rank.job.stall(queue_.now());
  rank.ledger.end_compute(queue_.now(), stall);
  record(index, Stream::compute, stall);
  complete(index, Stream::compute);
}

/// Communication beside the running kernel has begun or ended: the rest of it changes its speed.
template <class Network>
void Loop<Network>::set_contention(RankIndex index) {
  RankState& rank = ranks_[index];
  const double slowdown = rank.job.contention.slowdown(rank.ledger.beside());
  if (rank.job.running && slowdown != rank.job.slowdown) {
    const Time done = rank.job.change_speed(queue_.now(), slowdown);
    queue_.push(done, kComputeDone, index, rank.job.generation);
  }
}

template <class Network>
void Loop<Network>::touch(RankIndex rank) {
  Job& job = ranks_[rank].job;
  if (job.running && !job.touched) {
    job.touched = true;
    touched_.push_back(rank);
  }
}

template <class Network>
void Loop<Network>::communication_began(RankIndex rank, Axis axis) {
  ranks_[rank].ledger.begin_communication(queue_.now(), axis);
  touch(rank);
}

template <class Network>
void Loop<Network>::communication_ended(RankIndex rank, Axis axis) {
  ranks_[rank].ledger.end_communication(queue_.now(), axis);
  touch(rank);
}

template <class Network>
void Loop<Network>::start_collective(RankIndex index, const BoundNode& node) {
  RankState& rank = ranks_[index];
  const int group = wiring_.group_of(index, node.axis);
  const auto& phases = bound_.collectives[static_cast<std::size_t>(node.collective)].phases;
  if (group == Wiring::kNone || phases.empty()) {
    complete(index, node.stream);
    return;
  }
  groups_[static_cast<std::size_t>(group)].collective = node.collective;
  rank.cursor(node.stream).host_end = rank.host += node.host_cost;
  if (rank.host > queue_.now()) {
    // A rank has one collective per stream; the stream tells which.
    queue_.push(rank.host, kHostReady,
                index * kStreamCount + static_cast<std::uint32_t>(node.stream));
  } else {
    arrive(index * kStreamCount + static_cast<std::uint32_t>(node.stream));
  }
}

/// A rank has reached its collective; the last of the group starts it.
template <class Network>
void Loop<Network>::arrive(std::uint32_t rank_and_stream) {
  const RankIndex index = rank_and_stream / kStreamCount;
  const auto stream = static_cast<Stream>(rank_and_stream % kStreamCount);
  const int group_index = wiring_.group_of(index, axis_of(stream));
  GroupState& group = groups_[static_cast<std::size_t>(group_index)];
  const std::vector<RankIndex>& members = wiring_.members(group_index);
  if (++group.arrived < members.size()) {
    return;
  }
  group.arrived = 0;
  group.phase = 0;
  for (const RankIndex member : members) {
    ranks_[member].cursor(stream).begin = queue_.now();
    communication_began(member, axis_of(stream));
  }
  start_phase(group_index);
}

template <class Network>
void Loop<Network>::start_phase(int group_index) {
  const GroupState& group = groups_[static_cast<std::size_t>(group_index)];
  const CollectivePhase& phase =
      bound_.collectives[static_cast<std::size_t>(group.collective)].phases[group.phase];
  own(network_.start(queue_.now(), longest_serialisation(phase), phase.latency,
                     wiring_.links(group_index, group.collective, group.phase)),
      group_index);
}

template <class Network>
void Loop<Network>::finish_phase(int group_index) {
  GroupState& group = groups_[static_cast<std::size_t>(group_index)];
  const BoundCollective& collective =
      bound_.collectives[static_cast<std::size_t>(group.collective)];
  if (++group.phase < collective.phases.size()) {
    start_phase(group_index);
    return;
  }
  const Stream stream = stream_of(collective.axis);
  for (const RankIndex member : wiring_.members(group_index)) {
    communication_ended(member, collective.axis);
    record(member, stream, Time(0));
    complete(member, stream);
  }
}

template <class Network>
void Loop<Network>::start_send(RankIndex index, const BoundNode& node) {
  const int number = wiring_.way_of(index, node.channel);
  assert(number != Wiring::kNone && "verify() refuses sends without pipeline stages");
  const Way& way = wiring_.way(number);
  communication_began(index, Axis::pp);
  communication_began(way.target, Axis::pp);
  const Time serialisation =
      from_seconds(static_cast<double>(node.bytes.value()) * way.route.seconds_per_byte);
  own(network_.start(queue_.now(), serialisation, way.route.latency + way.route.overhead,
                     way.links),
      ~number);
}

template <class Network>
void Loop<Network>::finish_send(const Way& way) {
  communication_ended(way.source, Axis::pp);
  communication_ended(way.target, Axis::pp);
  record(way.source, Stream::pp, Time(0));
  if (record_spans_) {  // the same message on the receiver's side
    Span span = spans_.back();
    span.rank = ranks_[way.target].number;
    span.stream = Stream::receive;
    spans_.push_back(span);
  }
  complete(way.source, Stream::pp);
  RankState& target = ranks_[way.target];
  ++target.arrived[index_of(way.channel)];
  const Cursor& cursor = target.cursor(Stream::receive);
  if (cursor.busy &&
      target.window[cursor.instance].shape->nodes[target.running_node(Stream::receive)].channel ==
          way.channel) {
    receive(way.target, way.channel);
  }
}

template <class Network>
void Loop<Network>::receive(RankIndex index, Channel channel) {
  std::int64_t& arrived = ranks_[index].arrived[index_of(channel)];
  if (arrived > 0) {
    --arrived;
    complete(index, Stream::receive);
  }
}

template <class Network>
void Loop<Network>::own(TransferId transfer, Owner owner) {
  if (transfer >= owners_.size()) {
    owners_.resize(transfer + 1);
  }
  owners_[transfer] = owner;
}

template <class Network>
void Loop<Network>::record(RankIndex rank, Stream stream, Time stall) {
  if (record_spans_) {
    spans_.push_back(span_of(ranks_[rank], stream, queue_.now(), stall));
  }
}

template class Loop<AnalyticalNetwork>;

}  // namespace orrery
