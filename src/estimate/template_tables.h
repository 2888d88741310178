// SPDX-License-Identifier: Apache-2.0
/// Timed templates by what they are made of, each made and mapped once for all plans.
///
///   A template is known by its steps: equal steps (time, lane, what they read and write) in the
///   same blocks and lanes wait for the same and so are the same template, whichever plans they
///   come from. Nothing is assumed of which plan fields matter.
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

  /// Nodes of all templates: what the memory grows with.
  std::size_t size() const { return size_; }

 private:
  /// All that decides what a step waits for and takes.
  struct TimedStep {
    TimedNode timed;
    parallel::Value reads = parallel::Value::none;
    parallel::Value writes = parallel::Value::none;
    bool after_compute = false;
    int gathers_block = parallel::kNoBlock;
    graph::PhaseIndex phase{std::size_t{0}};
    graph::Node::Kind kind = graph::Node::Kind::compute;

    friend bool operator==(const TimedStep&, const TimedStep&) = default;
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

  TimedTemplate make(const parallel::StepList& list,
                     const std::vector<std::uint32_t>& numbers) const;

  // None is ever iterated over, so their order does not matter.
  std::unordered_map<std::vector<PortPhase>, int, TransferHash> transfer_numbers_;
  std::unordered_map<TimedStep, std::uint32_t, StepHash> step_numbers_;
  std::unordered_map<Key, std::shared_ptr<MappedTemplate>, KeyHash> templates_;
  std::shared_ptr<Transfers> transfers_;
  std::vector<TimedStep> steps_;
  Key key_;  ///< of the template looked for
  std::size_t size_ = 0;
};

}  // namespace orrery::estimate
