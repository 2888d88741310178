// SPDX-License-Identifier: Apache-2.0
#include "estimate/pipeline_time.h"

#include <algorithm>

namespace orrery {
namespace {

/// Sums over the stages passed so far, or still to come.
struct Way {
  Time forward{0};
  Time backward{0};
  Time messages{0};  ///< in one direction

  Time both() const { return forward + backward + messages * 2; }
};

class Pipeline {
 public:
  Pipeline(const std::vector<StageTime>& stages, const PipelineShape& shape,
           const Messaging& messaging)
      : stages_(stages), shape_(shape), messaging_(messaging), waits_(messaging.waits) {}

  void run(PipelineTime& result) const {
    result.total = result.busy = result.kernels = Time(0);
    Way below = whole();
    Way above;
    for (std::size_t k = 0; k < stages_.size(); ++k) {
      const StageTime& stage = stages_[k];
      const bool last = k + 1 == stages_.size();
      const Time next = last ? Time(0) : stage.next;
      below.forward -= forward(stage.edge);
      below.backward -= edge_backward(k);
      const Time time = through(k, above, below);
      if (time > result.total) {
        result.total = time;
        result.busy = occupancy(k) * shape_.microbatches;
        result.kernels =
            (stage.work.forward.kernels + stage.work.backward.kernels) * shape_.microbatches;
      }
      below.messages -= next;
      above.forward += forward(stage.edge);
      above.backward += edge_backward(k);
      above.messages += next;
    }
    ends(result);
  }

 private:
  /// When device and host begin together, or the host has run ahead while the device waited.
  static Time pass(const PassCost& cost) {
    const bool together = cost.begins_synchronised || cost.ends_synchronised;
    return together ? std::max(cost.work, cost.latency) : cost.work;
  }
  /// Two passes after one another without a wait of the host between them.
  static Time joined(const PassCost& a, const PassCost& b) {
    return std::max({a.work + b.work, a.latency + b.work, a.issue + b.latency});
  }
  Time forward(const ChunkCost& cost) const { return pass(cost.forward); }
  Time backward(const ChunkCost& cost) const { return pass(cost.backward); }

  /// The last stage's backward follows its forward, and the host is then as far ahead as it got.
  Time edge_backward(std::size_t k) const {
    const ChunkCost& edge = stages_[k].edge;
    const bool follows = k + 1 == stages_.size() && shape_.schedule == Schedule::one_f_one_b;
    return follows ? forward_then_backward(edge) - forward(edge) : backward(edge);
  }

  Way whole() const {
    Way way;
    for (std::size_t k = 0; k < stages_.size(); ++k) {
      way.forward += forward(stages_[k].edge);
      way.backward += edge_backward(k);
      way.messages += k + 1 < stages_.size() ? stages_[k].next : Time(0);
    }
    return way;
  }

  Time message_before(std::size_t k) const {
    return stages_[k == 0 ? stages_.size() - 1 : k - 1].next;
  }

  /// What the messages of stage k cost it for one microbatch: its own, if it waits for them, or the
  /// slower kernels beside those and the ones it receives. Only the model's ends send nothing.
  Time sends(std::size_t k) const {
    const bool first = k == 0;
    const bool last = k + 1 == stages_.size();
    if (stages_.size() == 1) {
      return Time(0);
    }
    const Time own = stages_[k].next * (shape_.chunks - (last ? 1 : 0)) +
                     message_before(k) * (shape_.chunks - (first ? 1 : 0));
    return waits_ ? own : own * (2 * (1 - 1 / messaging_.contention));
  }

  static bool waits_between(const ChunkCost& cost) {
    return cost.forward.ends_synchronised || cost.backward.begins_synchronised;
  }
  static Time forward_then_backward(const ChunkCost& cost) {
    const bool begin_apart = cost.forward.begins_synchronised || cost.backward.ends_synchronised;
    if (waits_between(cost)) {
      return pass(cost.forward) + pass(cost.backward);
    }
    return begin_apart ? joined(cost.forward, cost.backward)
                       : cost.forward.work + cost.backward.work;
  }

  /// Of one microbatch: forward and backward in turn.
  Time passes(std::size_t k) const {
    const ChunkCost& cost = stages_[k].work;
    const bool waits_after = cost.backward.ends_synchronised || cost.forward.begins_synchronised;
    return waits_between(cost) && !waits_after ? joined(cost.backward, cost.forward)
                                               : forward_then_backward(cost);
  }

  Time occupancy(std::size_t k) const { return passes(k) + sends(k); }

  /// The step if stage k decides it. above: stages before k; below: those behind it, and the
  /// messages from k on.
  Time through(std::size_t k, const Way& above, const Way& below) const {
    return shape_.schedule == Schedule::gpipe ? gpipe(k, above, below)
                                              : one_f_one_b(k, above, below);
  }

  Time one_f_one_b(std::size_t k, const Way& above, const Way& below) const {
    const std::int64_t m = shape_.microbatches;
    const bool last = k + 1 == stages_.size();
    Time own_sends{0};  // in the way as well as in the occupancy
    if (waits_) {
      own_sends = (last ? Time(0) : stages_[k].next) + (k > 0 ? message_before(k) : Time(0));
    }
    const Time busy = above.both() + occupancy(k) * m + below.both() - own_sends;
    Time longest = std::max(busy, host(k) + above.backward + above.messages);
    if (shape_.schedule == Schedule::one_f_one_b) {
      const Time round = forward_then_backward(stages_[k].work) + below.both();
      const double rounds = static_cast<double>(m - 1) / static_cast<double>(stages_.size() - k);
      longest = std::max(longest, above.both() + round + round * rounds);
    }
    return longest;
  }

  /// When the host of stage k alone decides when its last backward is done.
  Time host(std::size_t k) const {
    const PassCost& f = stages_[k].work.forward;
    const PassCost& b = stages_[k].work.backward;
    const bool waits = f.begins_synchronised || f.ends_synchronised || b.begins_synchronised ||
                       b.ends_synchronised;
    if (waits || f.issue == Time(0)) {
      return Time(0);
    }
    return (f.issue + b.issue) * (shape_.microbatches - 1) +
           std::max(f.latency + b.work, f.issue + b.latency);
  }

  /// Forwards and backwards may be decided by different stages.
  Time gpipe(std::size_t k, const Way& above, const Way& below) const {
    const std::int64_t m = shape_.microbatches;
    const bool last = k + 1 == stages_.size();
    const Time next = waits_ && !last ? stages_[k].next : Time(0);
    const Time before = waits_ && k > 0 ? message_before(k) : Time(0);
    const Time one = above.both() + below.both() - next - before;
    const Time forwards = (forward(stages_[k].work) + next) * m;
    const Time backwards = (backward(stages_[k].work) + before) * m;
    return std::max(one + forwards + backwards, host(k) + above.backward + above.messages);
  }

  void ends(PipelineTime& result) const {
    result.end.resize(stages_.size());
    Time end = result.total;
    for (std::size_t k = 0; k < stages_.size(); ++k) {
      result.end[k] = end;
      end -= edge_backward(k) + stages_[k].next;
    }
  }

  const std::vector<StageTime>& stages_;
  const PipelineShape& shape_;
  const Messaging& messaging_;
  bool waits_;
};

}  // namespace

void time_pipeline(const std::vector<StageTime>& stages, const PipelineShape& shape,
                   const Messaging& messaging, PipelineTime& result) {
  Pipeline(stages, shape, messaging).run(result);
}

}  // namespace orrery
