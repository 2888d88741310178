// SPDX-License-Identifier: Apache-2.0
#include "study/step_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/collect.h"
#include "base/letters.h"
#include "base/reader.h"
#include "machine/compute/compute_model.h"
#include "machine/device_groups.h"

namespace orrery::study {
namespace {

constexpr double kMicrosecond = 1e-6;
constexpr double kMost = 1e12;  // microseconds from the first activity of a trace: 11 days
constexpr std::string_view kIdle = "idle";
constexpr double kNotable = 0.1;  // relative difference from which a class gets an advice

struct Part {
  std::string_view text;  ///< in small letters
  WorkClass of;
};
/// The first that a name has counts: names of attention kernels also have "gemm".
constexpr auto kExchangeParts = std::to_array<Part>({
    {"reducescatter", WorkClass::reduce_scatter},
    {"reduce_scatter", WorkClass::reduce_scatter},
    {"allreduce", WorkClass::all_reduce},
    {"all_reduce", WorkClass::all_reduce},
    {"allgather", WorkClass::all_gather},
    {"all_gather", WorkClass::all_gather},
    {"alltoall", WorkClass::all_to_all},
    {"all_to_all", WorkClass::all_to_all},
    {"broadcast", WorkClass::broadcast},
    {"send", WorkClass::message},
    {"recv", WorkClass::message},
});
constexpr auto kKernelParts = std::to_array<Part>({
    {"flash", WorkClass::attention},
    {"fmha", WorkClass::attention},
    {"attention", WorkClass::attention},
    {"attn", WorkClass::attention},
    {"adam", WorkClass::optimizer},
    {"multi_tensor_apply", WorkClass::optimizer},
    {"multitensorapply", WorkClass::optimizer},
    {"lamb", WorkClass::optimizer},
    {"optimizer", WorkClass::optimizer},
    {"memcpy", WorkClass::copy},
    {"memset", WorkClass::copy},
    {"gemm", WorkClass::product},
    {"gemv", WorkClass::product},
    {"nvjet", WorkClass::product},
    {"cutlass", WorkClass::product},
    {"xmma", WorkClass::product},
    {"matmul", WorkClass::product},
    {"splitk", WorkClass::product},
    {"cijk_", WorkClass::product},
});

template <std::size_t kSize>
const Part* part_of(const std::array<Part, kSize>& parts, const std::string& name) {
  const auto* const found = std::ranges::find_if(
      parts, [&](const Part& part) { return name.find(part.text) != std::string::npos; });
  return found == parts.end() ? nullptr : found;
}

WorkClass class_of_operator(const graph::Operator& op) {
  switch (op.kind) {
    case graph::OperatorKind::gemm:
    case graph::OperatorKind::grouped_gemm:
      return WorkClass::product;
    case graph::OperatorKind::attention:
      return WorkClass::attention;
    case graph::OperatorKind::optimizer:
      return WorkClass::optimizer;
    case graph::OperatorKind::opaque:
      return class_of(op.name);
    default:
      return WorkClass::stream;
  }
}

WorkClass class_of(graph::CollectiveKind kind) {
  switch (kind) {
    case graph::CollectiveKind::all_reduce:
      return WorkClass::all_reduce;
    case graph::CollectiveKind::all_gather:
      return WorkClass::all_gather;
    case graph::CollectiveKind::reduce_scatter:
      return WorkClass::reduce_scatter;
    case graph::CollectiveKind::all_to_all:
      return WorkClass::all_to_all;
    case graph::CollectiveKind::broadcast:
      return WorkClass::broadcast;
    case graph::CollectiveKind::send_recv:
      return WorkClass::message;
  }
  return WorkClass::message;
}

std::string advice_for(WorkClass of) {
  switch (of) {
    case WorkClass::product:
      return "products by shape: tools/measure_gpu.py, orrery calibrate gemm";
    case WorkClass::attention:
      return "attention by shape: tools/measure_gpu.py, orrery calibrate attention";
    case WorkClass::optimizer:
    case WorkClass::stream:
      return "kernels that stream: orrery calibrate memory; with many more of them than simulated, "
             "the plan's fusion";
    case WorkClass::copy:
      return "memory tiers of the machine file; what the plan offloads";
    case WorkClass::message:
      return "messages: orrery calibrate collectives with send_recv; waits for a late rank count "
             "too";
    default:
      return "collectives by size: nccl-tests, orrery calibrate collectives; waits for a late rank "
             "count too";
  }
}

/// Kernels of a plan's Chakra traces are named PHASE/KERNEL.
std::string kernel_name(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? name : name.substr(slash + 1);
}

bool is_kernel(WorkClass of) {
  return of < WorkClass::copy;
}

/// Sums one rank's activities.
class RankSum {
 public:
  void add_kernel(const std::string& name, WorkClass of, Time takes) {
    kernels_.try_emplace(name, KernelSum{of}).first->second.time += takes;
  }

  /// `takes` of it counts as the class's.
  void add(WorkClass of, const std::string& name, Time begin, Time end, Time takes) {
    const auto row = static_cast<std::size_t>(of);
    busy_[row] += takes;
    names_[row][name] += takes;
    intervals_.emplace_back(begin, end);
  }

  void add_to(StepTimes& times, std::array<std::map<std::string, Time>, kWorkClasses>& names) {
    std::ranges::sort(intervals_);
    Time covered{0};
    Time end = intervals_.empty() ? Time(0) : intervals_.front().first;
    const Time first = end;
    for (const auto& [from, to] : intervals_) {
      covered += std::max(Time(0), to - std::max(from, end));
      end = std::max(end, to);
    }
    times.step += end - first;
    times.idle += end - first - covered;
    for (const auto& [name, sum] : kernels_) {
      times.kernels.try_emplace(name, KernelSum{sum.of}).first->second.time += sum.time;
    }
    for (std::size_t row = 0; row < kWorkClasses; ++row) {
      times.busy[row] += busy_[row];
      for (const auto& [name, takes] : names_[row]) {
        names[row][name] += takes;
      }
    }
  }

 private:
  std::array<Time, kWorkClasses> busy_{};
  std::array<std::map<std::string, Time>, kWorkClasses> names_;
  KernelSums kernels_;
  std::vector<std::pair<Time, Time>> intervals_;
};

StepTimes mean_of(std::vector<RankSum>& sums, std::int64_t steps) {
  StepTimes times{.steps = steps, .ranks = sums.size()};
  std::array<std::map<std::string, Time>, kWorkClasses> names;
  for (RankSum& sum : sums) {
    sum.add_to(times, names);
  }
  const std::int64_t counted = std::ssize(sums) * steps;
  times.step = times.step / counted;
  times.idle = times.idle / counted;
  for (auto& [name, sum] : times.kernels) {
    sum.time = sum.time / counted;
  }
  for (std::size_t row = 0; row < kWorkClasses; ++row) {
    times.busy[row] = times.busy[row] / counted;
    const auto most =
        std::ranges::max_element(names[row], {}, [](const auto& name) { return name.second; });
    times.longest[row] = most == names[row].end() ? "" : most->first;
  }
  return times;
}

void add_kernels(const WorkloadRun& run, const simulate::Span& span, const graph::Node& node,
                 const KernelSums& like, RankSum& sum) {
  const machine::Machine& machine = run.machine;
  const compute::Device& device =
      machine.parts.empty() ? machine.device
                            : machine.parts[machine::device_group_of(machine, span.rank)].device;
  Time alone{0};
  for (const graph::Operator& op : node.operators) {
    alone += compute::lone_kernel_time(op, device);
  }
  for (const graph::Operator& op : node.operators) {
    const double share =
        alone > Time(0) ? to_seconds(compute::lone_kernel_time(op, device)) / to_seconds(alone) : 0;
    const Time takes = (span.end - span.begin) * share;
    const std::string name = kernel_name(op.name);
    const auto known = like.find(name);
    const WorkClass of = known != like.end() ? known->second.of : class_of_operator(op);
    sum.add(of, op.name, span.begin, span.end, takes);
    sum.add_kernel(name, of, takes);
  }
}

}  // namespace

WorkClass class_of(std::string_view kernel, std::string_view collective) {
  const std::string name = lower_case(kernel);
  if (!collective.empty() || name.starts_with("nccl") || name.starts_with("rccl")) {
    const Part* const named = part_of(kExchangeParts, lower_case(collective));
    const Part* const part = named != nullptr ? named : part_of(kExchangeParts, name);
    return part != nullptr ? part->of : WorkClass::message;
  }
  const Part* const part = part_of(kKernelParts, name);
  return part != nullptr ? part->of : WorkClass::stream;
}

Result<RankActivities> read_kineto_activities(const ConfigNode& trace) {
  Error mistakes;
  RankActivities rank{.file = trace.file(), .activities = {}};
  std::set<std::string> steps;
  double origin = 0;  // times since 1970 in microseconds leave no room for fractions
  const ConfigNode* const events = trace.find("traceEvents");
  const auto text_of = [](const ConfigNode* node) { return node != nullptr ? node->text : ""; };
  for (const ConfigNode& event : events != nullptr ? events->items : std::vector<ConfigNode>()) {
    const std::string category = lower_case(text_of(event.find("cat")));
    const std::string name = text_of(event.find("name"));
    if (name.starts_with("ProfilerStep")) {
      steps.insert(name);
    }
    const bool copies = category == "gpu_memcpy" || category == "gpu_memset" ||
                        category == "memcpy" || category == "memset";
    if (!copies && category != "kernel") {
      continue;
    }
    const auto begin = parse_number(text_of(event.find("ts")));
    const auto length = parse_number(text_of(event.find("dur")));
    if (!begin || !length || !(*length >= 0) || !(*length < kMost) ||
        !(std::abs(*begin - (rank.activities.empty() ? *begin : origin)) < kMost)) {
      if (mistakes.empty()) {
        mistakes.add({event.where(), "ts, dur", text_of(event.find("dur")),
                      "microseconds of '" + name + "', not weeks from the first"});
      }
      continue;
    }
    const ConfigNode* const args = event.find("args");
    const std::string collective =
        args != nullptr ? text_of(args->find("Collective name")) : std::string();
    origin = rank.activities.empty() ? *begin : origin;
    rank.activities.push_back({name, copies ? WorkClass::copy : class_of(name, collective),
                               from_seconds(kMicrosecond * (*begin - origin)),
                               from_seconds(kMicrosecond * (*begin - origin + *length))});
  }
  rank.steps = static_cast<std::int64_t>(steps.size());
  if (mistakes.empty() && rank.activities.empty()) {
    mistakes.add(
        {trace.file(),
         "traceEvents",
         {},
         "found none, expected activities of a device (cat kernel, gpu_memcpy or gpu_memset), as "
         "torch.profiler writes them with ProfilerActivity.CUDA"});
  }
  return or_mistakes(std::move(rank), std::move(mistakes));
}

StepTimes times_of(const std::vector<RankActivities>& ranks, std::int64_t steps) {
  std::vector<RankSum> sums(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (const Activity& each : ranks[i].activities) {
      sums[i].add(each.of, each.name, each.begin, each.end, each.end - each.begin);
      if (is_kernel(each.of)) {
        sums[i].add_kernel(each.name, each.of, each.end - each.begin);
      }
    }
  }
  return mean_of(sums, steps > 0 ? steps : std::max<std::int64_t>(ranks.front().steps, 1));
}

StepTimes times_of(const WorkloadRun& run, const KernelSums& like) {
  std::map<std::int64_t, RankSum> by_rank;
  for (const simulate::Span& span : run.timeline.spans) {
    const bool receives = span.kind == graph::Node::Kind::receive;
    const simulate::Span& own = receives ? run.timeline.spans[span.cause] : span;
    const graph::Node& node =
        run.workload.shape(run.workload.role_of(own.rank), {.template_index = own.template_index})
            .nodes[static_cast<std::size_t>(own.node)];
    RankSum& sum = by_rank[span.rank];
    if (span.kind == graph::Node::Kind::compute) {
      add_kernels(run, span, node, like, sum);
    } else if (span.kind != graph::Node::Kind::wait && span.kind != graph::Node::Kind::host) {
      const bool copies = span.kind == graph::Node::Kind::copy;
      const bool gathers = span.kind == graph::Node::Kind::collective;
      const Time begin = gathers ? std::min(span.ready, span.begin) : span.begin;
      const WorkClass of = copies    ? WorkClass::copy
                           : gathers ? class_of(node.collective)
                                     : WorkClass::message;
      sum.add(of, node.name, begin, span.end, span.end - begin);
    }
  }
  std::vector<RankSum> sums;
  for (auto& [rank, sum] : by_rank) {
    sums.push_back(std::move(sum));
  }
  StepTimes times = mean_of(sums, 1);
  times.idle += run.timeline.step_time - times.step;
  times.step = run.timeline.step_time;
  return times;
}

MeasuredComparison compare_measured(StepTimes measured, StepTimes simulated) {
  MeasuredComparison all;
  all.measured = std::move(measured);
  all.simulated = std::move(simulated);
  const auto add = [&](std::string_view name, Time before, Time after, std::string longest,
                       std::string advice) {
    if (before > Time(0) || after > Time(0)) {
      const double off = std::abs(to_seconds(after - before));
      if (before <= Time(0)) {
        advice = "the plan has what the run has not, or its kernels' names do not tell";
      } else if (after <= Time(0) && name != kIdle) {
        advice = "the run has what the plan has not";
      } else if (off <= kNotable * to_seconds(before)) {
        advice.clear();
      }
      all.classes.push_back({name, before, after, off, std::move(longest), std::move(advice)});
    }
  };
  for (std::size_t row = 0; row < kWorkClasses; ++row) {
    const auto of = static_cast<WorkClass>(row);
    add(name_of(of), all.measured.busy[row], all.simulated.busy[row], all.measured.longest[row],
        advice_for(of));
  }
  add(kIdle, all.measured.idle, all.simulated.idle, "",
      "the host: host_dispatch of the machine file; bubbles: the schedule and its microbatches");
  double sum = 0;
  for (const ClassDifference& each : all.classes) {
    sum += each.share;
  }
  for (ClassDifference& each : all.classes) {
    each.share = sum > 0 ? each.share / sum : 0;
  }
  std::ranges::stable_sort(all.classes, std::greater<>(), &ClassDifference::share);
  return all;
}

}  // namespace orrery::study
