// SPDX-License-Identifier: Apache-2.0
/// One of an engine's copies of attention, and what a step of all of them computes. Internal to
/// this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "serving/serve.h"

namespace orrery::serving {

/// A scheduler with its KV cache and the memory below it. An engine has dp of them.
struct Copy {
  std::unique_ptr<scheduler::Scheduler> scheduler;
  std::optional<KvTiers> tiers;
  std::int64_t unfinished = 0;
  // By the scheduler's index:
  std::vector<std::size_t> served;   ///< number in the run
  std::vector<Time> token;           ///< its last; Time::max(): none yet
  std::vector<int> preempted;        ///< how often, until that token
  std::vector<std::int8_t> holders;  ///< who still needs the blocks of a request that has ended
  std::vector<scheduler::RequestIndex> finished;  ///< by the last step
  std::unordered_map<scheduler::RequestIndex, std::vector<requests::Image>> images;
  std::vector<scheduler::KvChange> changes;  ///< of its blocks, by the last schedule
};

/// Returns which has the fewest unfinished requests, the first of equals.
std::size_t emptiest(const std::vector<Copy>& copies);

/// Points to what each copy computes in one step, by copy.
using Ticks = std::vector<const scheduler::Tick*>;

/// Shapes and time of a step: each copy is padded to the tokens of that with most, and the step
/// takes as long as the slowest. One without requests computes those tokens, too. Images are
/// encoded in the step whose chunk of the prompt has their first token, as vLLM's scheduler has it.
/// Ignores: its limit on tokens of images in a step, images that a prefix cache ends within.
///
///   whole models   one after the other: the sum over models of the longest that a copy takes for
///                  its requests of that model
class StepShapes {
 public:
  StepShapes(const Engine& engine, step::StepCost& cost, std::size_t copies);

  /// Takes over a step. Ticks stand in the order of copies.
  void form(const std::vector<Copy>& copies, const Ticks& ticks);
  /// Returns the time of the accelerator, guesses of tokens included.
  Time accelerator();
  /// Returns the energy of a device, mean over the copies, in the time that accelerator() has
  /// returned: copies that wait draw idle power, guesses the power of their step.
  Energy energy() const { return energy_; }
  /// Returns the time of the step's collectives on links of a dimension of the machine.
  Time collectives(int dimension) const { return cost_.collectives(shapes_.front(), dimension); }
  std::int64_t tokens() const { return tokens_; }                ///< of all copies
  std::int64_t requests() const { return requests_; }            ///< of all copies
  std::int64_t most_requests() const { return most_requests_; }  ///< of one copy
  std::int64_t images() const { return images_; }                ///< encoded, of all copies
  Time encoding() const { return encoding_; }  ///< of accelerator(), that of images

  // Of one copy whose requests all decode:
  /// The shape becomes that of the next step.
  void go_on();
  /// Counts anew which of them see one key more in every step.
  void count_growing(const scheduler::Scheduler& scheduler);

 private:
  void add_adapters(const Copy& copy, const scheduler::Tick& tick, step::StepShape& shape);
  /// Adds images that the step's chunks of prompts reach.
  void add_images(const Copy& copy, const scheduler::Tick& tick, step::StepShape& shape);
  void split_by_model(const std::vector<Copy>& copies, const Ticks& ticks);
  /// Returns the longest that a copy takes; adds to energy().
  Time longest(std::vector<step::StepShape>& shapes);

  const Engine& engine_;
  step::StepCost& cost_;
  std::vector<step::StepShape> shapes_;              ///< by copy
  std::vector<std::vector<step::StepShape>> parts_;  ///< by whole model, then by copy
  std::vector<std::int32_t> different_;              ///< adapters
  std::vector<std::int64_t> growing_;  ///< by window: decodes that see one key more in every step
  Energy energy_{0};
  std::int64_t tokens_ = 0;
  std::int64_t requests_ = 0;
  std::int64_t most_requests_ = 0;
  std::int64_t images_ = 0;
  Time encoding_{0};
};

}  // namespace orrery::serving
