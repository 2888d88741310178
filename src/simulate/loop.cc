// SPDX-License-Identifier: Apache-2.0
#include "simulate/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

namespace orrery {
namespace {

constexpr std::size_t index_of(Stream stream) {
  return static_cast<std::size_t>(stream);
}
constexpr std::size_t index_of(Axis axis) {
  return static_cast<std::size_t>(axis);
}
constexpr std::size_t index_of(Channel channel) {
  return static_cast<std::size_t>(channel);
}
constexpr std::size_t kFirstSlots = 4;
constexpr std::int64_t kProgressEvery = 4096;  // instances between two progress reports

Time longest_serialisation(const CollectivePhase& phase) {
  Time longest{0};
  for (const PortUse& port : phase.ports) {
    longest = std::max(longest, port.serialisation);
  }
  return longest;
}

}  // namespace

template <class Network>
Loop<Network>::Loop(const Workload& workload, const BoundWorkload& bound, Topology topology,
                    const std::vector<std::int64_t>& ranks)
    : workload_(workload),
      bound_(bound),
      topology_(std::move(topology)),
      network_(topology_.links()) {
  build_ranks(ranks);
  build_groups(ranks);
  build_ways(ranks);
}

template <class Network>
void Loop<Network>::build_ranks(const std::vector<std::int64_t>& ranks) {
  ranks_.resize(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Rank& rank = ranks_[i];
    rank.number = ranks[i];
    rank.role = static_cast<int>(workload_.layout.coordinate(rank.number, Axis::pp));
    rank.slots.resize(kFirstSlots);
    instances_total_ += workload_.source->length(rank.role);
  }
}

template <class Network>
void Loop<Network>::build_groups(const std::vector<std::int64_t>& ranks) {
  for (const Axis axis : {Axis::tp, Axis::dp, Axis::pp, Axis::embedding}) {
    std::map<std::int64_t, int> by_first_member;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const std::vector<std::int64_t> members = workload_.layout.group(ranks[i], axis);
      int& group = ranks_[i].group[index_of(axis)];
      group = -1;
      if (members.size() < 2) {
        continue;
      }
      const auto [entry, is_new] =
          by_first_member.emplace(members.front(), static_cast<int>(groups_.size()));
      if (is_new) {
        groups_.emplace_back().links.assign(bound_.collectives.size(), -1);
      }
      group = entry->second;
      groups_[static_cast<std::size_t>(group)].members.push_back(static_cast<RankIndex>(i));
    }
  }
}

template <class Network>
void Loop<Network>::build_ways(const std::vector<std::int64_t>& ranks) {
  const RankLayout& layout = workload_.layout;
  const std::int64_t stages = layout.size(Axis::pp);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks_[i].way.fill(-1);
    if (stages == 1) {
      continue;
    }
    for (const Channel channel : {Channel::forward, Channel::backward}) {
      const std::int64_t step = channel == Channel::forward ? 1 : stages - 1;
      const std::int64_t target =
          layout.with(ranks[i], Axis::pp, (layout.coordinate(ranks[i], Axis::pp) + step) % stages);
      const auto found = std::lower_bound(ranks.begin(), ranks.end(), target);
      assert(found != ranks.end() && *found == target && "stages are never folded");
      Way way{static_cast<RankIndex>(i),
              static_cast<RankIndex>(found - ranks.begin()),
              channel,
              topology_.route(ranks[i], target),
              {}};
      std::vector<LinkId>& links = way.route.links;  // dimensions on one nic repeat its port
      std::sort(links.begin(), links.end());
      links.erase(std::unique(links.begin(), links.end()), links.end());
      for (const LinkId link : links) {
        way.links.push_back({link, 1.0});
      }
      ranks_[i].way[index_of(channel)] = static_cast<int>(ways_.size());
      ways_.push_back(std::move(way));
    }
  }
}

/// The links of every phase of `collective` for this group, made at its first use.
template <class Network>
int Loop<Network>::make_links(Group& group, int collective) {
  const auto first = static_cast<int>(link_lists_.size());
  for (const CollectivePhase& phase :
       bound_.collectives[static_cast<std::size_t>(collective)].phases) {
    const Time longest = longest_serialisation(phase);
    std::map<LinkId, double> weights;
    for (const PortUse& port : phase.ports) {
      const double weight = longest > Time(0) ? port.serialisation / longest : 1.0;
      for (const RankIndex member : group.members) {
        for (const LinkId link :
             topology_.collective_links(ranks_[member].number, port.extent.dimension,
                                        port.extent.count, port.extent.stride)) {
          weights[link] = std::max(weights[link], weight);
        }
      }
    }
    std::vector<LinkUse>& list = link_lists_.emplace_back();
    for (const auto& [link, weight] : weights) {
      list.push_back({link, weight});
    }
  }
  return first;
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
        finish_send(ways_[static_cast<std::size_t>(~owner)]);
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

// --- instances ---------------------------------------------------------------------------------

/// Keeps one instance visible beyond the one that computes, so that the next receive is posted and
/// prefetches can start.
template <class Network>
void Loop<Network>::issue_ahead(RankIndex rank) {
  while (ranks_[rank].issued <= ranks_[rank].cursors[index_of(Stream::compute)].instance + 1 &&
         issue_one(rank)) {
  }
}

template <class Network>
bool Loop<Network>::issue_one(RankIndex index) {
  Rank& rank = ranks_[index];
  if (rank.source_done) {
    return false;
  }
  const std::optional<Instance> instance = workload_.source->issue(rank.role, rank.issued);
  if (!instance) {
    rank.source_done = true;
    return false;
  }
  if (rank.issued - rank.oldest >= static_cast<std::int64_t>(rank.slots.size())) {
    std::vector<InstanceSlot> larger(rank.slots.size() * 2);
    for (std::int64_t i = rank.oldest; i < rank.issued; ++i) {
      larger[static_cast<std::size_t>(i) & (larger.size() - 1)] = std::move(slot(rank, i));
    }
    rank.slots = std::move(larger);
  }
  InstanceSlot& fresh = slot(rank, rank.issued);
  fresh.shape = &bound_.roles[static_cast<std::size_t>(rank.role)]
                             [static_cast<std::size_t>(instance->template_index)];
  fresh.instance = *instance;
  fresh.unfinished = static_cast<std::uint32_t>(fresh.shape->nodes.size());
  fresh.pending = fresh.shape->pending;
  ++rank.issued;
  retire(rank);
  for (std::size_t stream = 0; stream < kStreamCount; ++stream) {
    if (!fresh.shape->by_stream[stream].empty() && !rank.cursors[stream].busy) {
      enqueue(index, static_cast<Stream>(stream));
    }
  }
  if (progress_ && ++instances_ % kProgressEvery == 0) {
    progress_(static_cast<double>(instances_) / static_cast<double>(instances_total_));
  }
  return true;
}

template <class Network>
void Loop<Network>::retire(Rank& rank) {
  while (rank.oldest < rank.issued && slot(rank, rank.oldest).unfinished == 0) {
    ++rank.oldest;
  }
}

template <class Network>
std::optional<std::uint32_t> Loop<Network>::head(RankIndex index, Stream stream) {
  Rank& rank = ranks_[index];
  Cursor& cursor = rank.cursors[index_of(stream)];
  for (;;) {
    if (cursor.instance >= rank.issued) {
      if (stream != Stream::compute || !issue_one(index)) {
        return std::nullopt;
      }
    }
    if (cursor.instance < rank.oldest) {  // retired while this stream had nothing in it
      cursor = {.instance = rank.oldest, .position = 0};
      continue;
    }
    const auto& list = slot(rank, cursor.instance).shape->by_stream[index_of(stream)];
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

// --- nodes -------------------------------------------------------------------------------------

template <class Network>
void Loop<Network>::enqueue(RankIndex rank, Stream stream) {
  Cursor& cursor = ranks_[rank].cursors[index_of(stream)];
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
    ranks_[rank].cursors[index_of(stream)].queued = false;
    try_start(rank, stream);
  }
  work_.clear();
}

template <class Network>
void Loop<Network>::try_start(RankIndex index, Stream stream) {
  if (ranks_[index].cursors[index_of(stream)].busy) {
    return;
  }
  const std::optional<std::uint32_t> number = head(index, stream);
  if (!number) {
    return;
  }
  Rank& rank = ranks_[index];
  Cursor& cursor = rank.cursors[index_of(stream)];
  const InstanceSlot& instance = slot(rank, cursor.instance);
  if (instance.pending[*number] > 0) {
    return;
  }
  cursor.busy = true;
  cursor.begin = queue_.now();
  start(index, instance.shape->nodes[*number]);
}

template <class Network>
void Loop<Network>::start(RankIndex rank, const BoundNode& node) {
  switch (node.kind) {
    case Node::Kind::compute:
      start_compute(rank, node);
      break;
    case Node::Kind::collective:
      start_collective(rank, node);
      break;
    case Node::Kind::send:
      start_send(rank, node);
      break;
    case Node::Kind::receive:
      receive(rank, node.channel);
      break;
    case Node::Kind::wait:
      complete(rank, node.stream);
      break;
  }
}

template <class Network>
void Loop<Network>::complete(RankIndex index, Stream stream) {
  Rank& rank = ranks_[index];
  Cursor& cursor = rank.cursors[index_of(stream)];
  InstanceSlot& instance = slot(rank, cursor.instance);
  const std::uint32_t number = instance.shape->by_stream[index_of(stream)][cursor.position];
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

// --- compute -----------------------------------------------------------------------------------

template <class Network>
void Loop<Network>::start_compute(RankIndex index, const BoundNode& node) {
  Rank& rank = ranks_[index];
  const Time now = queue_.now();
  const Time end = std::max(now + node.work, rank.host + node.host_span);
  rank.host += node.host_cost;
  Job& job = rank.job;
  job.running = true;
  job.since = now;
  job.stall = end - now - node.work;
  job.contention = node.contention;
  job.remaining = static_cast<double>((end - now).value());
  job.slowdown = rank.ledger.communicating() ? node.contention : 1.0;
  rank.ledger.begin_compute(now, node.phase);
  const Time done = job.slowdown > 1 ? now + Time::from_double(job.remaining * job.slowdown) : end;
  queue_.push(done, kComputeDone, index, ++job.generation);
}

template <class Network>
void Loop<Network>::finish_compute(RankIndex index) {
  Rank& rank = ranks_[index];
  rank.job.running = false;
  rank.ledger.end_compute(queue_.now(), rank.job.stall);
  record(index, Stream::compute, queue_.now(), rank.job.stall);
  complete(index, Stream::compute);
}

/// Communication beside the running kernel has begun or ended: the rest of it changes its speed.
template <class Network>
void Loop<Network>::set_contention(RankIndex index) {
  Rank& rank = ranks_[index];
  Job& job = rank.job;
  const double slowdown = rank.ledger.communicating() ? job.contention : 1.0;
  if (!job.running || slowdown == job.slowdown) {
    return;
  }
  const Time now = queue_.now();
  job.remaining -= static_cast<double>((now - job.since).value()) / job.slowdown;
  job.remaining = std::max(0.0, job.remaining);
  job.since = now;
  job.slowdown = slowdown;
  queue_.push(now + Time::from_double(job.remaining * slowdown), kComputeDone, index,
              ++job.generation);
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

// --- communication -----------------------------------------------------------------------------

template <class Network>
void Loop<Network>::start_collective(RankIndex index, const BoundNode& node) {
  Rank& rank = ranks_[index];
  const int group = rank.group[index_of(node.axis)];
  const auto& phases = bound_.collectives[static_cast<std::size_t>(node.collective)].phases;
  if (group < 0 || phases.empty()) {
    complete(index, node.stream);
    return;
  }
  groups_[static_cast<std::size_t>(group)].collective = node.collective;
  rank.host += node.host_cost;
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
  Rank& rank = ranks_[index];
  const Cursor& cursor = rank.cursors[index_of(stream)];
  const InstanceSlot& instance = slot(rank, cursor.instance);
  const std::uint32_t number = instance.shape->by_stream[index_of(stream)][cursor.position];
  const int group_index = rank.group[index_of(instance.shape->nodes[number].axis)];
  Group& group = groups_[static_cast<std::size_t>(group_index)];
  if (++group.arrived < group.members.size()) {
    return;
  }
  group.arrived = 0;
  group.phase = 0;
  int& links = group.links[static_cast<std::size_t>(group.collective)];
  if (links < 0) {
    links = make_links(group, group.collective);
  }
  const Axis axis = bound_.collectives[static_cast<std::size_t>(group.collective)].axis;
  for (const RankIndex member : group.members) {
    ranks_[member].cursors[index_of(stream)].begin = queue_.now();
    communication_began(member, axis);
  }
  start_phase(group_index);
}

template <class Network>
void Loop<Network>::start_phase(int group_index) {
  Group& group = groups_[static_cast<std::size_t>(group_index)];
  const auto collective = static_cast<std::size_t>(group.collective);
  const CollectivePhase& phase = bound_.collectives[collective].phases[group.phase];
  const auto list = static_cast<std::size_t>(group.links[collective]) + group.phase;
  own(network_.start(queue_.now(), longest_serialisation(phase), phase.latency, link_lists_[list]),
      group_index);
}

template <class Network>
void Loop<Network>::finish_phase(int group_index) {
  Group& group = groups_[static_cast<std::size_t>(group_index)];
  const BoundCollective& collective =
      bound_.collectives[static_cast<std::size_t>(group.collective)];
  if (++group.phase < collective.phases.size()) {
    start_phase(group_index);
    return;
  }
  const Stream stream = stream_of(collective.axis);
  for (const RankIndex member : group.members) {
    communication_ended(member, collective.axis);
    record(member, stream, queue_.now(), Time(0));
    complete(member, stream);
  }
}

template <class Network>
void Loop<Network>::start_send(RankIndex index, const BoundNode& node) {
  const int number = ranks_[index].way[index_of(node.channel)];
  assert(number >= 0 && "verify() refuses sends without pipeline stages");
  const Way& way = ways_[static_cast<std::size_t>(number)];
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
  record(way.source, Stream::pp, queue_.now(), Time(0));
  if (record_spans_) {  // the same message on the receiver's side
    Span span = spans_.back();
    span.rank = ranks_[way.target].number;
    span.stream = Stream::receive;
    spans_.push_back(span);
  }
  complete(way.source, Stream::pp);
  Rank& target = ranks_[way.target];
  ++target.arrived[index_of(way.channel)];
  Cursor& cursor = target.cursors[index_of(Stream::receive)];
  if (!cursor.busy) {
    return;
  }
  const InstanceSlot& instance = slot(target, cursor.instance);
  const std::uint32_t number =
      instance.shape->by_stream[index_of(Stream::receive)][cursor.position];
  if (instance.shape->nodes[number].channel == way.channel) {
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

// --- results -----------------------------------------------------------------------------------

template <class Network>
void Loop<Network>::record(RankIndex index, Stream stream, Time end, Time stall) {
  if (!record_spans_) {
    return;
  }
  Rank& rank = ranks_[index];
  const Cursor& cursor = rank.cursors[index_of(stream)];
  const InstanceSlot& instance = slot(rank, cursor.instance);
  const std::uint32_t number = instance.shape->by_stream[index_of(stream)][cursor.position];
  const BoundNode& node = instance.shape->nodes[number];
  spans_.push_back({.rank = rank.number,
                    .stream = stream,
                    .axis = node.kind == Node::Kind::send ? Axis::pp : node.axis,
                    .phase = node.phase,
                    .template_index = instance.instance.template_index,
                    .node = static_cast<int>(number),
                    .chunk = instance.instance.chunk,
                    .microbatch = instance.instance.microbatch,
                    .begin = cursor.begin,
                    .end = end,
                    .host_stall = stall});
}

/// The first node that a stream has not completed.
template <class Network>
std::optional<std::string> Loop<Network>::waiting_node(const Rank& rank, Stream stream) const {
  const Cursor& cursor = rank.cursors[index_of(stream)];
  for (std::int64_t i = std::max(cursor.instance, rank.oldest); i < rank.issued; ++i) {
    const InstanceSlot& instance =
        rank.slots[static_cast<std::size_t>(i) & (rank.slots.size() - 1)];
    const auto& list = instance.shape->by_stream[index_of(stream)];
    const std::size_t position = i == cursor.instance ? cursor.position : 0;
    if (position < list.size()) {
      const Program& program = workload_.programs[static_cast<std::size_t>(rank.role)];
      const Template& shape =
          program.templates[static_cast<std::size_t>(instance.instance.template_index)];
      return fmt::format("rank {}: {}, microbatch {}: {} on stream {}", rank.number, shape.name,
                         instance.instance.microbatch, shape.nodes[list[position]].name,
                         name_of(stream));
    }
  }
  return std::nullopt;
}

template <class Network>
std::vector<std::string> Loop<Network>::unfinished() const {
  std::vector<std::string> waiting;
  for (const Rank& rank : ranks_) {
    const bool done = std::all_of(rank.slots.begin(), rank.slots.end(),
                                  [](const InstanceSlot& s) { return s.unfinished == 0; });
    for (std::size_t stream = 0; !done && stream < kStreamCount; ++stream) {
      if (auto node = waiting_node(rank, static_cast<Stream>(stream))) {
        waiting.push_back(std::move(*node));
      }
    }
  }
  return waiting;
}

template class Loop<AnalyticalNetwork>;

}  // namespace orrery
