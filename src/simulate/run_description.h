// SPDX-License-Identifier: Apache-2.0
/// The state of a run as numbers, relative to a moment of it (steady.h): equal numbers at two
/// moments mean that everything from the one on is everything from the other on, moved.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "engine/event_queue.h"
#include "simulate/loop.h"

namespace orrery::simulate {

class RunDescription {
 public:
  /// The moment that a rank's numbers count from.
  struct Origin {
    std::int64_t instances = 0;
    std::int64_t microbatches = 0;
    std::int64_t steps = 0;
    Time host_work{0};  ///< a host that is further ahead is never in the way
  };

  /// Appends to `state`.
  RunDescription(const Loop& loop, std::vector<std::int64_t>& state) : loop_(loop), state_(state) {}

  void add_rank(std::size_t index, const Origin& origin) {
    const RankState& rank = loop_.ranks_[index];
    put(rank.steps_ended - origin.steps);
    put(rank.window.issued() - origin.instances);
    for (std::int64_t i = rank.window.oldest(); i < rank.window.issued(); ++i) {
      if (rank.window[i].unfinished > 0) {
        put(rank.window.issued() - i);
        describe_slot(rank.window[i], origin);
      }
    }
    for (const StreamState& stream : rank.streams) {
      const bool stale = stream.instance < rank.window.oldest();
      put(stale ? -1 : rank.window.issued() - stream.instance);
      put(stale ? 0 : stream.position);
      put(stream.busy ? 1 : 0);
    }
    const Time lead = loop_.queue_.now() - rank.host;
    put(lead > origin.host_work ? -1 : lead.value());
    describe_job(rank);
    describe_ledger(rank.ledger);
  }

  /// Appends what ranks share: meetings, messages, transfers, events.
  void add_traffic() {
    describe_meetings();
    describe_network();
  }

 private:
  void put(std::int64_t number) { state_.push_back(number); }
  void put(Time moment) { put((moment - loop_.queue_.now()).value()); }

  void describe_slot(const InstanceSlot& slot, const Origin& origin) {
    put(slot.instance.template_index);
    put(slot.instance.chunk);
    put(slot.instance.microbatch - origin.microbatches);
    put(slot.instance.step - origin.steps);
    put(slot.unfinished);
    std::int64_t word = 0;
    std::size_t in_word = 0;
    for (const std::uint32_t pending : slot.pending) {
      word = (word << 32) | pending;
      if (++in_word == 2) {
        put(word);
        word = 0;
        in_word = 0;
      }
    }
    put(word);
  }

  void describe_job(const RankState& rank) {
    const ChainRun& chain = rank.chain;
    put(chain.chain == nullptr ? -1 : chain.chain->first);
    if (chain.chain != nullptr) {
      for (std::size_t lane = 0; lane < kMostLanes; ++lane) {
        const bool runs = chain.place.end[lane] < Time::max();
        put(chain.place.done[lane]);
        put(chain.place.waits[lane] ? 1 : 0);
        put(runs ? (chain.place.end[lane] - loop_.queue_.now()).value() : -1);
      }
      put(chain.end);
      put(chain.host_in_time ? 1 : 0);
    }
    put(rank.job.running ? 1 : 0);
    if (rank.job.running) {
      put(rank.job.end - rank.job.kernel);
      put(std::bit_cast<std::int64_t>(rank.job.remaining));
      put(static_cast<std::int64_t>(rank.job.concurrent));
      put(rank.job.since);
      put(rank.job.begin);
      put(std::max(rank.job.host_end, loop_.queue_.now()));
      put(rank.job.ran.value());
    }
  }

  void describe_ledger(const Ledger& ledger) {
    put(ledger.last_);
    put(ledger.computing_ ? static_cast<std::int64_t>(*ledger.phase_) : -1);
    for (const int active : ledger.counts_.active) {
      put(active);
    }
    for (const graph::GroupIndex group : ledger.active_groups_) {
      put(static_cast<std::int64_t>(*group));
      put(ledger.active_[*group]);
    }
  }

  /// Returns the name of a node that runs, which is its rank and stream: streams are in order.
  std::int64_t name_of(RunningId id) const {
    const Running& running = loop_.running_[id];
    const RankState& rank = loop_.ranks_[running.rank];
    return static_cast<std::int64_t>(running.rank * rank.streams.size() +
                                     *rank.node(running).stream);
  }

  void describe_meetings() {
    for (const auto& meeting : loop_.rendezvous_.meetings()) {
      put(-1);
      for (const RunningId id : meeting.arrived) {
        put(name_of(id));
      }
    }
    for (const auto& mailbox : loop_.rendezvous_.mailboxes()) {
      put(static_cast<std::int64_t>(mailbox.arrived.size()));
      put(static_cast<std::int64_t>(mailbox.waiting.size()));
    }
  }

  void describe_network() {
    std::vector<Activity> live;
    for (Activity id = 0; id < loop_.rendezvous_.moving().size(); ++id) {
      if (!loop_.rendezvous_.moving()[id].nodes.empty()) {
        live.push_back(id);
      }
    }
    const auto first = [&](Activity id) {
      return name_of(loop_.rendezvous_.moving()[id].nodes.front());
    };
    std::sort(live.begin(), live.end(),
              [&](Activity a, Activity b) { return first(a) < first(b); });
    for (const Activity id : live) {
      put(-1);
      for (const RunningId node : loop_.rendezvous_.moving()[id].nodes) {
        put(name_of(node));
      }
    }
    loop_.transport_.describe(live, state_);
    describe_events(first);
  }

  template <class First>
  void describe_events(const First& first) {
    std::vector<engine::EventQueue::Event> events = loop_.queue_.pending();
    std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) {
      return std::tie(a.when, a.order) < std::tie(b.when, b.order);
    });
    for (const engine::EventQueue::Event& event : events) {
      const auto subject = subject_of(event, first);
      if (subject) {
        put(event.when);
        put(event.kind);
        put(*subject);
      }
    }
  }

  /// Returns the event's subject; nothing if the event is stale.
  template <class First>
  std::optional<std::int64_t> subject_of(const engine::EventQueue::Event& event,
                                         const First& first) const {
    if (event.kind >= kFirstTransportEvent) {
      const auto activity = loop_.transport_.activity_of(event);
      return activity ? std::optional(first(*activity)) : std::nullopt;
    }
    const auto kind = static_cast<Loop::EventKind>(event.kind);
    if (kind == Loop::kHostReady) {
      return name_of(event.subject);
    }
    const RankState& rank = loop_.ranks_[event.subject];
    const bool stale = (kind == Loop::kComputeDone && event.generation != rank.job.generation) ||
                       (kind == Loop::kChainDone && event.generation != rank.chain.generation);
    return stale ? std::nullopt : std::optional<std::int64_t>(event.subject);
  }

  const Loop& loop_;
  std::vector<std::int64_t>& state_;
};

}  // namespace orrery::simulate
