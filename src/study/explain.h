// SPDX-License-Identifier: Apache-2.0
/// Says why a step takes as long as it does, and what would make it faster.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "study/critical_path.h"
#include "study/resource.h"
#include "study/run.h"
#include "study/trust.h"

namespace orrery::study {

/// The step once more with one resource improved by 10 %: rates x 1.1, times x 0.9.
///
///   change     = step_time / base - 1
///   elasticity = ln(step_time / base) / ln(improvement),  improvement 1.1, or 1/0.9 of a time
///
/// -1: the step time is proportional to the resource; 0: it does not matter. Elasticities of all
/// resources sum to about -1, because a machine with everything twice as fast takes half the time.
struct Sensitivity {
  Resource resource;
  Time step_time{0};
  double change = 0;
  double elasticity = 0;
  /// Returns whether the step became slower although it got more: a scheduling anomaly (an earlier
  /// message that shares a link, a collective that meets other kernels). Reports show it.
  bool anomaly() const { return change > 0; }
};

/// Says how much better the strongest resource has to be for another one to become the strongest.
struct NextBottleneck {
  double factor = 1;
  Resource resource;  ///< then the strongest
  Time step_time{0};  ///< then
};

struct ExplainOptions {
  bool allow_oom = false;
  bool fold = true;
  bool shortcuts = true;  ///< SimulateOptions::shortcuts
  simulate::NetworkModel network = simulate::NetworkModel::ports;
  bool next_bottleneck = true;
  int threads = 0;                            ///< 0 = one per processor
  std::function<void(double)> progress = {};  ///< called now and then with the share done
};

struct Explanation {
  WorkloadRun run;                 ///< with its spans
  std::optional<plan::Plan> plan;  ///< none: what comes from no plan
  std::optional<Causes> causes;    ///< of the step time's error; none without a plan
  CriticalPath path;
  std::vector<Sensitivity> sensitivities;  ///< strongest first; ties in the order of resources_of
  /// The next bottleneck; none when nothing matters or nothing else takes over up to
  /// kLargestFactor.
  std::optional<NextBottleneck> next;
};

inline constexpr double kImprovement = 0.1;
inline constexpr double kLargestFactor = 64;

/// The figures do not depend on the number of threads. Mistakes: those of run_step.
Result<Explanation> explain(const zoo::Model& model, const machine::Machine& machine,
                            const plan::Plan& plan, std::int64_t devices,
                            const ExplainOptions& options = {});
/// Explains a workload from anywhere. Mistakes: those of run_workload.
Result<Explanation> explain(const std::string& name, const graph::Workload& workload,
                            const machine::Machine& machine, const ExplainOptions& options = {});

}  // namespace orrery::study
