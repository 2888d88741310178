// SPDX-License-Identifier: Apache-2.0
#include "machine/network/packet.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <numeric>

#include "engine/event_queue.h"

namespace orrery::network {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::uint32_t kLastAck = UINT32_MAX;  // as the number of a packet
constexpr double kCalibratedRate = 12.5e9;      // 100 Gbit/s, of which counts of packets are given
constexpr Bytes kPull{4096};                    // wire bytes of one credit
constexpr double kPacerShare = 0.99;
constexpr Bytes kFraming{38};  // preamble and gap, that only the pacer counts

enum Event : std::uint32_t {
  start,
  sent,
  arrived,
  acknowledged,
  refused,
  header,
  pulled,
  tick,
  pause,
  go
};

struct Packet {
  std::uint32_t flow = 0;
  std::uint32_t number = 0;
  std::uint32_t wire = 0;
  std::uint32_t way = 0;       ///< first of its links in ways_
  std::uint32_t next = kNone;  ///< in a queue
  std::uint16_t hop = 0;
  std::uint16_t hops = 0;
  std::uint32_t path = 0;
};

/// The sending end of a link.
struct Port {
  std::uint32_t first = kNone;
  std::uint32_t last = kNone;
  std::uint32_t sending = kNone;
  std::int64_t queued = 0;   ///< bytes, without what is being sent
  std::int64_t ingress = 0;  ///< bytes in the node at its far end that came over it
  Time debt{0};              ///< of control packets that passed while it was busy
  bool paused = false;
  bool stopping = false;             ///< its far end has asked for a pause
  std::vector<std::uint32_t> flows;  ///< of a host, that may have something to send
  std::size_t turn = 0;
};

struct Stream {
  std::uint32_t count = 0;        ///< packets
  std::uint32_t last_wire = 0;    ///< of the last of them
  std::uint32_t fresh = 0;        ///< next that was never sent
  std::uint32_t unsolicited = 0;  ///< packets left of the first window
  std::uint32_t acknowledged = 0;
  std::int64_t credit = 0;      ///< bytes
  std::int64_t wanted = 0;      ///< bytes that the receiver has yet to pull
  std::int64_t unreported = 0;  ///< of them, of which the receiver has not heard
  bool known = false;           ///< to the receiver
  bool urgent = false;          ///< the receiver wants trimmed packets again
  std::uint32_t nic = 0;        ///< link
  std::deque<std::uint32_t> again;
  std::vector<std::uint32_t> ways;  ///< by path id: first of its links
  std::vector<std::uint16_t> hops;
  std::vector<std::uint32_t> order;  ///< of path ids in this round
  std::vector<bool> avoided;         ///< path ids that trimmed in this round
  std::size_t next_path = 0;
  std::uint64_t random = 0;
  Time reverse{0};       ///< of a control packet over path 0
  bool listed = false;   ///< among its host's flows
  bool waiting = false;  ///< among its receiver's
};

/// What a host pulls from.
struct Receiver {
  std::deque<std::uint32_t> flows;
  std::deque<std::uint32_t> urgent;
  Time next{0};
  bool ticking = false;
};

class PacketNetwork {
 public:
  PacketNetwork(const topology::LinkGraph& graph, const std::vector<FlowRequest>& flows,
                const PacketOptions& options)
      : graph_(graph),
        flows_(flows),
        options_(options),
        ports_(graph.links.size()),
        streams_(flows.size()),
        receivers_(static_cast<std::size_t>(graph.hosts)) {
    if (options_.wire == Bytes(0)) {
      options_.wire = Bytes(is_eqds() ? 4150 : 9064);
    }
    run_.finish.resize(flows.size());
    run_.load.resize(graph.links.size());
    find_reverse();
    for (std::size_t l = 0; l < ports_.size(); ++l) {
      const auto number = static_cast<std::int32_t>(l);
      ports_[l].room = scaled(options_.queue, 35, number) * options_.wire.value();
      ports_[l].full = serialisation(options_.wire, number);
      ports_[l].control = serialisation(options_.header, number);
    }
  }

  bool is_eqds() const { return options_.protocol == Protocol::eqds; }

  /// The links of path `id` of a flow; ids in order from 0.
  void add_path(std::size_t flow, const std::vector<std::int32_t>& links) {
    streams_[flow].ways.push_back(static_cast<std::uint32_t>(ways_.size()));
    streams_[flow].hops.push_back(static_cast<std::uint16_t>(links.size()));
    ways_.insert(ways_.end(), links.begin(), links.end());
  }

  PacketRun run() {
    for (std::uint32_t f = 0; f < flows_.size(); ++f) {
      prepare(f);
      queue_.push(flows_[f].start, Event::start, f);
    }
    while (!queue_.empty()) {
      handle(queue_.pop());
      ++run_.events;
    }
    run_.end = run_.finish.empty() ? Time(0) : *std::ranges::max_element(run_.finish);
    return std::move(run_);
  }

 private:
  const topology::GraphLink& link(std::int32_t number) const {
    return graph_.links[static_cast<std::size_t>(number)];
  }
  Time serialisation(Bytes bytes, std::int32_t number) const {
    return bytes / link(number).bandwidth;
  }
  /// Of a count of packets at 100 Gbit/s, on a link.
  std::int64_t scaled(std::int64_t given, std::int64_t usual, std::int32_t number) const {
    return given > 0 ? given
                     : std::max<std::int64_t>(
                           1, std::llround(static_cast<double>(usual) *
                                           link(number).bandwidth.value() / kCalibratedRate));
  }

  std::int64_t payload() const { return options_.wire.value() - options_.header.value(); }

  /// The link back of every link's cable; -1: it has none.
  void find_reverse() {
    const topology::Adjacency adjacency(graph_);
    reverse_.resize(graph_.links.size(), -1);
    for (std::size_t l = 0; l < reverse_.size(); ++l) {
      const topology::GraphLink& forward = graph_.links[l];
      const auto opposite = [&](std::int32_t other) {
        return link(other).source == forward.target && link(other).target == forward.source;
      };
      if (forward.source < 0) {
        continue;
      }
      const auto beside = static_cast<std::int32_t>(l ^ 1);
      if (static_cast<std::size_t>(beside) < reverse_.size() && opposite(beside)) {
        reverse_[l] = beside;
        continue;
      }
      for (const std::int32_t other : adjacency.out(forward.target)) {
        reverse_[l] = opposite(other) ? other : reverse_[l];
      }
    }
  }
  std::int32_t reverse(std::int32_t over) const { return reverse_[static_cast<std::size_t>(over)]; }

  void prepare(std::uint32_t f) {
    Stream& stream = streams_[f];
    const std::int64_t bytes = flows_[f].bytes.value();
    stream.count =
        static_cast<std::uint32_t>(std::max<std::int64_t>(1, (bytes + payload() - 1) / payload()));
    const std::int64_t rest = bytes - (std::int64_t{stream.count} - 1) * payload();
    stream.last_wire = static_cast<std::uint32_t>(is_eqds() ? rest + options_.header.value()
                                                            : options_.wire.value());
    if (stream.hops.front() == 0) {
      return;
    }
    stream.nic = static_cast<std::uint32_t>(ways_[stream.ways.front()]);
    stream.unsolicited = is_eqds()
                             ? static_cast<std::uint32_t>(scaled(
                                   options_.window, 50, static_cast<std::int32_t>(stream.nic)))
                             : stream.count;
    stream.random = topology::mixed(options_.seed ^ topology::mixed(f));
    stream.order.resize(stream.ways.size());
    stream.avoided.resize(stream.ways.size());
    std::iota(stream.order.begin(), stream.order.end(), 0U);
    shuffle(stream);
    for (std::uint16_t h = 0; h < stream.hops.front(); ++h) {
      const std::int32_t over = ways_[stream.ways.front() + h];
      stream.reverse += serialisation(options_.header, over) + link(over).latency +
                        (h > 0 ? options_.switch_delay : Time(0));
    }
  }

  static void shuffle(Stream& stream) {
    for (std::size_t i = stream.order.size(); i > 1; --i) {
      stream.random = topology::mixed(stream.random);
      std::swap(stream.order[i - 1], stream.order[stream.random % i]);
    }
  }

  void handle(const engine::EventQueue::Event& event) {
    switch (event.kind) {
      case Event::start:
        begin(event.subject);
        break;
      case Event::sent:
        finish_sending(event.subject);
        break;
      case Event::arrived:
        arrive(event.subject);
        break;
      case Event::acknowledged:
        acknowledge(event.subject);
        break;
      case Event::header:
        learn(event.subject, true);
        control(event.subject, Event::refused, event.generation);
        break;
      case Event::refused:
        refuse(event.subject, event.generation);
        break;
      case Event::pulled:
        take_credit(event.subject);
        break;
      case Event::tick:
        pull(event.subject);
        break;
      case Event::pause:
        ports_[event.subject].paused = true;
        break;
      case Event::go:
        ports_[event.subject].paused = false;
        send_next(event.subject);
        break;
      default:
        assert(false && "every event is one of these");
    }
  }

  void begin(std::uint32_t f) {
    if (streams_[f].hops.front() == 0) {
      run_.finish[f] = queue_.now();
      return;
    }
    offer(f);
  }

  bool may_send(const Stream& stream) const {
    const bool has = !stream.again.empty() || stream.fresh < stream.count;
    return has && (stream.credit > 0 || (stream.unsolicited > 0 && stream.fresh < stream.count));
  }

  /// The flow has something to send, or may have.
  void offer(std::uint32_t f) {
    Stream& stream = streams_[f];
    if (!stream.listed && may_send(stream)) {
      stream.listed = true;
      ports_[stream.nic].flows.push_back(f);
    }
    send_next(stream.nic);
  }

  std::uint32_t wire_of(const Stream& stream, std::uint32_t number) const {
    return number + 1 == stream.count ? stream.last_wire
                                      : static_cast<std::uint32_t>(options_.wire.value());
  }

  /// The next packet of a host's flows in turn, put into the port's queue.
  void take_from_host(std::uint32_t port_number) {
    Port& port = ports_[port_number];
    while (!port.flows.empty()) {
      port.turn = port.turn < port.flows.size() ? port.turn : 0;
      const std::uint32_t f = port.flows[port.turn];
      Stream& stream = streams_[f];
      if (!may_send(stream)) {
        stream.listed = false;
        port.flows.erase(port.flows.begin() + static_cast<std::ptrdiff_t>(port.turn));
        continue;
      }
      ++port.turn;
      make_packet(f, stream);
      return;
    }
  }

  void make_packet(std::uint32_t f, Stream& stream) {
    std::uint32_t number = stream.fresh;
    if (stream.unsolicited > 0 && stream.fresh < stream.count && stream.credit <= 0) {
      --stream.unsolicited;
      ++stream.fresh;
    } else {
      if (!stream.again.empty()) {
        number = stream.again.front();
        stream.again.pop_front();
        ++run_.resent;
      } else {
        ++stream.fresh;
      }
      stream.credit -= wire_of(stream, number);
    }
    std::uint32_t id = 0;
    if (free_.empty()) {
      id = static_cast<std::uint32_t>(packets_.size());
      packets_.emplace_back();
    } else {
      id = free_.back();
      free_.pop_back();
    }
    const std::uint32_t path = next_path(stream);
    packets_[id] = {f,     number, wire_of(stream, number), stream.ways[path],
                    kNone, 0,      stream.hops[path],       path};
    ++run_.packets;
    enqueue(id);
  }

  std::uint32_t next_path(Stream& stream) {
    for (std::size_t tries = 0; tries <= stream.order.size(); ++tries) {
      if (stream.next_path == stream.order.size()) {
        stream.next_path = 0;
        shuffle(stream);
      }
      const std::uint32_t path = stream.order[stream.next_path++];
      if (!stream.avoided[path]) {
        return path;
      }
      stream.avoided[path] = false;  // skipped once
    }
    return stream.order.front();
  }

  std::int32_t link_of(const Packet& packet) const { return ways_[packet.way + packet.hop]; }

  /// At the port of its next link; a full queue of eqds trims it.
  void enqueue(std::uint32_t id) {
    Packet& packet = packets_[id];
    const auto number = static_cast<std::uint32_t>(link_of(packet));
    Port& port = ports_[number];
    if (is_eqds() && packet.hop > 0) {
      if (port.queued + packet.wire > port.room) {
        trim(id);
        return;
      }
    }
    packet.next = kNone;
    (port.first == kNone ? port.first : packets_[port.last].next) = id;
    port.last = id;
    port.queued += packet.wire;
    if (packet.hop > 0) {
      send_next(number);
    }
  }

  void trim(std::uint32_t id) {
    const Packet& packet = packets_[id];
    Time there{0};
    for (std::uint16_t h = packet.hop; h < packet.hops; ++h) {
      const std::int32_t over = ways_[packet.way + h];
      there += serialisation(options_.header, over) + link(over).latency;
      charge(over);
    }
    streams_[packet.flow].avoided[packet.path] = true;
    queue_.push(queue_.now() + there, Event::header, packet.flow, packet.number);
    free_.push_back(id);
  }

  void send_next(std::uint32_t number) {
    Port& port = ports_[number];
    if (port.sending != kNone || port.paused) {
      return;
    }
    if (port.first == kNone && !port.flows.empty()) {
      take_from_host(number);
    }
    if (port.first == kNone) {
      return;
    }
    port.sending = port.first;
    const Packet& packet = packets_[port.first];
    port.first = packet.next;
    port.queued -= packet.wire;
    const auto over = static_cast<std::int32_t>(number);
    const Time takes =
        packet.wire == options_.wire.value() ? port.full : serialisation(Bytes(packet.wire), over);
    queue_.push(queue_.now() + takes + port.debt, Event::sent, number);
    port.debt = Time(0);
  }

  void finish_sending(std::uint32_t number) {
    Port& port = ports_[number];
    const std::uint32_t id = port.sending;
    const Packet& packet = packets_[id];
    port.sending = kNone;
    run_.load[number] += packet.wire;
    const auto over = static_cast<std::int32_t>(number);
    const bool to_switch = packet.hop + 1 < packet.hops;
    queue_.push(queue_.now() + link(over).latency + (to_switch ? options_.switch_delay : Time(0)),
                Event::arrived, id);
    if (!is_eqds() && packet.hop > 0) {
      leave(static_cast<std::uint32_t>(ways_[packet.way + packet.hop - 1]), packet.wire);
    }
    send_next(number);
  }

  /// A packet that came over the link has left the node at its end.
  void leave(std::uint32_t number, std::uint32_t wire) {
    Port& port = ports_[number];
    port.ingress -= wire;
    if (port.stopping && port.ingress < options_.resume * payload()) {
      port.stopping = false;
      queue_.push(queue_.now() + link(static_cast<std::int32_t>(number)).latency, Event::go,
                  number);
    }
  }

  void arrive(std::uint32_t id) {
    Packet& packet = packets_[id];
    if (packet.hop + 1 == packet.hops) {
      deliver(id);
      return;
    }
    if (!is_eqds()) {
      const auto number = static_cast<std::uint32_t>(link_of(packet));
      Port& port = ports_[number];
      port.ingress += packet.wire;
      if (!port.stopping && port.ingress > options_.pause * payload()) {
        port.stopping = true;
        ++run_.pauses;
        queue_.push(queue_.now() + link(static_cast<std::int32_t>(number)).latency, Event::pause,
                    number);
      }
    }
    ++packet.hop;
    enqueue(id);
  }

  void deliver(std::uint32_t id) {
    const std::uint32_t f = packets_[id].flow;
    const bool last_ack = packets_[id].number == kLastAck;
    free_.push_back(id);
    if (last_ack) {
      run_.finish[f] = queue_.now();
    } else if (is_eqds()) {
      learn(f, false);
      control(f, Event::acknowledged, 0);
    } else if (++streams_[f].acknowledged < streams_[f].count || !send_last_ack(f)) {
      control(f, Event::acknowledged, 0);
    }
  }

  /// The acknowledgement that ends a flow of roce queues among the packets of its way back: false
  /// when there are no cables back.
  bool send_last_ack(std::uint32_t f) {
    const Stream& stream = streams_[f];
    const std::uint16_t hops = stream.hops.front();
    const auto first = static_cast<std::uint32_t>(ways_.size());
    for (std::uint16_t h = hops; h-- > 0;) {
      ways_.push_back(reverse(ways_[stream.ways.front() + h]));
    }
    if (std::find(ways_.begin() + first, ways_.end(), -1) != ways_.end()) {
      return false;
    }
    const std::uint32_t id = free_.back();
    free_.pop_back();
    packets_[id] = {
        f, kLastAck, static_cast<std::uint32_t>(options_.header.value()), first, kNone, 0, hops, 0};
    enqueue(id);
    send_next(static_cast<std::uint32_t>(ways_[first]));
    return true;
  }

  /// Control packets pass before others, which wait for them.
  void charge(std::int32_t over) {
    if (over < 0) {
      return;
    }
    Port& port = ports_[static_cast<std::size_t>(over)];
    if (port.sending != kNone) {
      port.debt += port.control;
    }
  }

  /// From the receiver back to the sender, over the cables of the flow's next path.
  void control(std::uint32_t f, Event event, std::uint32_t number) {
    Stream& stream = streams_[f];
    const std::size_t path = stream.next_path % stream.ways.size();
    for (std::uint16_t h = 0; h < stream.hops[path]; ++h) {
      charge(reverse(ways_[stream.ways[path] + h]));
    }
    if (event == Event::acknowledged && !is_eqds() && stream.acknowledged < stream.count) {
      return;
    }
    queue_.push(queue_.now() + stream.reverse, event, f, number);
  }

  void acknowledge(std::uint32_t f) {
    Stream& stream = streams_[f];
    stream.acknowledged += is_eqds() ? 1 : 0;
    if (stream.acknowledged == stream.count) {
      run_.finish[f] = queue_.now();
    }
  }

  /// The first credit ends the first window: what is left of it waits for credit too, of which the
  /// receiver learns with the next packet.
  void take_credit(std::uint32_t f) {
    Stream& stream = streams_[f];
    const std::uint32_t left = std::min(stream.unsolicited, stream.count - stream.fresh);
    stream.unreported += std::int64_t{left} * options_.wire.value();
    stream.unsolicited = 0;
    stream.credit += kPull.value();
    offer(f);
  }

  void refuse(std::uint32_t f, std::uint32_t number) {
    streams_[f].again.push_back(number);
    offer(f);
  }

  /// The receiver hears of a flow, or that a packet must come again.
  void learn(std::uint32_t f, bool trimmed) {
    if (!is_eqds()) {
      return;
    }
    Stream& stream = streams_[f];
    if (!stream.known) {
      stream.known = true;
      const std::uint32_t window =
          std::min(stream.count, static_cast<std::uint32_t>(scaled(
                                     options_.window, 50, static_cast<std::int32_t>(stream.nic))));
      stream.wanted += std::int64_t{stream.count - window} * options_.wire.value();
    }
    stream.wanted += stream.unreported;
    stream.unreported = 0;
    if (trimmed) {
      stream.wanted += options_.wire.value();
      stream.urgent = true;
    }
    Receiver& receiver = receivers_[static_cast<std::size_t>(flows_[f].target)];
    if (stream.wanted > 0 && !stream.waiting) {
      stream.waiting = true;
      (stream.urgent ? receiver.urgent : receiver.flows).push_back(f);
    }
    if (!receiver.ticking && !(receiver.flows.empty() && receiver.urgent.empty())) {
      receiver.ticking = true;
      queue_.push(std::max(queue_.now(), receiver.next), Event::tick,
                  static_cast<std::uint32_t>(flows_[f].target));
    }
  }

  void pull(std::uint32_t host) {
    Receiver& receiver = receivers_[host];
    std::deque<std::uint32_t>& list = receiver.urgent.empty() ? receiver.flows : receiver.urgent;
    if (list.empty()) {
      receiver.ticking = false;
      return;
    }
    const std::uint32_t f = list.front();
    list.pop_front();
    Stream& stream = streams_[f];
    stream.wanted -= kPull.value();
    stream.urgent = false;
    stream.waiting = stream.wanted > 0;
    if (stream.waiting) {
      receiver.flows.push_back(f);
    }
    control(f, Event::pulled, 0);
    const Time interval =
        serialisation(options_.wire + kFraming, static_cast<std::int32_t>(stream.nic)) *
        kPacerShare;
    receiver.next = queue_.now() + interval;
    queue_.push(receiver.next, Event::tick, host);
  }

  const topology::LinkGraph& graph_;
  const std::vector<FlowRequest>& flows_;
  PacketOptions options_;
  PacketRun run_;
  engine::EventQueue queue_;
  std::vector<Port> ports_;
  std::vector<Stream> streams_;
  std::vector<Receiver> receivers_;
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> free_;
  std::vector<std::int32_t> ways_;
  std::vector<std::int32_t> reverse_;
};

}  // namespace

PacketRun run_packets(const topology::LinkGraph& graph, const std::vector<FlowRequest>& flows,
                      const std::vector<std::vector<std::int32_t>>& ways,
                      const PacketOptions& options) {
  PacketNetwork network(graph, flows, options);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    network.add_path(f, ways[f]);
  }
  return network.run();
}

Result<PacketRun> run_packets(topology::Router& router, const std::vector<FlowRequest>& flows,
                              const PacketOptions& options) {
  PacketNetwork network(router.graph(), flows, options);
  const std::int64_t paths =
      options.paths > 0 ? options.paths
      : options.protocol == Protocol::eqds && router.routing() != topology::Routing::shortest ? 64
                                                                                              : 1;
  std::vector<topology::Hop> hops;
  std::vector<std::int32_t> links;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    for (std::int64_t path = 0; path < paths; ++path) {
      hops.clear();
      const auto key = topology::mixed(f) + static_cast<std::uint64_t>(path);
      if (!router.route(flows[f].source, flows[f].target, key, hops)) {
        return fail("no way leads from host " + std::to_string(flows[f].source) + " to host " +
                    std::to_string(flows[f].target));
      }
      links.clear();
      for (const topology::Hop& hop : hops) {
        links.push_back(static_cast<std::int32_t>(hop.link));
      }
      network.add_path(f, links);
    }
  }
  return network.run();
}

}  // namespace orrery::network
