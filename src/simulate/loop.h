// SPDX-License-Identifier: Apache-2.0
/// The event loop: ready node -> issue to compute, network or nothing -> event -> next.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/event_queue.h"
#include "graph/workload.h"
#include "machine/faults/faults.h"
#include "simulate/bind.h"
#include "simulate/chain_tables.h"
#include "simulate/progress.h"
#include "simulate/rank_state.h"
#include "simulate/rendezvous.h"
#include "simulate/span_recorder.h"
#include "simulate/timeline.h"
#include "simulate/transport.h"
#include "simulate/wiring.h"

namespace orrery::simulate {

/// Runs the simulated ranks to their ends. Everything is in flat arrays by simulated rank;
/// instances live in a ring buffer per rank from issue until their last node is done.
template <class Transport>
class Loop {
 public:
  /// Everything must outlive the loop; `queue` is the transport's.
  Loop(const graph::Workload& workload, Binding& bound, const Wiring& wiring, Transport& transport,
       engine::EventQueue& queue);

  /// Nodes one by one, with their spans. Shortcuts: chains of nodes are one event (chain.h), and
  /// the steady state is jumped (steady.h).
  void record_spans() { spans_.begin(); }
  void take_shortcuts() { take_shortcuts_ = true; }
  /// Ranks and links change as it says; it must outlive the run. Without shortcuts.
  void strike(const faults::Schedule& faults) { faults_ = &faults; }
  /// Breakdowns do not count the first `steps` of a run of several.
  void warm_up(std::int64_t steps) { warm_steps_ = steps; }
  void on_progress(Progress progress) { progress_ = std::move(progress); }

  /// To the end, or to kEndOfTime: then queue.now() is there.
  void run();

  std::uint64_t events() const { return completions_; }
  SpanRecorder& spans() { return spans_; }
  const TimeCategories& categories() const { return rows_.categories; }
  Time finish(std::size_t rank) const { return ranks_[rank].ledger.last(); }
  /// When all ranks have ended each step, of a run of several.
  const std::vector<Time>& step_ends() const { return step_ends_; }
  const Breakdown& breakdown(std::size_t rank) const { return ranks_[rank].ledger.breakdown(); }
  /// By rank, what was booked until the end of the warm-up, and of the last step. Empty: of one
  /// step, without a warm-up, or of a run that stopped before.
  const std::vector<Breakdown>& booked_warm() const { return booked_warm_; }
  const std::vector<Breakdown>& booked_steps() const { return booked_steps_; }
  /// States at the end; a rank with unfinished instances waits for what never came.
  const std::vector<RankState>& ranks() const { return ranks_; }
  /// At the end: a rank whose source has more. The compute stream asks for instances
  /// (loop_issue.h), so two in a row with nothing on it are the last.
  const RankState* left_over() const;

 private:
  enum EventKind : std::uint32_t {
    kComputeDone,
    kChainDone,
    kHostReady,
    kAskSource,
    kFault,
    kReroute
  };

  /// A node that was to start, or a collective to be entered, on a rank that is gone.
  struct Held {
    RunningId node = kNoRunning;
    bool arrives = false;
  };

  void handle(const engine::EventQueue::Event& event);
  void settle();
  void issue_ahead(RankIndex rank, std::uint32_t cause);
  bool issue_one(RankIndex rank, std::uint32_t cause);
  /// Number of the node that an in-order stream must run next, or nothing when no instance is left.
  std::optional<std::uint32_t> head(RankIndex rank, graph::StreamIndex stream);

  void enqueue(RankIndex rank, graph::StreamIndex stream, std::uint32_t cause);
  void make_ready(RankIndex rank, std::int64_t instance, std::uint32_t node, std::uint32_t cause);
  void drain();
  void try_start(RankIndex rank, graph::StreamIndex stream);
  void try_start_ready(RankIndex rank, graph::StreamIndex stream);
  void start(RunningId id);
  void start_compute(RunningId id);
  void start_collective(RunningId id);
  void arrive(RunningId id);
  void start_copy(RunningId id);
  void start_send(RunningId id);
  void start_receive(RunningId id);
  void finish_transport(Activity activity);
  void finish_message(const FlowRoute& route, RunningId send);
  void take_message(RunningId receive, std::uint32_t span);
  void complete(RunningId id);
  /// `cause`: the node's span or, where it takes no time, what let it begin.
  void release(const Running& done, std::uint32_t cause);

  bool begin_chain(RankIndex rank, std::int64_t instance, const Chain& chain);
  bool streams_stand_at(RankIndex rank, std::int64_t instance, const Chain& chain);
  template <class Book>
  ChainWalk<Book> walk_of(RankState& rank, Book& book);
  void walk_chain(RankIndex rank, Time now);
  Concurrent outside_of_chain(const RankState& rank) const;
  void push_chain_end(RankIndex rank);
  void finish_chain(RankIndex rank);

  void communication_began(RankIndex rank, const BoundNode& node);
  void communication_ended(RankIndex rank, const BoundNode& node);
  void touch(RankIndex rank);
  void push_fault();
  void strike_now();
  void set_pace(RankIndex rank, double pace);
  void set_contention(RankIndex rank);
  void finish_compute(RankIndex rank);
  void take_host(RankState& rank, std::uint32_t span, Time cost);
  void ask_again();
  void note_step(RankIndex rank, std::int64_t instance);
  void end_step();
  std::vector<Breakdown> book_all();

  const graph::Workload& workload_;
  Binding& bound_;
  const Wiring& wiring_;
  Transport& transport_;
  engine::EventQueue& queue_;
  LedgerRows rows_;
  std::unique_ptr<graph::Source> source_;
  std::vector<RankState> ranks_;
  Rendezvous rendezvous_;
  RunningNodes running_;
  std::vector<std::pair<RankIndex, graph::StreamIndex>> work_;
  std::vector<RankIndex> touched_;  ///< in this instant: the speed of their kernels may change
  ChainTables<Transport> chains_;
  SpanRecorder spans_;
  const faults::Schedule* faults_ = nullptr;
  std::size_t next_fault_ = 0;  ///< of faults_->changes
  std::vector<Held> held_;
  Progress progress_;
  std::int64_t instances_ = 0;  ///< issued
  std::int64_t instances_total_ = 0;
  std::uint64_t completions_ = 0;
  std::int64_t steps_ = 1;  ///< of the list
  std::int64_t warm_steps_ = 0;
  std::vector<Time> step_ends_;
  std::size_t behind_ = 0;  ///< ranks that have not ended step number step_ends_.size()
  std::vector<Breakdown> booked_warm_;
  std::vector<Breakdown> booked_steps_;
  bool take_shortcuts_ = false;

  template <class L>
  friend class SteadyState;
  template <class L>
  friend class RunDescription;
};

}  // namespace orrery::simulate
