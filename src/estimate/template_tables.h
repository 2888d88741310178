// SPDX-License-Identifier: Apache-2.0
/// Timed templates by what they are made of, each made and mapped once for all plans.
///
///   A template is known by its steps: equal steps (time, lane, what they read and write) in the
///   same blocks and lanes wait for the same and so are the same template, whichever plans they
///   come from. Nothing is assumed of which plan fields matter.
///
///   What waits for what does not depend on times: steps that differ in those alone share a
///   skeleton, found once. A search has few of them.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "estimate/pass_map.h"
#include "estimate/timed_workload.h"
#include "workload/parallel/step_list.h"

namespace orrery::estimate {

class TemplateTables {
 public:
  TemplateTables() : transfers_(std::make_shared<Transfers>()) {}

  int add_transfer(const std::vector<PortPhase>& phases);
  const std::vector<PortPhase>& transfer(int number) const {
    return (*transfers_)[index_of(number)];
  }
  std::shared_ptr<const Transfers> transfers() const { return transfers_; }

  /// Number of a step whose node takes this time.
  std::uint32_t add_step(const parallel::Step& step, const TimedNode& timed);

  /// Of steps with these numbers.
  std::shared_ptr<MappedTemplate> find(const parallel::StepList& list,
                                       const std::vector<std::uint32_t>& numbers);

  /// Steps of all templates: what the memory grows with.
  std::size_t size() const { return size_; }

 private:
  /// All that decides what a step waits for, and which steps become one node.
  struct StepShape {
    parallel::Value reads = parallel::Value::none;
    parallel::Value writes = parallel::Value::none;
    bool after_compute = false;
    bool host_sync = false;
    std::uint8_t lane = 0;
    int gathers_block = parallel::kNoBlock;
    graph::PhaseIndex phase{std::size_t{0}};
    graph::Node::Kind kind = graph::Node::Kind::compute;

    friend bool operator==(const StepShape&, const StepShape&) = default;
  };
  /// And what it takes.
  struct TimedStep {
    std::uint32_t shape = 0;
    std::uint32_t node = 0;

    friend bool operator==(const TimedStep&, const TimedStep&) = default;
  };
  /// A template but for the times.
  struct Skeleton {
    std::vector<std::uint32_t> node_of;       ///< by step
    std::vector<std::uint32_t> first_before;  ///< by node, and where the last one's end
    std::vector<std::uint32_t> before;
    std::vector<std::uint32_t> starts;  ///< nodes, of blocks
  };
  struct NodeHash {
    std::size_t operator()(const TimedNode& node) const;
  };
  struct ShapeHash {
    std::size_t operator()(const StepShape& shape) const;
  };
  struct StepHash {
    std::size_t operator()(const TimedStep& step) const;
  };
  using Key = std::vector<std::uint64_t>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct TransferHash {
    std::size_t operator()(const std::vector<PortPhase>& phases) const;
  };

  static std::uint64_t place_of(const parallel::PlacedStep& placed) {
    return static_cast<std::uint64_t>(placed.block + 1) * 2 + placed.lane;
  }
  std::uint32_t add_node(const TimedNode& node);
  std::uint32_t joined(std::uint32_t first, std::uint32_t second);
  const Skeleton& skeleton_of(const parallel::StepList& list,
                              const std::vector<std::uint32_t>& numbers);
  Skeleton make_skeleton(const parallel::StepList& list,
                         const std::vector<std::uint32_t>& numbers) const;
  TimedTemplate make(const Skeleton& skeleton, const std::vector<std::uint32_t>& numbers);

  // None is ever iterated over, so their order does not matter.
  std::unordered_map<std::vector<PortPhase>, int, TransferHash> transfer_numbers_;
  std::unordered_map<TimedNode, std::uint32_t, NodeHash> node_numbers_;
  std::unordered_map<StepShape, std::uint32_t, ShapeHash> shape_numbers_;
  std::unordered_map<TimedStep, std::uint32_t, StepHash> step_numbers_;
  std::unordered_map<TimedStep, std::uint32_t, StepHash> joined_;  ///< by two nodes
  std::unordered_map<Key, Skeleton, KeyHash> skeletons_;
  std::unordered_map<Key, std::shared_ptr<MappedTemplate>, KeyHash> templates_;
  std::shared_ptr<Transfers> transfers_;
  std::vector<TimedNode> nodes_;   ///< distinct ones
  std::vector<StepShape> shapes_;  ///< distinct ones
  std::vector<TimedStep> steps_;
  Key key_;  ///< of the template looked for
  std::size_t size_ = 0;
};

}  // namespace orrery::estimate
