// SPDX-License-Identifier: Apache-2.0
/// A Timeline tells what one run was like.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "graph/workload.h"

namespace orrery::simulate {

/// TimeCategories are what an instant of a rank's time counts as; of every workload the rows
///
///   its phases, host, its categories of exposed communication, bubble
///
/// At every instant exactly one: the compute stream's phase if it runs (host: it waits for the host
/// to issue), else the first category of the rank's active communications, else bubble.
class TimeCategories {
 public:
  TimeCategories() = default;
  explicit TimeCategories(const graph::Workload& workload);

  std::size_t size() const { return rows_.size(); }
  std::size_t of(graph::PhaseIndex phase) const { return *phase; }
  std::size_t host() const { return phases_; }
  std::size_t of(graph::CategoryIndex exposed) const { return phases_ + 1 + *exposed; }
  std::size_t bubble() const { return rows_.size() - 1; }

  bool is_phase(std::size_t row) const { return row < phases_; }
  bool is_exposed(std::size_t row) const { return row > host() && row < bubble(); }
  const std::vector<graph::Category>& rows() const { return rows_; }
  const std::string& name(std::size_t row) const { return rows_[row].name; }

 private:
  std::vector<graph::Category> rows_;
  std::size_t phases_ = 0;
};

struct Breakdown {
  std::vector<Time> time;    ///< by TimeCategories; sums to step_time exactly
  std::vector<Time> hidden;  ///< communication while compute runs, by group

  friend bool operator==(const Breakdown&, const Breakdown&) = default;
};

/// One span of one stream of a simulated rank (recorded on request).
struct Span {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::int64_t rank = 0;
  graph::StreamIndex stream = graph::kComputeStream;
  graph::Node::Kind kind =
      graph::Node::Kind::compute;  ///< receive: the receiver's side of the span before it
  graph::GroupIndex group;         ///< of communication
  graph::PhaseIndex phase;
  int template_index = 0;
  int node = 0;
  int chunk = 0;
  std::int64_t microbatch = 0;
  std::int64_t step = 0;
  Time begin{0};
  Time end{0};
  Time host_stall{0};  ///< part of a compute span in which it waited for the host
  /// The time when its stream and its dependencies allowed it. A collective begins with its last
  /// member's.
  Time ready{0};
  Time host_begin{0};  ///< the host issued it from here ...
  Time host_end{0};    ///< ... to here; equal when that takes no time
  /// The span whose end let it begin: a node before it, a message. kNone: the start of the run, or
  /// a moment of the source's.
  std::uint32_t cause = kNone;
  std::uint32_t last_member = kNone;  ///< of a collective: the span of the member that came last
  /// The span that kept the host until host_begin: by being issued, or because the host waited for
  /// its end (host_waited). kNone: nothing before.
  std::uint32_t host_cause = kNone;
  bool host_waited = false;
};

/// One message on its way (recorded on request, of networks that move messages).
struct MessageSpan {
  std::int64_t source = 0;  ///< ranks
  std::int64_t target = 0;
  Bytes bytes{0};
  Time begin{0};
  Time end = Time::max();  ///< of the arrival; max: never
};

/// Says why a run has not come to its end.
struct Stop {
  Time at{0};  ///< nothing happened after
  Error why;
};

struct FoldReport {
  std::int64_t ranks = 0;
  std::int64_t simulated = 0;
  std::vector<std::string> reasons;  ///< why a digit of the rank numbers was not folded
};

/// The times of a run. Of several steps, step_time and the breakdowns are means over the steps
/// after the warm-up: from when every rank has ended the last step of the warm-up to when every
/// rank has ended the last step.
struct Timeline {
  Time step_time{0};
  Time run_time{0};  ///< from the beginning until all is done
  /// The times, by step, when every rank's kernels of the step and of those before it are done; one
  /// step: the end of the run.
  std::vector<Time> step_ends;
  std::int64_t critical_rank = 0;   ///< finishes last (the lowest such)
  TimeCategories categories;        ///< of all breakdowns
  Breakdown breakdown;              ///< of the critical rank
  std::vector<std::int64_t> ranks;  ///< simulated ranks, ascending
  std::vector<Time> finish;         ///< of each simulated rank, from the beginning
  std::vector<Breakdown> by_rank;   ///< of each simulated rank
  std::uint64_t events = 0;         ///< node completions
  FoldReport fold;
  /// The spans, in the order in which they had their streams and dependencies; empty unless
  /// recorded. A message is the span of its send, followed by the same as the receiver's.
  std::vector<Span> spans;
  /// The instances that were issued, by role; empty unless spans are recorded.
  std::vector<std::vector<graph::Instance>> instances;
  std::vector<MessageSpan> messages;  ///< in the order in which they began; empty unless recorded
  /// Says why the run stopped before its end, which happens with faults only: they may leave ranks
  /// waiting for ever. The times are those until then, and what was not over ends at Time::max().
  std::optional<Stop> stopped;

  /// Returns the time of the critical rank, by the category's or group's name; 0 when there is none
  /// of that name.
  Time time(std::string_view category) const;
};

}  // namespace orrery::simulate
