// SPDX-License-Identifier: Apache-2.0
#include "study/rescale.h"

#include <array>
#include <string>

#include "machine/compute/compute_model.h"
#include "study/overflow.h"

namespace orrery::study {
namespace {

double ratio(Time measured, Time simulated) {
  return measured > Time(0) && simulated > Time(0) ? to_seconds(measured) / to_seconds(simulated)
                                                   : 1;
}

class Factors {
 public:
  Factors(const StepTimes& measured, const StepTimes& simulated) {
    for (std::size_t of = 0; of < kWorkClasses; ++of) {
      by_class_[of] = ratio(measured.busy[of], simulated.busy[of]);
    }
    for (const auto& [name, sum] : simulated.kernels) {
      const auto same = measured.kernels.find(name);
      if (same != measured.kernels.end() && sum.time > Time(0) && same->second.time > Time(0)) {
        by_name_[name] = ratio(same->second.time, sum.time);
      }
    }
  }

  double of(const std::string& name, WorkClass kind) const {
    const auto own = by_name_.find(name);
    return own != by_name_.end() ? own->second : by_class_[static_cast<std::size_t>(kind)];
  }

  /// Returns a row for each class that `kernels` have, in the order of classes.
  std::vector<ClassFactor> table(const KernelSums& kernels) const {
    std::array<ClassFactor, kWorkClasses> rows;
    for (const auto& [name, sum] : kernels) {
      ClassFactor& row = rows[static_cast<std::size_t>(sum.of)];
      ++row.kernels;
      row.by_name += by_name_.contains(name) ? 1 : 0;
    }
    std::vector<ClassFactor> some;
    for (std::size_t of = 0; of < kWorkClasses; ++of) {
      if (rows[of].kernels > 0) {
        rows[of].name = name_of(static_cast<WorkClass>(of));
        rows[of].factor = by_class_[of];
        some.push_back(rows[of]);
      }
    }
    return some;
  }

 private:
  std::array<double, kWorkClasses> by_class_{};
  std::map<std::string, double, std::less<>> by_name_;
};

/// Gives the operator a duration: of the whole kernel, also where it is a piece of one.
void lengthen(graph::Operator& op, double factor, const compute::Device& device) {
  graph::Operator whole = op;
  whole.piece = 0;
  whole.pieces = 1;
  const compute::KernelTime time = compute::kernel_time(whole, device);
  if (time.alone * factor > Time(0)) {
    op.beside_collective = to_seconds(time.beside_collective) / to_seconds(time.alone);
    op.beside_message = to_seconds(time.beside_message) / to_seconds(time.alone);
    op.duration = time.alone * factor;
  }
}

}  // namespace

Result<Rescaled> rescale(const StepTimes& measured, const StepTimes& simulated, const Run& other) {
  if (!other.machine.parts.empty()) {
    return fail(Error(Mistake{"--rescale", "machine", other.machine.name,
                              "a machine of one device type: a kernel has one measured time"}));
  }
  const Factors factors(measured, simulated);
  const KernelSums kernels = times_of(other).kernels;
  graph::Workload workload = other.workload;
  for (graph::Program& program : workload.programs) {
    for (graph::Template& each : program.templates) {
      for (graph::Node& node : each.nodes) {
        for (graph::Operator& op : node.operators) {
          const auto known = kernels.find(op.name);
          if (known != kernels.end()) {
            lengthen(op, factors.of(op.name, known->second.of), other.machine.device);
          }
        }
      }
    }
  }
  const auto timeline = simulate_in_range(
      workload, other.machine,
      {.warm_steps = other.warm_steps, .network = other.network, .algorithms = other.algorithms});
  if (!timeline) {
    return fail(timeline.error());
  }
  return Rescaled{.plan = other.plan,
                  .simulated = other.timeline.step_time,
                  .step = timeline->step_time,
                  .factors = factors.table(kernels)};
}

}  // namespace orrery::study
