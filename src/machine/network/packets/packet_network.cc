// SPDX-License-Identifier: Apache-2.0
#include "machine/network/packets/packet_network.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>

namespace orrery::packets {
namespace {

constexpr std::uint64_t kTellEvery = 1U << 18U;  ///< events, between two calls of progress

std::uint32_t root_of(std::vector<std::uint32_t>& parents, std::uint32_t of) {
  while (parents[of] != of) {
    of = parents[of] = parents[parents[of]];
  }
  return of;
}

}  // namespace

PacketNetwork::PacketNetwork(const topology::LinkGraph& graph,
                             const std::vector<network::FlowRequest>& flows,
                             const network::PacketOptions& options)
    : flows_(flows),
      fabric_(graph, options, flows.size()),
      credits_(fabric_),
      paced_(fabric_, flows.size()),
      delayed_(fabric_, flows.size()),
      steady_(fabric_, paced_),
      finish_(flows.size()) {}

void PacketNetwork::add_path(std::size_t flow, const std::vector<std::int32_t>& links) {
  Stream& stream = fabric_.streams()[flow];
  stream.routes.push_back(fabric_.routes().lay(links));
  stream.hops.push_back(static_cast<std::uint16_t>(links.size()));
}

void PacketNetwork::add_return_route(std::size_t flow, const std::vector<std::int32_t>& links) {
  Stream& stream = fabric_.streams()[flow];
  stream.back = fabric_.routes().lay(links);
  stream.back_hops = static_cast<std::uint16_t>(links.size());
}

void PacketNetwork::prepare(std::uint32_t f) {
  fabric_.prepare(f, by_message_);
  if (rules().is(network::Protocol::hpcc) && fabric_.stream(f).hops.front() > 0) {
    paced_.make_room_for_reports(fabric_.stream(f).hops.front());
  }
}

PacketRun PacketNetwork::run() {
  for (std::uint32_t f = 0; f < flows_.size(); ++f) {
    fabric_.stream(f).bytes = flows_[f].bytes;
    fabric_.stream(f).target = flows_[f].target;
    prepare(f);
  }
  for (const std::vector<std::uint32_t>& part : parts()) {
    run_part(part);
  }
  PacketRun run = std::move(fabric_.counted());
  run.events = events_;
  run.end = finish_.empty() ? Time(0) : *std::ranges::max_element(finish_);
  run.finish = std::move(finish_);
  return run;
}

void PacketNetwork::join_ports(std::vector<std::uint32_t>& parents, const Stream& stream,
                               std::uint32_t anchor) const {
  const auto join = [&](std::int32_t link) {
    if (link >= 0) {
      parents[root_of(parents, static_cast<std::uint32_t>(link))] = root_of(parents, anchor);
    }
  };
  for (std::size_t path = 0; path < stream.routes.size(); ++path) {
    for (std::uint32_t h = 0; h < stream.hops[path]; ++h) {
      join(routes().at(stream.routes[path] + h));
      join(routes().reverse(routes().at(stream.routes[path] + h)));
    }
  }
  for (std::uint32_t h = 0; h < stream.back_hops; ++h) {
    join(routes().at(stream.back + h));
  }
}

std::vector<std::vector<std::uint32_t>> PacketNetwork::parts() {
  const topology::LinkGraph& graph = routes().graph();
  const std::size_t links = graph.links.size();
  std::vector<std::uint32_t> parents(links + static_cast<std::size_t>(graph.hosts));
  std::iota(parents.begin(), parents.end(), 0U);
  std::vector<std::uint32_t> anchors;
  for (std::uint32_t f = 0; f < flows_.size(); ++f) {
    // The receiver's credits are of all its flows.
    anchors.push_back(static_cast<std::uint32_t>(links) +
                      static_cast<std::uint32_t>(flows_[f].target));
    join_ports(parents, fabric_.stream(f), anchors.back());
  }
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_root;
  for (std::uint32_t f = 0; f < flows_.size(); ++f) {
    by_root[root_of(parents, anchors[f])].push_back(f);
  }
  std::vector<std::vector<std::uint32_t>> parts;
  for (auto& [root, flows] : by_root) {
    std::ranges::stable_sort(flows, {}, [this](std::uint32_t f) { return flows_[f].start; });
    parts.push_back(std::move(flows));
  }
  return parts;
}

void PacketNetwork::run_part(const std::vector<std::uint32_t>& part) {
  fabric_.restart();
  steady_.restart();
  part_ = part;
  begun_ = 0;
  push_start();
  while (!fabric_.queue().empty()) {
    handle(fabric_.queue().pop());
    if ((++events_ & (kTellEvery - 1)) == 0 && progress_) {
      const std::vector<double>& load = fabric_.counted().load;
      const double carried = std::accumulate(load.begin(), load.end(), 0.0);
      progress_(std::min(1.0, carried / bytes_), events_);
    }
  }
  assert(begun_ == part_.size() && "every flow of a part begins");
}

Time PacketNetwork::next_start() const {
  return begun_ < part_.size() ? flows_[part_[begun_]].start : Time::max();
}

void PacketNetwork::push_start() {
  if (begun_ < part_.size()) {
    fabric_.queue().push(next_start() - steady_.skipped(), Event::start, 0, ++start_turn_);
  }
}

void PacketNetwork::begin_all() {
  for (; begun_ < part_.size() && next_start() == steady_.now(); ++begun_) {
    steady_.add(part_[begun_]);
    begin(part_[begun_]);
  }
  push_start();
  steady_.watch_anew();
}

void PacketNetwork::begin(std::uint32_t f) {
  if (fabric_.stream(f).hops.front() == 0) {
    end(f);
  } else if (rules().is_paced()) {
    paced_.begin(f);
  } else if (rules().is(network::Protocol::swift)) {
    delayed_.begin(f);
  } else {
    fabric_.offer(f);
  }
}

void PacketNetwork::end(std::uint32_t f) {
  if (by_message_) {
    forget(f);
    return;
  }
  finish_[f] = steady_.now();
  ++ended_;
  steady_.remove(f);
}

void PacketNetwork::handle(const engine::CalendarQueue::Event& event) {
  switch (event.kind) {
    case Event::start:
      if (event.generation == start_turn_) {
        begin_all();
      }
      break;
    case Event::started:
      moved_ = fabric_.now();
      begin(event.subject);
      break;
    case Event::sent:
      finish_sending(event.subject);
      break;
    case Event::arrived:
      if (fabric_.arrive(event.subject)) {
        deliver(event.subject);
      }
      break;
    case Event::acknowledged:
      acknowledge(event.subject);
      break;
    case Event::header:
      credits_.receive_header(event.subject, event.generation);
      break;
    case Event::refused:
      credits_.refuse(event.subject, event.generation);
      break;
    case Event::pulled:
      credits_.take(event.subject);
      break;
    case Event::carried:
      credits_.carry_pull(event.subject);
      break;
    case Event::tick:
      credits_.pull(event.subject);
      break;
    case Event::pause:
      fabric_.port(event.subject).paused = true;
      break;
    case Event::go:
      fabric_.port(event.subject).paused = false;
      fabric_.send_next(event.subject);
      if (rules().is_paced()) {
        paced_.resume(event.subject);
      }
      break;
    default:
      handle_timer(event);
  }
}

void PacketNetwork::handle_timer(const engine::CalendarQueue::Event& event) {
  switch (event.kind) {
    case Event::paced:
      if (rules().is(network::Protocol::swift)) {
        delayed_.tick(event.subject, event.generation);
      } else {
        paced_.tick(event.subject, event.generation);
      }
      break;
    case Event::notified:
      paced_.cut(event.subject);
      break;
    case Event::scan:
      delayed_.expire(event.subject);
      break;
    case Event::decay:
    case Event::increase:
      paced_.recover(event.subject, event.generation, event.kind == Event::increase);
      break;
    case Event::watch:
      if (steady_.is_current(event.generation)) {
        if (steady_.end_window(next_start())) {
          push_start();
        }
        steady_.watch();
      }
      break;
    default:
      assert(false && "every event is one of these");
  }
}

void PacketNetwork::finish_sending(std::uint32_t port) {
  moved_ = fabric_.now();
  const std::uint32_t id = fabric_.end_sending(port);
  Packet& packet = fabric_.packet(id);
  if (rules().is(network::Protocol::hpcc)) {
    paced_.report(id, fabric_.port(port));
  } else if (rules().is(network::Protocol::dcqcn)) {
    paced_.mark(packet, fabric_.port(port),
                routes().link(static_cast<std::int32_t>(port)).bandwidth);
  }
  const bool of_window = rules().is(network::Protocol::swift) && packet.hop == 0 && !packet.ack;
  const std::uint32_t f = packet.flow;
  fabric_.pass_on(id, port);
  if (of_window && !fabric_.is_gone(f)) {
    delayed_.left(f);
  }
}

void PacketNetwork::deliver(std::uint32_t id) {
  const Packet packet = fabric_.packet(id);
  const std::uint32_t f = packet.flow;
  if (fabric_.is_gone(f)) {  // a packet that was sent again without need, or its acknowledgement
    fabric_.release(id);
    return;
  }
  if (packet.ack) {
    take_ack(id);
    fabric_.release(id);
    return;
  }
  Stream& stream = fabric_.stream(f);
  stream.heard = fabric_.now();
  if (rules().is(network::Protocol::swift)) {
    fabric_.packet(id).number = delayed_.receive(f, packet.number);
  } else {
    ++stream.received;
  }
  came_whole(f);
  if (packet.marked) {
    paced_.notify(f);
  }
  if (!rules().trims() && stream.back != kNone) {
    fabric_.send_ack(id);
    return;
  }
  fabric_.release(id);
  if (rules().trims() && !credits_.receive(packet)) {
    return;
  }
  const Time wait = fabric_.charge_way_back(f);
  // Of others than ndp only the last tells the sender anything that it acts on.
  if (rules().is(network::Protocol::ndp) || stream.received == stream.count) {
    fabric_.push_in(wait, Event::acknowledged, f);
  }
}

void PacketNetwork::take_ack(std::uint32_t id) {
  const std::uint32_t f = fabric_.packet(id).flow;
  if (rules().is(network::Protocol::hpcc)) {
    if (paced_.adapt(id)) {
      end(f);
    }
  } else if (rules().is(network::Protocol::swift)) {
    if (delayed_.hear(f, fabric_.packet(id).number, fabric_.left_at(id))) {
      end(f);
    }
  } else {
    acknowledge(f);
  }
}

void PacketNetwork::acknowledge(std::uint32_t f) {
  Stream& stream = fabric_.stream(f);
  stream.acknowledged +=
      rules().is(network::Protocol::ndp) || stream.back != kNone ? 1 : stream.count;
  if (stream.acknowledged == stream.count) {
    end(f);
  }
}

}  // namespace orrery::packets
