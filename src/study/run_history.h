// SPDX-License-Identifier: Apache-2.0
/// What every node of a simulated rank did, put together again from the recorded spans.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "graph/workload.h"
#include "simulate/timeline.h"

namespace orrery {

/// Number of a node's execution in its rank's history.
using Execution = std::uint32_t;

/// One rank's executions: all nodes of its issue list, in issue order. A span tells begin and end
/// of what takes time (compute, collectives, sends); streams are in order, so the k-th span of a
/// stream is its k-th node that has one. The others (waits, receives, collectives of one member)
/// take no time: they end with the last of
///
///   the stream's previous node, the nodes in `after`, the message received,
///   the instance's issue (when the compute stream has left the instance two before).
class RankHistory {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Entry {
    std::uint32_t instance = 0;
    std::uint32_t node = 0;      ///< of the instance's template
    std::uint32_t span = kNone;  ///< into Timeline::spans; a receive: its message's send
    Execution previous = kNone;  ///< on the same stream
    Time end{0};
  };

  RankHistory(const Workload& workload, const Timeline& timeline, std::int64_t rank);

  const Entry& operator[](Execution number) const { return entries_[number]; }
  const Template& shape_of(Execution number) const {
    return program_.templates[template_index(number)];
  }
  const Node& node_of(Execution number) const {
    return shape_of(number).nodes[entries_[number].node];
  }
  std::size_t template_index(Execution number) const {
    return static_cast<std::size_t>(instances_[entries_[number].instance].template_index);
  }
  int role() const { return role_; }

  /// Of the same rank: what ended last of all that `number` had to wait for before it was ready.
  std::optional<Execution> cause_of(Execution number) const;
  /// The one whose span is `span`, an index into Timeline::spans. Receives have no span of their
  /// own.
  std::optional<Execution> with_span(std::uint32_t span) const;
  /// The one on `stream` whose span began and ended then.
  std::optional<Execution> during(Stream stream, Time begin, Time end) const;
  /// What kept the host busy until then, or ended then and made the host wait for it.
  std::optional<Execution> host_until(Time end) const;
  std::optional<Execution> synchronised(Time end) const;
  /// The last to end at or before then.
  std::optional<Execution> last_before(Time end) const;

 private:
  void list_executions(const Workload& workload);
  void sort_spans(const Workload& workload);
  void match(Execution number);
  void replay(Execution number);
  void index();
  /// What decided when the instance was issued; nothing for those issued at the start.
  std::optional<Execution> issue_of(std::uint32_t instance) const;
  std::optional<Execution> last_at(const std::vector<Execution>& by_time, Time end) const;

  int role_ = 0;
  std::int64_t rank_ = 0;
  const Program& program_;
  const std::vector<Span>& all_spans_;
  std::vector<Instance> instances_;
  std::vector<Execution> first_;         ///< of each instance; one more at the end
  std::vector<Execution> last_compute_;  ///< of each instance or an earlier one; kNone
  std::vector<Entry> entries_;
  std::array<std::vector<std::uint32_t>, kStreamCount> spans_;      ///< by stream, in order
  std::array<std::vector<std::uint32_t>, kChannelCount> messages_;  ///< sends to this rank
  std::array<std::size_t, kStreamCount> next_span_{};
  std::array<std::size_t, kChannelCount> next_message_{};
  std::array<std::vector<Execution>, kStreamCount> spanned_;  ///< those with a span, in order
  std::vector<Execution> by_end_;
  std::vector<Execution> by_host_end_;  ///< what took the host time
  std::vector<Execution> by_sync_;      ///< what the host waited for, by end
};

}  // namespace orrery
