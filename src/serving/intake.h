// SPDX-License-Identifier: Apache-2.0
/// An Intake is what an engine makes of requests for its scheduler. Internal to this folder.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "serving/client.h"
#include "serving/serve.h"

namespace orrery::serving {

scheduler::Limits limits_of(const Engine& engine);
/// Returns the number of tokens of its answer that max_model_len leaves.
std::int64_t answer_of(const requests::Request& request, const Engine& engine);
/// Returns what the scheduler is told of a request; nothing if it is too long for the engine.
std::optional<scheduler::RequestSpec> spec_of(const requests::Request& request, const Run& run,
                                              const scheduler::Scheduler& scheduler);
/// Requests that have come and that an engine takes later: every Engine::recv_interval steps, or
/// once batch_wait_iters steps have passed since the first came or their prompts fill
/// batch_wait_ratio of a step's tokens. Steps are counted from the run's first.
class HeldRequests {
 public:
  void add(const Delivery& delivery, std::int64_t step) {
    since_ = held_.empty() ? step : since_;
    held_.push_back(delivery);
  }
  /// A step with prompts has ended, after which an engine looks at once.
  void look(std::int64_t step) { looked_ = step; }
  /// Returns how many steps they still wait.
  std::int64_t steps(const Engine& engine, const std::vector<requests::Request>& requests,
                     std::int64_t step) const;
  bool empty() const { return held_.empty(); }
  std::vector<Delivery> take() { return std::exchange(held_, {}); }

 private:
  std::vector<Delivery> held_;
  std::int64_t since_ = 0;   ///< the step in which the first of them came
  std::int64_t looked_ = 0;  ///< the last step with prompts
};

Served served_of(const scheduler::RequestSpec& spec, const Delivery& delivery);

}  // namespace orrery::serving
