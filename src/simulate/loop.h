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
#include "simulate/step_book.h"
#include "simulate/transport.h"
#include "simulate/wiring.h"

namespace orrery::simulate {

struct LoopOptions {
  /// Nodes one by one, with their spans.
  bool record_spans = false;
  /// Chains of nodes are one event (chain.h), and the steady state is jumped (steady.h).
  bool shortcuts = false;
  /// Ranks and links change as it says, if there is one; it must outlive the run. It requires a run
  /// without shortcuts.
  const faults::Schedule* faults = nullptr;
  std::int64_t warm_steps = 0;  ///< StepBook::warm
  Progress progress = {};
};

/// Runs the simulated ranks to their ends. Everything is in flat arrays by simulated rank;
/// instances live in a ring buffer per rank from issue until their last node is done.
class Loop {
 public:
  /// Everything must outlive the loop; `queue` is the transport's.
  Loop(const graph::Workload& workload, Binding& bound, const Wiring& wiring, Transport& transport,
       engine::EventQueue& queue, const LoopOptions& options);

  /// Runs to the end, or to kEndOfTime: queue.now() is there then.
  void run();

  std::uint64_t events() const { return completions_; }
  SpanRecorder& spans() { return spans_; }
  const StepBook& steps() const { return steps_; }
  /// States at the end; a rank with unfinished instances waits for what never came.
  const std::vector<RankState>& ranks() const { return ranks_; }
  /// Returns, at the end, a rank whose source has more; null if none has. The compute stream asks
  /// for instances (loop_issue.cc), so two in a row with nothing on it are the last.
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
  /// Returns the number of the node that an in-order stream must run next, or nothing when no
  /// instance is left.
  std::optional<std::uint32_t> head(RankIndex rank, graph::StreamIndex stream);

  void enqueue(RankIndex rank, graph::StreamIndex stream, std::uint32_t cause);
  void make_ready(RankIndex rank, std::int64_t instance, std::uint32_t node, std::uint32_t cause);
  void drain();
  void try_start(RankIndex rank, graph::StreamIndex stream);
  void try_start_ready(RankIndex rank, graph::StreamIndex stream);
  void start(RunningId id);
  void start_compute(RunningId id);
  void start_moving(RunningId id);
  void arrive(RunningId id);
  void start_send(RunningId id);
  void start_receive(RunningId id);
  void finish_transport(Activity activity);
  void finish_message(const FlowRoute& route, RunningId send);
  void complete(RunningId id);
  /// Releases what waits for a node. `cause`: the node's span or, where it takes no time, what let
  /// it begin.
  void release(const Running& done, std::uint32_t cause);

  bool try_chain(RankIndex rank, std::int64_t instance, const Chain& chain);
  void push_chain_end(RankIndex rank);
  void finish_chain(RankIndex rank);

  /// A communication begins or ends on a rank.
  void communicate(RankIndex rank, const BoundNode& node, bool begins);
  void touch(RankIndex rank);
  void push_fault();
  void strike_now();
  void set_pace(RankIndex rank, double pace);
  void set_contention(RankIndex rank);
  void finish_compute(RankIndex rank);
  void ask_again();

  const graph::Workload& workload_;
  Binding& bound_;
  const Wiring& wiring_;
  Transport& transport_;
  engine::EventQueue& queue_;
  const LoopOptions options_;
  LedgerRows rows_;
  std::unique_ptr<graph::Source> source_;
  std::vector<RankState> ranks_;
  Rendezvous rendezvous_;
  RunningNodes running_;
  std::vector<std::pair<RankIndex, graph::StreamIndex>> work_;
  std::vector<RankIndex> touched_;  ///< in this instant: the speed of their kernels may change
  ChainTables chains_;
  SpanRecorder spans_;
  std::size_t next_fault_ = 0;  ///< of options_.faults->changes
  std::vector<Held> held_;
  std::int64_t instances_ = 0;  ///< issued
  std::int64_t instances_total_ = 0;
  std::uint64_t completions_ = 0;
  StepBook steps_;

  friend class SteadyState;
  friend class RunDescription;
};

}  // namespace orrery::simulate
