// SPDX-License-Identifier: Apache-2.0
/// Collectives of all ranks, message by message.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "compat/astra/chunk_queues.h"
#include "compat/astra/collective_table.h"
#include "compat/astra/communicators.h"
#include "compat/astra/endpoints.h"
#include "compat/astra/event.h"
#include "compat/astra/network.h"
#include "compat/astra/planner.h"
#include "compat/astra/population.h"
#include "compat/astra/queue_turns.h"
#include "compat/astra/sequence.h"
#include "compat/astra/shared_bus.h"
#include "compat/astra/streams.h"
#include "compat/astra/traffic.h"

namespace orrery::astra {

/// Runs the collectives that ranks issue. Collectives match by communicator and sequence number
/// within it. A message that comes before its receive is posted leaves a mark with its stream (a
/// count or a bit) and is received when that happens.
///
/// The loop hands events of the first four kinds to handle(), and takes what has finished from
/// finished().
class Collectives {
 public:
  using Finished = Issuer;
  struct Options {
    ChunkQueues::Rules rules;
    QueueTurns turns;
    std::optional<Bus> bus;
    bool memory_bus = true;
    bool rendezvous = false;
    Traffic* traffic = nullptr;  ///< where it counts what is sent; null: nowhere
  };
  /// Two members whose n-th collectives of a communicator differ.
  using Mismatch = std::pair<Finished, Finished>;

  Collectives(const Population& population, Communicators& communicators, Planner& planner,
              Network& network, Events& events, const Options& options)
      : population_(population),
        planner_(planner),
        network_(network),
        events_(events),
        table_(population, communicators, planner, options.turns),
        queues_(population.count(), options.rules),
        endpoints_(population.count(), options.memory_bus ? std::nullopt : options.bus),
        rendezvous_(options.rendezvous),
        traffic_(options.traffic) {
    if (options.bus && options.bus->shared && options.memory_bus) {
      memory_bus_.emplace(population.count(), *options.bus);
    }
  }

  /// Node `node` of `rank` issues its next collective in the communicator of `membership`.
  /// `priority`, and the number of the collective on its rank.
  void issue(std::uint32_t rank, std::uint32_t node, Communicators::Membership& membership,
             const CollectiveRequest& request, std::pair<std::int64_t, std::int64_t> priority);

  void handle(const Event& event) {
    switch (event.kind) {
      case Event::Kind::begin:
        return begin(event.subject);
      case Event::Kind::deliver:
        return deliver(event);
      case Event::Kind::arrive:
        return arrive(event);
      case Event::Kind::ready:
        return ready(event);
      case Event::Kind::processed:
        return processed(event);
      case Event::Kind::bus:
        return memory_bus_->handle(events_, event);
      default:
        return;
    }
  }

  /// Says whether something waits for the end of an instant, or has finished.
  bool unsettled() const { return !ended_.empty() || !vacated_.empty() || !finished_.empty(); }
  void settle();
  /// The last chunk of a collective leaves its place only when the nodes that waited for it have
  /// started: chunks that they queue find it occupied.
  void release();

  /// Starts chunks beyond the limit, for when nothing else can happen: ranks that take chunks in
  /// different orders would wait for each other for ever. False when there are none.
  bool relieve() {
    const std::vector<std::uint32_t> streams = queues_.take_from_all(table_.streams());
    for (std::uint32_t stream : streams) {
      start(stream);
    }
    return !streams.empty();
  }

  std::vector<Finished>& finished() { return finished_; }
  const std::optional<Mismatch>& mismatch() const { return mismatch_; }
  std::uint64_t messages() const { return messages_; }

 private:
  static constexpr std::uint64_t kFromParent = std::uint64_t{1} << 32;
  /// A TreeStep says which way a message in a tree goes. Upwards: from which child of its receiver,
  /// shifted by one.
  enum TreeStep : std::uint32_t { kUp = 0, kDown = 1 };

  // streams
  void enter(std::uint32_t stream);
  void refill(std::size_t queue);
  void start(std::uint32_t stream);
  void leave(std::uint32_t stream);
  /// Returns whether its collective is over at its member.
  bool end_at_member(std::uint32_t stream);

  static Event processed_event(std::uint32_t stream, TreeStep step = kUp) {
    return {stream, 0, static_cast<std::uint16_t>(step), Event::Kind::processed};
  }

  // events
  void begin(std::uint32_t stream);
  void deliver(const Event& event);
  void arrive(const Event& event);
  void ready(const Event& event);
  void processed(const Event& event);

  // sequences
  template <Pattern pattern>
  void advance(std::uint32_t stream);
  template <Pattern pattern>
  void post(std::uint32_t stream, Stream& at, const Phase& phase);
  void receive(std::uint32_t stream, std::uint32_t message);
  // trees
  void start_tree(std::uint32_t stream);
  void begin_tree(std::uint32_t stream);
  void receive_in_tree(std::uint32_t stream, TreeStep step);
  void processed_in_tree(std::uint32_t stream, TreeStep step);
  void send_up(std::uint32_t stream);
  void send_down(std::uint32_t stream);
  void announce_to_parent(std::uint32_t stream);
  void ready_in_tree(const Event& event);
  void send_in_tree(std::uint32_t stream, std::uint16_t phase_index, std::uint32_t which);

  // between NPU and endpoint
  bool on_memory_bus(const Phase& phase) const { return memory_bus_ && !phase.group_ring; }
  void pass_out(std::uint32_t stream, Bytes bytes, Event::Kind then);
  void pass_in(std::uint32_t stream, std::uint32_t reception);

  // messages
  void send(Pattern pattern, std::uint32_t stream, std::uint32_t number, std::uint32_t to);
  void send_to_colours(std::uint32_t stream, const Phase& phase, std::uint32_t message);
  [[gnu::always_inline]] void transmit(std::uint32_t from, std::uint32_t to, const Step& step,
                                       bool uniform, Event arrival) {
    ++messages_;
    if (traffic_ != nullptr) {
      traffic_->add(table_.npu(from), table_.destination(from, to, arrival.phase, arrival.step),
                    step.bytes);
    }
    if (uniform && network_.stateless()) {
      events_.push(events_.now() + step.transfer, arrival);
    } else {
      network_.send(events_, table_.npu(from),
                    table_.destination(from, to, arrival.phase, arrival.step), step.bytes, arrival);
    }
  }
  void announce(std::uint32_t receiver, std::uint32_t sender, const Step& step, bool uniform,
                Event arrival);

  const Population& population_;
  Planner& planner_;
  Network& network_;
  Events& events_;
  CollectiveTable table_;
  ChunkQueues queues_;
  Endpoints endpoints_;
  std::optional<SharedBus> memory_bus_;
  bool rendezvous_;
  Traffic* traffic_;
  std::vector<Finished> finished_;
  std::vector<std::uint32_t> ended_;  ///< streams whose phase has ended at this instant
  std::vector<std::size_t> vacated_;  ///< queues of the last chunks of collectives
  std::optional<Mismatch> mismatch_;
  std::uint64_t messages_ = 0;
};

}  // namespace orrery::astra
