// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/event_queue.h"
#include "machine/network/analytical.h"
#include "machine/network/packets/packet.h"
#include "machine/topology/assign.h"
#include "machine/topology/link_map.h"

namespace orrery::packets {

class PacketNetwork;
struct Course;

/// Network model "packet": every message is a flow of packet.h, which begins when the message does.
///
///   arrival = the receiver has all packets + what the message's route says beyond its links'
///             latencies (software, a protocol's step)
///   alone   roce, and others while N <= window: (H-1) s + ((N-1) w + l) / C + latencies, against
///           bytes / C + latencies of fifo and flow; s = w / C, N packets of w bytes on the wire,
///           the last of l, H links of rate C
///
/// Links are those of the LinkMap, each a port with a queue at its beginning: where dimensions are
/// switches, in the device and in the switch. A message passes a link at the rate that its route
/// states (a collective's efficiency); windows, queues and pacing count with the link's. Packets in
/// transit pass before a device's own. Acknowledgements that queue take the route of a message
/// back.
///
/// On a network of links a message takes one way, that of its routing; where that is spray, and of
/// protocols that trim where it is ecmp, `paths` routes by hash (packet.h).
///
/// Carries messages as packets, with the interface of AnalyticalNetwork. It ignores what packet.h
/// ignores; steady phases are not skipped.
class PacketLinks {
 public:
  static constexpr network::LinksTraits kTraits{
      .looks_ahead = true, .holds = true, .by_byte = true};
  static constexpr std::uint32_t kFirstEvent = 150;
  static constexpr std::uint32_t kArrive = kFirstEvent;

  /// `map` must outlive it.
  PacketLinks(const topology::LinkMap& map, const network::PacketOptions& options);
  PacketLinks(PacketLinks&&) noexcept;
  ~PacketLinks();

  /// Mistakes: links that packets cannot share; too many of them.
  Result<void> check() const;

  /// Starts a message at queue.now(). `route` must stay valid until it arrives; empty: it arrives
  /// at once.
  network::TransferId start(const topology::FlowEnds& message, std::span<const topology::Hop> route,
                            engine::EventQueue& queue);
  /// True when the last byte of message event.subject has arrived; its id is then free again.
  bool handle(const engine::EventQueue::Event& event, engine::EventQueue& queue);
  /// Packets move until something else is due.
  void settle(engine::EventQueue& queue);

  /// Returns the number of packets of so many bytes times links: what a message costs.
  double passes(Bytes bytes, std::size_t links) const;
  /// Returns the same of all that has been sent, and what the queue of packets has handled.
  double passed() const { return passed_; }
  std::uint64_t events() const;
  /// Returns what keeps messages from ever arriving; nothing: nothing does.
  std::optional<std::string> stall() const;

 private:
  struct LaidRoute {
    std::vector<topology::Hop> hops;  ///< as given, to know it again
    std::unique_ptr<Course> course;
    Time after{0};  ///< beyond the links' latencies
    std::size_t links = 0;
  };
  void read_dimensions();
  const LaidRoute& laid_route(const topology::FlowEnds& ends, std::span<const topology::Hop> route);
  LaidRoute lay_route(const topology::FlowEnds& ends, std::span<const topology::Hop> route);
  void lay_by_hash(const topology::FlowEnds& ends, double efficiency, Course& course);
  std::vector<topology::Hop> back(const topology::FlowEnds& ends) const;
  network::TransferId new_id();

  const topology::LinkMap& map_;
  network::PacketOptions options_;
  std::unique_ptr<topology::LinkGraph> own_;  ///< of the dimensions
  const topology::LinkGraph* graph_ = nullptr;
  std::vector<Time> latency_;  ///< by link
  std::int64_t paths_ = 1;
  std::unique_ptr<topology::Router> by_hash_;  ///< where there are several
  std::vector<network::FlowRequest> no_flows_;
  std::unique_ptr<PacketNetwork> network_;
  std::vector<LaidRoute> routes_;
  std::unordered_map<const topology::Hop*, std::uint32_t> known_;  ///< only looked up
  std::vector<network::TransferId> free_;
  network::TransferId ids_ = 0;
  struct Sent {
    network::TransferId id = 0;
    Time after{0};
  };
  std::unordered_map<std::uint32_t, Sent> in_flight_;  ///< by message; only looked up
  double passed_ = 0;
};

}  // namespace orrery::packets
