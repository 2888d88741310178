// SPDX-License-Identifier: Apache-2.0
/// Plan -> step time in closed form, for planners.
///
///   step = pipeline + end of step.   p stages, v chunks, m microbatches; F_s, B_s: forward and
///   backward of stage s (all its chunks), c: one message; a stage that waits for its own sends is
///   busy  O_s = F_s + B_s + its sends  per microbatch, else O_s = F_s + B_s, and at least as long
///   as its host needs to issue a microbatch.
///
///   1F1B         max over stages k of   fill to k + m O_k + round trip below k + drain above k,
///                and of                 fill to k + R_k (1 + (m-1)/(p-k)) + drain above k
///                R_k: one microbatch from stage k to the last and back; p-k of them are in flight
///   interleaved  max over stages k of   m O_k + (p-1) (f + b + 2c),   f, b: one chunk
///   gpipe        the same sum for all forwards, then for all backwards
///   end          reductions not hidden by the last backward, tied embedding, norm, update; each
///                stage begins as early as it is done, and all wait for each other in the norm's
///                sum
///
/// Uniform stages without messages: (m + p - 1)(F + B), and m (F + B) + (p-1)(F + B)/v.
///
/// What stages, messages and reductions take is measured once per group of plans that agree in
/// whatever matters (chunk_cost.h, placement.h) and kept, so a sweep costs few of them.
///
/// Ignores:  links shared by messages and reductions; kernels slowed by messages that the sender
///           waits for; waits for messages in the warm-up of interleaved schedules; faults.
/// Source:   1F1B and interleaving: Narayanan et al., SC'21, section 2.2; host as a second resource
///           in max-plus algebra: Baccelli et al. 1992. docs/models/estimate.md derives the rest.
#pragma once

#include <memory>

#include "machine/machine.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery {

struct Estimate {
  Time step_time{0};
  /// Parts of step_time, in the stage that is busiest; they sum to it.
  Time compute{0};  ///< kernels alone
  Time exposed{0};  ///< within passes: collectives, own sends, waits for the host, slower kernels
  Time bubble{0};   ///< pipeline fill and drain
  Time tail{0};     ///< after the last backward pass
};

/// Estimates plans of one model on one machine. Not thread-safe: it keeps what it has measured. One
/// estimator per thread.
class Estimator {
 public:
  /// The machine may have an open outer dimension; it is cut to each plan's devices.
  Estimator(Model model, Machine machine);
  ~Estimator();
  Estimator(Estimator&&) noexcept;
  Estimator& operator=(Estimator&&) noexcept;

  /// Requires a plan that passed check(). Mistakes: devices that the machine cannot have.
  Result<Estimate> estimate(const Plan& plan);

 private:
  class Memo;
  std::unique_ptr<Memo> memo_;
};

}  // namespace orrery
