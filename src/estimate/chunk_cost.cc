// SPDX-License-Identifier: Apache-2.0
#include "estimate/chunk_cost.h"

#include <algorithm>

#include "workload/parallel/lower.h"

namespace orrery {
namespace {

constexpr std::int64_t kSampleStages = 4;
constexpr const char* kSampleLayers = "1,1,2,1";  // first, middle, middle of two layers, last
constexpr std::int64_t kFewLayers = 4;
constexpr std::int64_t kManyLayers = 8;
constexpr std::int64_t kSteadyMicrobatches = 3;  // from here on each one adds the same

Model with_layers(Model model, std::int64_t layers) {
  model.layers = layers;
  return model;
}

/// Templates of a program that assemble() makes first: forward, backward.
constexpr std::size_t kForward = 0;
constexpr std::size_t kBackward = 1;

class ChunkMeasure {
 public:
  ChunkMeasure(const Machine& machine, const Plan& key)
      : timer_(machine, RankLayout{{{Axis::tp, key.tp}}}, algorithms_of(key), key.host_dispatch) {}

  ChunkCost measure(const Program& program) {
    return {pass(program.templates[kForward]), pass(program.templates[kBackward])};
  }

  /// Kernels of a backward beside a collective over the same alone.
  double contention(const Program& program) {
    double alone = 0;
    double beside = 0;
    for (const TimedNode& node : timer_.time(program.templates[kBackward])) {
      if (node.kernels) {
        alone += to_seconds(node.work);
        beside += to_seconds(node.work) * node.contention;
      }
    }
    return alone > 0 ? beside / alone : 1;
  }

 private:
  PassCost pass(const Template& source) {
    const TimedTemplate nodes = timer_.time(source);
    PassCost cost{.work = makespan(nodes, false)};
    for (const TimedNode& node : nodes) {
      cost.issue += node.host_cost;
      cost.kernels += node.kernels ? node.work : Time(0);
    }
    synchronisation(nodes, cost);
    cost.latency = cost.issue > Time(0) ? makespan(nodes, true) : cost.work;
    return cost;
  }

  /// A wait of the host belongs to the end of the pass with fewer kernels on its other side.
  static void synchronisation(const TimedTemplate& nodes, PassCost& cost) {
    Time before{0};
    for (const TimedNode& node : nodes) {
      before += node.kernels ? node.work : Time(0);
      if (node.host_sync) {
        (before * 2 < cost.kernels ? cost.begins_synchronised : cost.ends_synchronised) = true;
      }
    }
  }

  NodeTimer timer_;
};

ChunkCost difference(const ChunkCost& more, const ChunkCost& less) {
  return more.with(less, -1);
}

/// All instances of one role, joined.
TimedTemplate whole_chain(const Workload& workload, NodeTimer& timer) {
  std::vector<TimedTemplate> templates;
  for (const Template& source : workload.programs[0].templates) {
    templates.push_back(timer.time(source));
  }
  TimedTemplate chain;
  for (std::int64_t i = 0; i < workload.source->length(0); ++i) {
    const auto instance = workload.source->issue(0, i);
    join(chain, templates[static_cast<std::size_t>(instance->template_index)]);
  }
  return chain;
}

Result<Time> whole_time(const Model& model, const Plan& plan, const Machine& machine) {
  auto workload = lower(model, plan);
  if (!workload) {
    return fail(std::move(workload.error()));
  }
  NodeTimer timer(machine, workload->layout, algorithms_of(plan), plan.host_dispatch);
  return makespan(whole_chain(*workload, timer), plan.host_dispatch > Time(0));
}

}  // namespace

AlgorithmChoice algorithms_of(const Plan& plan) {
  AlgorithmChoice choice;
  choice.fill(CollectiveAlgorithm::automatic);
  choice[static_cast<std::size_t>(Axis::tp)] = plan.tp_algorithm;
  choice[static_cast<std::size_t>(Axis::dp)] = plan.dp_algorithm;
  return choice;
}

Plan chunk_key(const Plan& plan) {
  Plan key = plan;
  key.pp = plan.pp > 1 ? kSampleStages : 1;
  key.dp = 1;
  key.schedule = Schedule::one_f_one_b;
  key.chunks = 1;
  key.global_batch = plan.microbatch;
  key.zero = 0;
  key.order = AxisOrder::tp_dp_pp;
  key.stage_layers.clear();
  key.overlap_grad_reduce = false;
  key.overlap_param_gather = false;
  key.bucket = Bytes(0);
  key.grad_reduce_type = DataType::fp32;
  key.dp_algorithm = CollectiveAlgorithm::automatic;
  return key;
}

Result<ChunkCosts> measure_chunks(const Model& model, const Plan& key, const Machine& machine) {
  ChunkMeasure measure(machine, key);
  ChunkCosts costs;
  if (key.pp > 1) {
    Plan plan = key;
    plan.stage_layers = kSampleLayers;
    const auto workload = lower(with_layers(model, 5), plan);
    if (!workload) {
      return fail(workload.error());
    }
    const std::vector<Program>& stages = workload->programs;
    costs.first = measure.measure(stages[0]);
    costs.middle = measure.measure(stages[1]);
    costs.layer = difference(measure.measure(stages[2]), costs.middle);
    costs.last = measure.measure(stages[3]);
    costs.contention = measure.contention(stages[1]);
    return costs;
  }
  const auto one = lower(with_layers(model, 1), key);
  const auto two = lower(with_layers(model, 2), key);
  if (!one || !two) {
    return fail(one ? two.error() : one.error());
  }
  costs.first = measure.measure(one->programs[0]);
  costs.layer = difference(measure.measure(two->programs[0]), costs.first);
  return costs;
}

bool needs_whole_step(const Plan& plan) {
  return plan.pp == 1 && plan.dp > 1 &&
         (plan.zero >= 2 || plan.overlap_grad_reduce || plan.overlap_param_gather);
}

Plan whole_step_key(const Plan& plan) {
  Plan key = plan;
  key.order = AxisOrder::tp_dp_pp;  // one stage: the same ranks in either order
  key.schedule = Schedule::one_f_one_b;
  key.global_batch =
      plan.dp * plan.microbatch * std::min(plan.microbatches(), kSteadyMicrobatches + 1);
  key.stage_layers.clear();
  return key;
}

Result<WholeStep> measure_whole_step(const Model& model, const Plan& key, const Machine& machine) {
  WholeStep step;
  const std::int64_t microbatches = std::min(key.microbatches(), kSteadyMicrobatches);
  for (const std::int64_t layers : {kFewLayers, kManyLayers}) {
    const Model sample = with_layers(model, layers);
    Plan plan = key;
    plan.global_batch = plan.dp * plan.microbatch * microbatches;
    const auto time = whole_time(sample, plan, machine);
    if (!time) {
      return fail(time.error());
    }
    (layers == kFewLayers ? step.few : step.many) = *time;
    if (key.microbatches() > microbatches) {
      const auto more = whole_time(sample, key, machine);
      if (!more) {
        return fail(more.error());
      }
      (layers == kFewLayers ? step.few_more : step.many_more) = *more - *time;
    }
  }
  return step;
}

Time step_time(const WholeStep& step, std::int64_t layers, std::int64_t microbatches) {
  const std::int64_t more = std::max<std::int64_t>(0, microbatches - kSteadyMicrobatches);
  const Time few = step.few + step.few_more * more;
  const Time many = step.many + step.many_more * more;
  const double share =
      static_cast<double>(layers - kFewLayers) / static_cast<double>(kManyLayers - kFewLayers);
  return few + (many - few) * share;
}

}  // namespace orrery
