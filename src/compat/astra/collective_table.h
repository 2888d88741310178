// SPDX-License-Identifier: Apache-2.0
/// The collectives that are under way: who takes part, and the streams of their chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compat/astra/communicators.h"
#include "compat/astra/marks.h"
#include "compat/astra/planner.h"
#include "compat/astra/population.h"
#include "compat/astra/queue_turns.h"
#include "compat/astra/sequence.h"
#include "compat/astra/streams.h"

namespace orrery::astra {

/// An Issuer is a node of a rank that issues a collective.
struct Issuer {
  std::uint32_t rank;
  std::uint32_t node;
};

/// Collectives match by communicator and sequence number within it: the first member to issue one
/// opens it for all, and it is closed when it is over at all of them.
class CollectiveTable {
 public:
  CollectiveTable(const Population& population, Communicators& communicators, Planner& planner,
                  QueueTurns turns)
      : population_(population),
        communicators_(communicators),
        planner_(planner),
        turns_(std::move(turns)),
        states_(planner.has_state() ? population.count() : 0) {}

  /// Returns the instance that a member issues next.
  std::uint32_t open(const Issuer& issuer, const Communicators::Membership& membership,
                     const CollectiveRequest& request);
  /// A member takes part. `priority`, and the number of the collective on its rank.
  void join(std::uint32_t index, std::uint32_t local, const Issuer& issuer,
            std::pair<std::int64_t, std::int64_t> priority);
  /// A stream has ended: returns the member, if the collective is over there.
  std::optional<Issuer> end(std::uint32_t stream);

  Blocks<Stream>& streams() { return streams_; }
  const Blocks<Stream>& streams() const { return streams_; }
  Marks& marks() { return marks_; }
  const Instance& instance(std::uint32_t index) const { return instances_[index]; }
  const Member& member_of(const Stream& stream) const {
    return members_[instances_[stream.instance].first_member + stream.local];
  }
  const ChunkPlan& plan_of(std::uint32_t stream) const {
    return *instances_[streams_[stream].instance].plan->chunks[chunk_of(stream)];
  }
  std::uint32_t chunk_of(std::uint32_t stream) const {
    const Instance& instance = instances_[streams_[stream].instance];
    return (stream - instance.streams) % instance.chunks();
  }
  QueueTurns::Turn turn_of(std::uint32_t stream, const Phase& phase) const {
    return turns_.of(member_of(streams_[stream]).turns, phase, chunk_of(stream));
  }
  Place place_of(std::uint32_t stream, const Phase& phase) const;
  /// Returns the first word of a stream's marks.
  std::uint32_t first_word(std::uint32_t stream) const {
    const Instance& instance = instances_[streams_[stream].instance];
    return instance.words + (stream - instance.streams) * instance.plan->words;
  }
  /// Returns the NPU of a stream.
  std::int64_t npu(std::uint32_t stream) const {
    const Stream& at = streams_[stream];
    return communicators_.rank_of(instances_[at.instance].communicator, at.local);
  }
  /// Returns the NPU of stream `to`, which a message of `from` reaches in a phase. When one NPU
  /// stands for all, the one that would be there: it has coordinate 0 in every dimension of its
  /// line.
  std::int64_t destination(std::uint32_t from, std::uint32_t to, std::uint16_t phase_index,
                           std::uint32_t message) const {
    if (!population_.single()) {
      return npu(to);
    }
    const Phase& phase = plan_of(from).phases[phase_index];
    const std::uint32_t position = receiver(phase.pattern, phase, {0, 1, 0, false}, message);
    return communicators_.rank_of(instances_[streams_[from].instance].communicator,
                                  position * phase.axis.local_stride);
  }

 private:
  struct OpenInstances {
    std::uint32_t first = 0;  ///< sequence number of the first
    std::vector<std::uint32_t> instances;
  };

  std::uint32_t unused();
  void close(std::uint32_t index);

  const Population& population_;
  Communicators& communicators_;
  Planner& planner_;
  QueueTurns turns_;
  std::vector<PlannerState> states_;        ///< by rank; empty when plans have no state
  std::vector<PlannerState> states_after_;  ///< by instance
  Blocks<Stream> streams_;
  Marks marks_;
  Blocks<Member> members_;
  std::vector<Instance> instances_;
  std::vector<std::uint32_t> unused_instances_;
  std::vector<OpenInstances> open_;  ///< by communicator
};

}  // namespace orrery::astra
