// SPDX-License-Identifier: Apache-2.0
/// The event loop: ready node -> issue to compute, network or nothing -> event -> next.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/event_queue.h"
#include "graph/workload.h"
#include "machine/network/analytical.h"
#include "machine/topology/topology.h"
#include "simulate/bind.h"
#include "simulate/ledger.h"
#include "simulate/timeline.h"

namespace orrery {

/// Runs the simulated ranks to their ends. Everything is in flat arrays by simulated rank;
/// instances live in a ring buffer per rank from issue until their last node is done.
template <class Network>
class Loop {
 public:
  Loop(const Workload& workload, const BoundWorkload& bound, Topology topology,
       const std::vector<std::int64_t>& ranks);

  void record_spans() { record_spans_ = true; }
  void on_progress(std::function<void(double)> progress) { progress_ = std::move(progress); }

  void run();

  std::uint64_t events() const { return completions_; }
  std::vector<Span> take_spans() { return std::move(spans_); }
  Time finish(std::size_t rank) const { return ranks_[rank].ledger.last(); }
  Breakdown breakdown(std::size_t rank) const { return ranks_[rank].ledger.breakdown(); }
  /// What ranks that did not finish wait for; empty when all finished.
  std::vector<std::string> unfinished() const;

 private:
  using RankIndex = std::uint32_t;
  enum EventKind : std::uint32_t { kComputeDone, kHostReady };

  struct InstanceSlot {
    const BoundTemplate* shape = nullptr;
    Instance instance;
    std::uint32_t unfinished = 0;
    std::vector<std::uint16_t> pending;
  };
  struct Cursor {
    std::int64_t instance = 0;   ///< number of the instance in the rank's issue list
    std::uint32_t position = 0;  ///< in the instance's list of this stream
    bool busy = false;
    bool queued = false;  ///< is in work_
    Time begin{0};        ///< of what runs
  };
  /// The compute node that runs.
  struct Job {
    double remaining = 0;  ///< picoseconds at full speed left at `since`
    double slowdown = 1;
    Time since{0};
    Time stall{0};
    double contention = 1;
    std::uint32_t generation = 0;
    bool running = false;
    bool touched = false;  ///< is in touched_
  };
  struct Rank {
    int role = 0;
    std::int64_t number = 0;
    std::int64_t issued = 0;
    std::int64_t oldest = 0;  ///< instance that may still have unfinished nodes
    bool source_done = false;
    Time host{0};
    Job job;
    Ledger ledger;
    std::array<Cursor, kStreamCount> cursors;
    std::array<std::int64_t, kChannelCount> arrived{};  ///< messages not yet received
    std::array<int, kAxisCount> group{};                ///< into groups_; -1 = none
    std::array<int, kChannelCount> way{};               ///< into ways_; -1 = none
    std::vector<InstanceSlot> slots;                    ///< ring buffer, size a power of two
  };
  struct Group {
    std::vector<RankIndex> members;
    std::uint32_t arrived = 0;
    std::size_t phase = 0;
    int collective = -1;
    std::vector<int> links;  ///< by collective: first entry in link_lists_, -1 = not made yet
  };
  /// The way of one rank's pipeline messages.
  struct Way {
    RankIndex source = 0;
    RankIndex target = 0;
    Channel channel = Channel::forward;
    Route route;
    std::vector<LinkUse> links;
  };
  /// What a network transfer belongs to: a group (index >= 0) or a way (~index).
  using Owner = std::int32_t;

  void build_ranks(const std::vector<std::int64_t>& ranks);
  void build_groups(const std::vector<std::int64_t>& ranks);
  void build_ways(const std::vector<std::int64_t>& ranks);
  int make_links(Group& group, int collective);

  void settle();
  void issue_ahead(RankIndex rank);
  bool issue_one(RankIndex rank);
  InstanceSlot& slot(Rank& rank, std::int64_t instance) {
    return rank.slots[static_cast<std::size_t>(instance) & (rank.slots.size() - 1)];
  }
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
  void retire(Rank& rank);

  void communication_began(RankIndex rank, Axis axis);
  void communication_ended(RankIndex rank, Axis axis);
  void touch(RankIndex rank);
  void set_contention(RankIndex rank);
  void finish_compute(RankIndex rank);
  std::optional<std::string> waiting_node(const Rank& rank, Stream stream) const;
  void own(TransferId transfer, Owner owner);
  void record(RankIndex rank, Stream stream, Time end, Time stall);

  const Workload& workload_;
  const BoundWorkload& bound_;
  Topology topology_;
  Network network_;
  EventQueue queue_;
  std::vector<Rank> ranks_;
  std::vector<Group> groups_;
  std::vector<Way> ways_;
  std::vector<std::vector<LinkUse>> link_lists_;
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
