// SPDX-License-Identifier: Apache-2.0
/// The time of a step by classes of work: measured on devices, and simulated, side by side.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/names.h"
#include "base/result.h"
#include "base/units.h"
#include "study/run.h"

namespace orrery::study {

enum class WorkClass : std::uint8_t {
  product,
  attention,
  optimizer,
  stream,
  copy,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  message
};
constexpr auto named_values(WorkClass) {
  return std::to_array<Named<WorkClass>>({
      {WorkClass::product, "product", "GEMMs, grouped ones too"},
      {WorkClass::attention, "attention", "fused attention"},
      {WorkClass::optimizer, "optimizer", "updates of parameters"},
      {WorkClass::stream, "stream", "norms, activations, sums, casts: all other kernels"},
      {WorkClass::copy, "copy", "copies between memories, and what sets memory"},
      {WorkClass::all_reduce, "all_reduce", "sums of all members at all members"},
      {WorkClass::all_gather, "all_gather", "shards of all members at all members"},
      {WorkClass::reduce_scatter, "reduce_scatter", "sums, a shard at each member"},
      {WorkClass::all_to_all, "all_to_all", "a piece of each member at each member"},
      {WorkClass::broadcast, "broadcast", "one member's buffer at all members"},
      {WorkClass::message, "message", "sends and receives between two ranks"},
  });
}
inline constexpr std::size_t kWorkClasses = kNames<WorkClass>.size();

/// An Activity is one kernel, copy or exchange of a device.
struct Activity {
  std::string name;
  WorkClass of = WorkClass::stream;
  Time begin{0};
  Time end{0};
};

/// The activities of one rank. `steps`: that the trace says it has; 0: it does not say.
struct RankActivities {
  std::string file;
  std::vector<Activity> activities;
  std::int64_t steps = 0;
};

/// The class of a kernel by its name: first NCCL's (`nccl...AllReduce`), then the table of
/// step_times.cc, whose texts are parts of the names of cuBLAS, cuDNN, CUTLASS, FlashAttention,
/// Triton and PyTorch. `collective`: "Collective name" of PyTorch's profiler, if known, which tells
/// an all-to-all from a message.
WorkClass class_of(std::string_view kernel, std::string_view collective = {});

/// Reads the device's activities of a Kineto trace (torch.profiler's export_chrome_trace), kernels
/// of CUDA graphs too, and counts its steps by ProfilerStep annotations. Mistakes: no activities of
/// a device, times that are none.
Result<RankActivities> read_kineto_activities(const ConfigNode& trace);

/// KernelSum is the time of all kernels of one name.
struct KernelSum {
  WorkClass of = WorkClass::stream;
  Time time{0};
};
using KernelSums = std::map<std::string, KernelSum, std::less<>>;  ///< by name

/// Holds the times of one step on one rank, means over steps and ranks.
struct StepTimes {
  Time step{0};                                     ///< first begin to last end, over the steps
  Time idle{0};                                     ///< of it, what no activity covers
  std::array<Time, kWorkClasses> busy{};            ///< by class; what overlaps counts in each
  std::array<std::string, kWorkClasses> longest{};  ///< the name that takes most of each class
  KernelSums kernels{};                             ///< without copies and exchanges
  std::int64_t steps = 1;
  std::size_t ranks = 0;
};

/// Requires a rank, and activities of each. `steps` 0: as the first rank says, else 1.
StepTimes times_of(const std::vector<RankActivities>& ranks, std::int64_t steps);

/// The same of a run with spans. A kernel's span is shared among its operators by the time that
/// each takes alone. An exchange counts from when its rank was ready, as a kernel of NCCL's runs
/// while it waits for the others.
///
/// `like`: kernels whose name it has are of the class that they have there, others of a trace
/// (opaque operators) of that of their names.
StepTimes times_of(const WorkloadRun& run, const KernelSums& like = {});

struct ClassDifference {
  std::string_view name;  ///< of the class, or "idle"
  Time measured{0};
  Time simulated{0};
  double share = 0;  ///< of the sum of absolute differences
  std::string longest_measured;
  std::string advice;  ///< what to calibrate where it differs by over a tenth; else ""
};

/// ClassFactor says how much longer than simulated the kernels of one class took.
struct ClassFactor {
  std::string_view name;    ///< of the class
  double factor = 1;        ///< measured / simulated; 1 where one of them has none
  std::size_t kernels = 0;  ///< names of the other plan that are in this class
  std::size_t by_name = 0;  ///< of them, those that have a factor of their own
};

/// Rescaled is the step of another plan (rescale.h).
struct Rescaled {
  std::string fields{};  ///< of the plan, that were changed
  plan::Plan plan{};     ///< the other one
  Time simulated{0};     ///< the step of the other plan on the machine
  Time step{0};          ///< the same with every kernel as much longer as it was measured
  std::vector<ClassFactor> factors;
};

/// Classes that either has, the largest difference first. Classes overlap, so their differences do
/// not add up to the step's.
struct MeasuredComparison {
  std::string model;
  std::string machine;
  StepTimes measured;
  StepTimes simulated;
  std::vector<std::string> files;
  std::vector<ClassDifference> classes;
  std::optional<Rescaled> rescaled{};
};

MeasuredComparison compare_measured(StepTimes measured, StepTimes simulated);

}  // namespace orrery::study
