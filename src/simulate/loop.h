// SPDX-License-Identifier: Apache-2.0
/// The event loop: ready node -> issue to compute, network or nothing -> event -> next.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/event_queue.h"
#include "graph/workload.h"
#include "machine/network/analytical.h"
#include "machine/topology/link_map.h"
#include "simulate/bind.h"
#include "simulate/rank_state.h"
#include "simulate/timeline.h"
#include "simulate/wiring.h"

namespace orrery {

/// Runs the simulated ranks to their ends. Everything is in flat arrays by simulated rank;
/// instances live in a ring buffer per rank from issue until their last node is done.
template <class Network>
class Loop {
 public:
  Loop(const Workload& workload, const BoundWorkload& bound, Wiring wiring,
       const std::vector<std::int64_t>& ranks);

  void record_spans() { record_spans_ = true; }
  void on_progress(std::function<void(double)> progress) { progress_ = std::move(progress); }

  void run();

  std::uint64_t events() const { return completions_; }
  std::vector<Span> take_spans() { return std::move(spans_); }
  Time finish(std::size_t rank) const { return ranks_[rank].ledger.last(); }
  Breakdown breakdown(std::size_t rank) const { return ranks_[rank].ledger.breakdown(); }
  /// States at the end; a rank with unfinished instances waits for what never came.
  const std::vector<RankState>& ranks() const { return ranks_; }

 private:
  enum EventKind : std::uint32_t { kComputeDone, kHostReady };

  /// The collective that a communicator runs or gathers for.
  struct GroupState {
    std::uint32_t arrived = 0;
    std::size_t phase = 0;
    int collective = -1;
  };
  /// What a network transfer belongs to: a group (index >= 0) or a way (~index).
  using Owner = std::int32_t;

  void settle();
  void issue_ahead(RankIndex rank);
  bool issue_one(RankIndex rank);
  /// Number of the node the stream must run next, or nothing when no instance is left for it.
  std::optional<std::uint32_t> head(RankIndex rank, Stream stream);

  void enqueue(RankIndex rank, Stream stream);
  void drain();
  void try_start(RankIndex rank, Stream stream);
  void start(RankIndex rank, const BoundNode& node);
  void start_compute(RankIndex rank, const BoundNode& node);
  void start_collective(RankIndex rank, const BoundNode& node);
  void arrive(std::uint32_t rank_and_stream);
  void start_phase(int group);
  void finish_phase(int group);
  void start_send(RankIndex rank, const BoundNode& node);
  void finish_send(const Way& way);
  void receive(RankIndex rank, Channel channel);
  void complete(RankIndex rank, Stream stream);

  void communication_began(RankIndex rank, Axis axis);
  void communication_ended(RankIndex rank, Axis axis);
  void touch(RankIndex rank);
  void set_contention(RankIndex rank);
  void finish_compute(RankIndex rank);
  void own(TransferId transfer, Owner owner);
  void record(RankIndex rank, Stream stream, Time stall);

  const Workload& workload_;
  const BoundWorkload& bound_;
  Wiring wiring_;
  Network network_;
  EventQueue queue_;
  std::vector<RankState> ranks_;
  std::vector<GroupState> groups_;
  std::vector<Owner> owners_;  ///< by TransferId
  std::vector<std::pair<RankIndex, Stream>> work_;
  std::vector<RankIndex> touched_;  ///< in this instant: their jobs' speeds may change
  std::vector<Span> spans_;
  std::function<void(double)> progress_;
  std::int64_t instances_ = 0;
  std::int64_t instances_total_ = 0;
  std::uint64_t completions_ = 0;
  bool record_spans_ = false;
};

extern template class Loop<AnalyticalNetwork>;

}  // namespace orrery
