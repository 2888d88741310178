// SPDX-License-Identifier: Apache-2.0
/// The packets of packet.h: ports and what passes them (packet_ports.cc), senders and receivers
/// (packet_ends.cc), senders with clocks (packet_paced.cc) and with windows after delays
/// (packet_delay.cc), parts and their steady phases (packet_steady.cc), messages one by one
/// (packet_messages.cc). Private to the folder.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/calendar_queue.h"
#include "machine/network/packet.h"
#include "machine/network/packet_state.h"

namespace orrery::network::packets {

class PacketNetwork {
 public:
  PacketNetwork(const topology::LinkGraph& graph, const std::vector<FlowRequest>& flows,
                const PacketOptions& options)
      : graph_(graph),
        flows_(flows),
        options_(options),
        queue_(slot_width(graph)),
        ports_(graph.links.size()),
        receivers_(static_cast<std::size_t>(graph.hosts)) {
    streams_.resize(flows.size());
    if (is(Protocol::swift)) {
      options_.header = Bytes(40);
      delays_.resize(flows.size());
    }
    if (options_.wire == Bytes(0)) {
      options_.wire = Bytes(is(Protocol::eqds) ? 4150 : is(Protocol::swift) ? 4000 : 9064);
    }
    if (options_.pause == 0) {
      options_.pause = is(Protocol::dcqcn) ? 200 : 15;
      options_.resume = is(Protocol::dcqcn) ? 180 : 12;
    }
    if (is_paced()) {
      paces_.resize(flows.size());
      paced_.resize(graph.links.size());
    }
    run_.finish.resize(flows.size());
    run_.load.resize(graph.links.size());
    find_reverse();
    for (std::size_t l = 0; l < ports_.size(); ++l) {
      const auto number = static_cast<std::int32_t>(l);
      const std::int64_t each = is(Protocol::ndp) ? payload() : options_.wire.value();
      ports_[l].room = std::max(
          scaled(options_.queue, usual_queue(options_.protocol), link(number).bandwidth) * each,
          kLeastRoom * options_.wire.value());
      ports_[l].full = serialisation(options_.wire, number);
      ports_[l].control = serialisation(options_.header, number);
    }
  }

  bool is(Protocol protocol) const { return options_.protocol == protocol; }
  bool trims() const { return packets::trims(options_.protocol); }
  bool is_paced() const { return is(Protocol::hpcc) || is(Protocol::dcqcn); }
  bool pauses() const { return !trims() && !is(Protocol::swift); }

  /// The links of path `id` of a flow; ids in order from 0.
  void add_path(std::size_t flow, const std::vector<std::int32_t>& links);
  /// Adds the route of the flow's acknowledgements, where they are packets among others; without it
  /// over the cables of path 0.
  void add_return_route(std::size_t flow, const std::vector<std::int32_t>& links);
  /// Some acknowledgements would have no route.
  bool needs_return_route() const {
    return (is(Protocol::hpcc) || is(Protocol::swift)) &&
           std::ranges::any_of(routes_, [this](std::int32_t over) { return reverse(over) < 0; });
  }
  PacketRun run();
  /// Tells `progress` of run(): `passes` is how often packets will pass links, if none is sent
  /// twice.
  void tell(PacketProgress progress, double passes) {
    progress_ = std::move(progress);
    bytes_ = passes * static_cast<double>(options_.wire.value());
  }

  // Messages one by one, instead of run(): they begin at given times, in no part, and nothing is
  // skipped.
  /// A route, whose rates may be below those of its links; its place.
  std::uint32_t lay(std::span<const topology::Hop> hops);
  /// Begins at `when`, not before what advance() has handled; its number. Requires routes of a link
  /// or more. The course's routes are packets' in turn.
  std::uint32_t send(Time when, Bytes bytes, std::int32_t target, const Course& course);
  /// Handles what happens before `until`, up to the first message of which all has come at its
  /// receiver: that one. now() is then when.
  std::optional<std::uint32_t> advance(Time until);
  /// Time of the last event handled.
  Time clock() const { return queue_.now(); }
  /// No packet has moved for so long that none ever will: pauses that wait for each other.
  bool is_stuck() const { return stuck_; }
  std::uint64_t events() const { return run_.events; }
  std::uint64_t packets() const { return run_.packets; }
  std::int64_t payload_of_packet() const { return payload(); }
  /// Link at a place of lay().
  std::size_t link_at(std::uint32_t place) const {
    return static_cast<std::size_t>(routes_[place]);
  }

  /// After run().
  bool all_ended() const { return ended_ == flows_.size(); }

 private:
  const topology::GraphLink& link(std::int32_t number) const {
    return graph_.links[static_cast<std::size_t>(number)];
  }
  Time serialisation(Bytes bytes, std::int32_t number) const {
    return bytes / link(number).bandwidth;
  }
  /// Returns a count of packets at 100 Gbit/s scaled to another rate.
  static std::int64_t scaled(std::int64_t given, std::int64_t usual, Bandwidth rate) {
    return given > 0
               ? given
               : std::max<std::int64_t>(
                     1, std::llround(static_cast<double>(usual) * rate.value() / kCalibratedRate));
  }
  std::uint32_t window(const Stream& stream) const {
    return static_cast<std::uint32_t>(
        scaled(options_.window, usual_window(options_.protocol), stream.line));
  }
  std::int64_t payload() const {
    return options_.wire.value() - (is(Protocol::swift) ? 0 : options_.header.value());
  }

  /// The link back of every link's cable; -1: it has none.
  void find_reverse();
  std::int32_t reverse(std::int32_t over) const { return reverse_[static_cast<std::size_t>(over)]; }

  /// Flows that share no port and no receiver, directly or through others, are of different parts;
  /// each in the order of its starts. The parts run one after the other, each from time 0.
  std::vector<std::vector<std::uint32_t>> parts() const;
  void join_ports(std::vector<std::uint32_t>& parents, const Stream& stream,
                  std::uint32_t anchor) const;
  void run_part(const std::vector<std::uint32_t>& part);
  /// The queue's clock stands still while packets are skipped.
  Time now() const { return queue_.now() + skipped_; }
  void push_start();
  void begin_all();
  /// The sender has the last acknowledgement.
  void end(std::uint32_t f);
  /// Begins a new window: flows have begun or ended.
  void watch_anew();
  void mark(int windows);
  void watch();
  /// Packets sent that have not come.
  std::int64_t in_flight(std::uint32_t f) const {
    const std::uint32_t sent = is_paced() ? paces_[f].granted : streams_[f].fresh;
    return std::int64_t{sent} - streams_[f].received;
  }
  /// At most so many of the flow's packets, which come at `rate`.
  std::int64_t to_skip(std::uint32_t f, double rate) const;
  void skip();
  void take_out(std::uint32_t f, std::int64_t packets);
  void prepare(std::uint32_t f);
  Bandwidth line_of(const Stream& stream) const;
  void lay_return_route(Stream& stream);
  static void shuffle(Stream& stream);
  void handle(const engine::CalendarQueue::Event& event);
  /// Links from now on: the route's, at rates of their own if these differ.
  void add_link(std::int32_t link, Bandwidth rate);
  /// Nothing of a message matters any more.
  bool is_gone(std::uint32_t f) const {
    return by_message_ && (f < streams_.first() || streams_[f].ended);
  }
  bool concerns_gone(const engine::CalendarQueue::Event& event) const;
  void forget(std::uint32_t f);
  void came_whole(std::uint32_t f);
  /// Handles timers of senders' clocks and of windows.
  void handle_timer(const engine::CalendarQueue::Event& event);
  /// The slots of the calendar span the longest way there and back of eight links.
  static Time slot_width(const topology::LinkGraph& graph) {
    Time longest = 1_us;
    for (const topology::GraphLink& link : graph.links) {
      longest = std::max(longest, link.latency);
    }
    return longest / (static_cast<std::int64_t>(engine::CalendarQueue::kSlots) / 16);
  }
  void begin(std::uint32_t f);
  bool may_send(const Stream& stream) const {
    const bool has = !stream.again.empty() || stream.fresh < stream.count;
    return has && (stream.credit > 0 || (stream.unsolicited > 0 && stream.fresh < stream.count));
  }
  /// The flow has something to send, or may have.
  void offer(std::uint32_t f);
  std::uint32_t wire_of(const Stream& stream, std::uint32_t number) const {
    return number + 1 == stream.count ? stream.last_wire
                                      : static_cast<std::uint32_t>(options_.wire.value());
  }
  /// The next packet of a host's flows in turn, put into the port's queue.
  void take_from_host(std::uint32_t port_number);
  /// Returns the port of a new packet.
  std::uint32_t make_packet(std::uint32_t f, Stream& stream);
  std::uint32_t allocate();
  std::uint32_t next_path(Stream& stream);
  std::int32_t link_of(const Packet& packet) const { return routes_[packet.route + packet.hop]; }

  /// Bytes in the queue, with the packet that is being sent.
  std::int64_t holding(const Port& port) const {
    return port.queued + (port.sending == kNone ? 0 : packets_[port.sending].wire);
  }
  /// At the port of its next link; a full queue may trim it.
  void enqueue(std::uint32_t id);
  /// Takes the newest out of the queue.
  std::uint32_t drop_last(Port& port);
  void trim(std::uint32_t id);
  void send_next(std::uint32_t number);
  void finish_sending(std::uint32_t number);
  /// A packet that came over the link has left the node at its end.
  void leave(std::uint32_t number, std::uint32_t wire);
  void arrive(std::uint32_t id);
  void deliver(std::uint32_t id);
  /// An acknowledgement that queues among the packets of its return route, in the place of the
  /// packet `id` whose reports it takes along.
  void send_ack(std::uint32_t id);
  /// Control packets pass before others, which wait for them, but not before what is being sent:
  /// what is left of that, as it is now.
  Time charge(std::int32_t over);
  /// From the receiver back to the sender, over the cables of the flow's next path.
  void control(std::uint32_t f, Event event, std::uint32_t number);
  /// A pull of ndp, which decides when the next packet leaves: port by port, what is being sent
  /// when it comes there before it.
  void send_pull(std::uint32_t f);
  void carry_pull(std::uint32_t id);
  void acknowledge(std::uint32_t f);

  // Senders with clocks of their own (packet_paced.cc).
  void begin_paced(std::uint32_t f);
  void pace(std::uint32_t f);
  void resume(std::uint32_t number);
  void make_room_for_reports(std::size_t hops);
  void report(std::uint32_t id, Port& port);
  void adapt(std::uint32_t id);
  double use_of(const Pace& pace, const Stream& stream, const Report* now) const;
  void count_window(std::uint32_t f);
  void mark(Packet& packet, const Port& port, std::int32_t over);
  void notify(std::uint32_t f);
  void cut(std::uint32_t f);
  void recover(std::uint32_t f, bool increases);
  void raise(std::uint32_t f, bool by_time);
  void set_rate(std::uint32_t f, double rate);

  // Senders with windows after delays (packet_delay.cc).
  void begin_delayed(std::uint32_t f);
  /// Whether a queue has no room for a packet, or so little that it drops it by chance.
  bool overflows(const Port& port, const Packet& packet);
  /// Packet `number` has come: all before the returned one have.
  std::uint32_t receive(std::uint32_t f, std::uint32_t number);
  /// An acknowledgement of all before `number`, for a packet that left its host at `sent`.
  void hear(std::uint32_t f, std::uint32_t number, Time sent);
  void set_window(std::uint32_t f, std::uint32_t number, Time delay);
  void limit_window(Delay& delay) const;
  /// New data is acknowledged; whether a packet must be sent again.
  bool advance(std::uint32_t f, std::uint32_t number);
  /// Nothing new is; likewise.
  bool repeat(std::uint32_t f);
  /// Sends what the window allows.
  void fill_window(std::uint32_t f);
  void hand_over(std::uint32_t f, std::uint32_t number);
  void space(std::uint32_t f);
  void send_spaced(std::uint32_t f);
  void expire(std::uint32_t f);
  Time target_of(const Delay& delay) const;
  bool coin() {
    random_ = topology::mixed(random_);
    return (random_ & 1U) != 0;
  }
  /// The first credit ends the first window: what is left of it waits for credit too, of which the
  /// receiver learns with the next packet.
  void take_credit(std::uint32_t f);
  void refuse(std::uint32_t f, std::uint32_t number);
  /// The receiver hears of packet `number`, or that it must come again.
  void learn(std::uint32_t f, std::uint32_t number, bool trimmed);
  void pull(std::uint32_t host);
  /// Every packet asks for one more of its flow (ndp).
  void ask(std::uint32_t f);
  /// The receiver pulls for the flow when its turn comes.
  void want(std::uint32_t f);

  const topology::LinkGraph& graph_;
  const std::vector<FlowRequest>& flows_;
  PacketOptions options_;
  PacketRun run_;
  engine::CalendarQueue queue_;
  std::vector<std::uint32_t> part_;  ///< flows that run now
  std::size_t begun_ = 0;            ///< how many of them have
  std::size_t ended_ = 0;            ///< of all
  std::uint32_t start_turn_ = 0;     ///< generation of the next start
  Time skipped_{0};
  Steadiness steady_;
  std::vector<Port> ports_;
  ByFlow<Stream> streams_;
  std::vector<Receiver> receivers_;
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> free_;
  std::vector<std::int32_t> routes_;
  std::vector<double>
      rates_;  ///< by place in routes_, where messages pass links slower; else empty
  std::vector<std::int32_t> reverse_;
  ByFlow<Delay> delays_;       ///< (swift)
  std::vector<Time> left_at_;  ///< by packet: when it left its host (swift)
  ByFlow<Pace> paces_;
  std::vector<std::vector<std::uint32_t>> paced_;  ///< flows that send by their own clocks, by port
  std::vector<Report> reports_;                    ///< by packet, `report_stride_` each
  std::size_t report_stride_ = 0;
  std::uint64_t random_ = 0;  ///< of which packet is trimmed or marked
  PacketProgress progress_;
  double bytes_ = 0;  ///< that links will have carried
  // of messages
  bool by_message_ = false;
  bool stuck_ = false;
  Time moved_{0};                       ///< when a packet last left a port, or a message began
  std::optional<std::uint32_t> whole_;  ///< the message of which all has just come
};

}  // namespace orrery::network::packets
