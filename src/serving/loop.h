// SPDX-License-Identifier: Apache-2.0
/// The loop over engine steps. Internal to this folder.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "serving/serve.h"

namespace orrery::serving {

/// All but `visible` of layers without windows is counted where `windows` asks for it.
void fill_shape(const scheduler::Tick& tick, const std::vector<std::int64_t>& windows,
                step::StepShape& shape);
scheduler::Limits limits_of(const Engine& engine);

class Loop {
 public:
  Loop(Run& run, step::StepCost& cost, const std::vector<requests::Request>& requests,
       const ServeOptions& options);
  void go();

 private:
  struct Flight {
    scheduler::Tick tick;
    Time begin{0};
    Time end{0};
  };

  void go_synchronous();
  void go_asynchronous();
  void go_pipelined();

  /// Sends what the client sends until `now` and puts what has reached the engine into its queue.
  void enqueue(Time now);
  /// When the next request reaches the engine's queue; Time::max() if none will before an answer.
  Time next_queued() const;
  bool all_sent() const { return next_ == requests_.size(); }
  /// When the client sends its next request; Time::max() if not before an answer.
  Time next_sent() const;
  void free_slot(Time at);

  void shape_of(const scheduler::Tick& tick);
  /// Accelerator and host.
  Time duration();
  void mark_scheduled(const scheduler::Tick& tick, Time begin);
  void complete(const scheduler::Tick& tick, Time end);
  void record(Time begin, Time end);
  void sample(Time until);
  /// Advances over steps that only decode, from `now` on; `shape_` is of the first of them. Returns
  /// how many.
  std::int64_t decode_run(Time& now, std::int64_t most);
  /// All of the running requests decode one token.
  bool only_decodes(const scheduler::Tick& tick) const;
  void add_gap(Time gap, std::int64_t count);

  Run& run_;
  step::StepCost& cost_;
  const std::vector<requests::Request>& requests_;
  const ServeOptions& options_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::size_t next_ = 0;    ///< request that the client sends next
  std::deque<Time> slots_;  ///< of a client with max_concurrency: when each may be used
  std::deque<std::pair<Time, std::size_t>> arriving_;  ///< on the way through the front end
  std::vector<std::size_t> request_of_;                ///< by the scheduler's index
  std::vector<Time> token_;                            ///< by the scheduler's index: its last
  std::vector<scheduler::RequestIndex> finished_;
  step::StepShape shape_;
  std::vector<std::int64_t> growing_;  ///< by window: decodes that see one key more in every step
  Time next_sample_{0};
  std::uint64_t reported_ = 0;
};

}  // namespace orrery::serving
