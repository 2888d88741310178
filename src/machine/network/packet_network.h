// SPDX-License-Identifier: Apache-2.0
/// The packets of packet.h: ports and what passes them (packet_ports.cc), senders and receivers
/// (packet_ends.cc), senders with clocks (packet_paced.cc) and with windows after delays
/// (packet_delay.cc). Private to the folder.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/calendar_queue.h"
#include "machine/network/packet.h"

namespace orrery::network::packets {

inline constexpr std::uint32_t kNone = UINT32_MAX;
inline constexpr double kCalibratedRate =
    12.5e9;                          // 100 Gbit/s, of which counts of packets are given
inline constexpr Bytes kPull{4096};  // wire bytes of one credit
inline constexpr double kPacerShare = 0.99;
inline constexpr Bytes kFraming{38};  // preamble and gap, that only the pacer counts

/// Queues trim packets of these.
constexpr bool trims(Protocol protocol) {
  return protocol == Protocol::eqds || protocol == Protocol::ndp;
}
/// Packets at 100 Gbit/s, as csg-htsim's runs have them.
constexpr std::int64_t usual_queue(Protocol protocol) {
  return protocol == Protocol::eqds ? 35 : protocol == Protocol::swift ? 50 : 15;
}
constexpr std::int64_t usual_window(Protocol protocol) {
  return protocol == Protocol::eqds ? 50 : protocol == Protocol::swift ? 15 : 20;
}

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
  go,
  paced,
  notified,
  decay,
  increase,
  scan
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
  bool ack = false;
  bool marked = false;
};

/// What a switch port reports of itself when a packet leaves it (hpcc).
struct Report {
  std::int64_t queued = 0;  ///< bytes, with the packet's
  std::int64_t passed = 0;  ///< bytes before it
  Time at{0};
};

/// Of a sender that paces its packets.
struct Pace {
  Time spacing{0};            ///< of its packets
  Time last{0};               ///< when it might last send
  std::uint32_t turn = 0;     ///< generation of the event that is due
  std::uint32_t granted = 0;  ///< packets handed to the host's port
  // hpcc
  std::int64_t window = 0;  ///< bytes of payload
  std::int64_t flight = 0;
  std::int64_t updated = 0;  ///< payload sent when the window last counted
  int stage = 0;
  double use = 0;             ///< U of packet.h
  std::vector<Report> first;  ///< of the first acknowledgement's way
  // dcqcn
  double rate = 0;  ///< bytes per second
  double target = 0;
  double alpha = 1;
  int timed = 0;  ///< increases since the last cut, by time and by bytes
  int counted = 0;
  std::int64_t sent = 0;     ///< bytes towards the next increase
  std::uint32_t cuts = 0;    ///< generation of timers
  bool cut = false;          ///< ever: timers run
  Time told{INT64_MIN / 2};  ///< when the receiver last told of marks
};

/// Of a sender with a window after delays (swift). Packets are counted from 0 to the number given.
struct Delay {
  std::uint32_t acknowledged = 0;  ///< all before have come
  std::uint32_t recover = 0;       ///< acknowledging this ends the recovery
  std::uint32_t repeated = 0;      ///< acknowledgements of nothing new, one after another
  std::uint32_t expired = 0;       ///< time-outs without an acknowledgement
  std::uint32_t in_nic = 0;        ///< packets handed to the host's port, not yet sent
  std::uint32_t turn = 0;          ///< generation of the paced packet that is due
  bool recovering = false;
  bool pacing = false;
  std::int64_t window = 0;   ///< bytes, as the next two
  std::int64_t before = 0;   ///< the window before the latest acknowledgement
  std::int64_t inflate = 0;  ///< what the recovery adds to it
  Time trip{0};              ///< smoothed
  Time deviation{0};
  Time patience{0};  ///< of the time-out
  Time expires{0};   ///< 0: nothing is under way
  Time last_cut{0};
  Time last_sent{0};
  Time spacing{0};          ///< of packets while the window is less than one, else 0
  std::vector<bool> ahead;  ///< of the receiver: packets that came before an earlier one
};

/// The sending end of a link. What every packet touches is one line of the cache.
struct alignas(64) Port {
  std::uint32_t first = kNone;
  std::uint32_t last = kNone;
  std::uint32_t sending = kNone;
  bool paused = false;
  bool stopping = false;    ///< its far end has asked for a pause
  std::int64_t room = 0;    ///< bytes that it may hold
  std::int64_t queued = 0;  ///< bytes, without what is being sent
  Time full{0};             ///< of a full packet on the link
  Time control{0};          ///< of a control packet
  Time until{0};            ///< end of what is being sent
  Time debt{0};             ///< of control packets that passed while it was busy

  std::int64_t ingress = 0;  ///< bytes in the node at its far end that came over it
  // hpcc
  std::int64_t passed = 0;  ///< bytes
  Time came{-1};            ///< when the latest packet came, and the bytes of all then
  std::int64_t just_came = 0;
  // of a host
  std::vector<std::uint32_t> flows;  ///< that may have something to send
  std::size_t turn = 0;
};

struct Stream {
  std::uint32_t count = 0;        ///< packets
  std::uint32_t last_wire = 0;    ///< of the last of them
  std::uint32_t fresh = 0;        ///< next that was never sent
  std::uint32_t unsolicited = 0;  ///< packets left of the first window
  std::uint32_t acknowledged = 0;
  std::uint32_t received = 0;
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
  Time reverse{0};             ///< of a control packet over path 0
  std::uint32_t back = kNone;  ///< first link of the way back of path 0, where cables lead back
  bool listed = false;         ///< among its host's flows
  bool waiting = false;        ///< among its receiver's
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
        queue_(slot_width(graph)),
        ports_(graph.links.size()),
        streams_(flows.size()),
        receivers_(static_cast<std::size_t>(graph.hosts)) {
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
      ports_[l].room =
          scaled(options_.queue, usual_queue(options_.protocol), number) * options_.wire.value();
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
  /// Some acknowledgements would have no way.
  bool needs_way_back() const {
    return (is(Protocol::hpcc) || is(Protocol::swift)) &&
           std::ranges::any_of(ways_, [this](std::int32_t over) { return reverse(over) < 0; });
  }
  PacketRun run();

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
  std::uint32_t window(const Stream& stream) const {
    return static_cast<std::uint32_t>(scaled(options_.window, usual_window(options_.protocol),
                                             static_cast<std::int32_t>(stream.nic)));
  }
  std::int64_t payload() const {
    return options_.wire.value() - (is(Protocol::swift) ? 0 : options_.header.value());
  }

  /// The link back of every link's cable; -1: it has none.
  void find_reverse();
  std::int32_t reverse(std::int32_t over) const { return reverse_[static_cast<std::size_t>(over)]; }

  void prepare(std::uint32_t f);
  void lay_way_back(Stream& stream);
  static void shuffle(Stream& stream);
  void handle(const engine::CalendarQueue::Event& event);
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
  void make_packet(std::uint32_t f, Stream& stream);
  std::uint32_t allocate();
  std::uint32_t next_path(Stream& stream);
  std::int32_t link_of(const Packet& packet) const { return ways_[packet.way + packet.hop]; }

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
  /// An acknowledgement that queues among the packets of its way back, in the place of the packet
  /// `id` whose reports it takes along.
  void send_ack(std::uint32_t id);
  /// Control packets pass before others, which wait for them, but not before what is being sent:
  /// what is left of that, as it is now.
  Time charge(std::int32_t over);
  /// From the receiver back to the sender, over the cables of the flow's next path.
  void control(std::uint32_t f, Event event, std::uint32_t number);
  void acknowledge(std::uint32_t f);

  // Senders with clocks of their own (packet_paced.cc).
  void begin_paced(std::uint32_t f);
  void pace(std::uint32_t f);
  void resume(std::uint32_t number);
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
  Bandwidth line_rate(const Stream& stream) const {
    return link(static_cast<std::int32_t>(stream.nic)).bandwidth;
  }
  /// The first credit ends the first window: what is left of it waits for credit too, of which the
  /// receiver learns with the next packet.
  void take_credit(std::uint32_t f);
  void refuse(std::uint32_t f, std::uint32_t number);
  /// The receiver hears of a flow, or that a packet must come again.
  void learn(std::uint32_t f, bool trimmed);
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
  std::vector<Port> ports_;
  std::vector<Stream> streams_;
  std::vector<Receiver> receivers_;
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> free_;
  std::vector<std::int32_t> ways_;
  std::vector<std::int32_t> reverse_;
  std::vector<Delay> delays_;                      ///< by flow (swift)
  std::vector<Time> left_at_;                      ///< by packet: when it left its host (swift)
  std::vector<Pace> paces_;                        ///< by flow
  std::vector<std::vector<std::uint32_t>> paced_;  ///< flows that send by their own clocks, by port
  std::vector<Report> reports_;                    ///< by packet, `report_stride_` each
  std::size_t report_stride_ = 0;
  std::uint64_t random_ = 0;  ///< of which packet is trimmed or marked
};

}  // namespace orrery::network::packets
