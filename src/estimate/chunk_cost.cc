// SPDX-License-Identifier: Apache-2.0
#include "estimate/chunk_cost.h"

#include <algorithm>
#include <vector>

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

  /// Kernels of a backward beside communication over the same alone; `slowdown` says beside which.
  double contention(const Program& program, double TimedNode::*slowdown) {
    double alone = 0;
    double beside = 0;
    for (const TimedNode& node : timer_.time(program.templates[kBackward])) {
      if (node.kernels) {
        alone += to_seconds(node.work);
        beside += to_seconds(node.work) * node.*slowdown;
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

/// What the second of two layers adds. A layer's latency is its issue and what the device still has
/// to do when the last kernel is issued, which a chunk of one layer shows.
PassCost added(const PassCost& two, const PassCost& one) {
  const Time rest = one.latency - std::max(one.issue, one.work);
  PassCost layer{.work = two.work - one.work,
                 .latency = Time(0),
                 .issue = two.issue - one.issue,
                 .kernels = two.kernels - one.kernels};
  layer.latency = std::max(layer.work, layer.issue + std::max(Time(0), rest));
  return layer;
}

ChunkCost added(const ChunkCost& two, const ChunkCost& one) {
  return {added(two.forward, one.forward), added(two.backward, one.backward)};
}

/// Makespans of the instances of a single stage, joined.
class WholeRun {
 public:
  WholeRun(const Workload& workload, const Plan& plan, const Machine& machine)
      : source_(*workload.source), with_host_(plan.host_dispatch > Time(0)) {
    NodeTimer timer(machine, workload.layout, algorithms_of(plan), plan.host_dispatch);
    for (const Template& source : workload.programs[0].templates) {
      templates_.push_back(timer.time(source));
    }
  }

  /// Leaves out microbatch `without`, if there is such.
  Time time(std::int64_t without) const {
    TimedTemplate chain;
    for (std::int64_t i = 0; i + 1 < source_.length(0); ++i) {
      if (const auto instance = source_.issue(0, i); instance && instance->microbatch != without) {
        join(chain, templates_[static_cast<std::size_t>(instance->template_index)]);
      }
    }
    join(chain, templates_.back());
    return makespan(chain, with_host_);
  }

 private:
  const Source& source_;
  bool with_host_;
  std::vector<TimedTemplate> templates_;
};

}  // namespace

PassCost PassCost::with(const PassCost& each, std::int64_t n, bool before) const {
  PassCost sum = *this;
  sum.work += each.work * n;
  sum.issue += each.issue * n;
  sum.kernels += each.kernels * n;
  if (n <= 0) {
    sum.latency += std::max(each.work, each.issue) * n;
    return sum;
  }
  const bool waits = begins_synchronised || ends_synchronised;
  const Time more = each.latency + std::max(each.work, each.issue) * (n - 1);
  sum.latency = before ? std::max(more + work, each.issue * n + latency) : issue + more;
  if (!before || waits) {
    sum.latency = std::max(sum.latency, latency + each.work * n);
  }
  return sum;
}

PassCost PassCost::and_apart(const PassCost& each, std::int64_t n) const {
  PassCost sum = *this;
  sum.work += each.work * n;
  sum.latency += each.latency * n;
  sum.issue += each.issue * n;
  sum.kernels += each.kernels * n;
  return sum;
}

AlgorithmChoice algorithms_of(const Plan& plan) {
  AlgorithmChoice choice;
  choice.fill(CollectiveAlgorithm::automatic);
  choice[static_cast<std::size_t>(Axis::tp)] = plan.tp_algorithm;
  choice[static_cast<std::size_t>(Axis::dp)] = plan.dp_algorithm;
  return choice;
}

namespace {

/// Messages take no time in a chunk; how they are sent matters only where the host waits for them,
/// or the receiver gathers them.
void without_messages(Plan& key) {
  if (key.pp == 1 || !key.p2p_host_sync) {
    key.overlap_p2p = false;
    key.p2p_host_sync = false;
  }
  if (key.pp == 1 || key.tp == 1 || key.sequence_parallel) {
    key.pipeline_send = PipelineSend::whole;
  }
}

}  // namespace

Plan chunk_key(const Plan& plan) {
  Plan key = plan;
  key.pp = plan.pp > 1 ? kSampleStages : 1;
  key.dp = 1;
  key.schedule = Schedule::one_f_one_b;
  key.chunks = 1;
  key.global_batch = plan.microbatch;
  key.zero = 0;
  key.order = Plan{}.order;
  key.stage_layers.clear();
  key.overlap_grad_reduce = false;
  key.overlap_param_gather = false;
  key.bucket = Bytes(0);
  key.grad_reduce_type = DataType::fp32;
  key.dp_algorithm = CollectiveAlgorithm::automatic;
  without_messages(key);
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
    costs.layer = added(measure.measure(stages[2]), costs.middle);
    costs.last = measure.measure(stages[3]);
    costs.contention = measure.contention(stages[1], &TimedNode::contention);
    costs.message_contention = measure.contention(stages[1], &TimedNode::message_contention);
    return costs;
  }
  const auto one = lower(with_layers(model, 1), key);
  const auto two = lower(with_layers(model, 2), key);
  if (!one || !two) {
    return fail(one ? two.error() : one.error());
  }
  costs.first = measure.measure(one->programs[0]);
  costs.layer = added(measure.measure(two->programs[0]), costs.first);
  return costs;
}

bool needs_whole_step(const Plan& plan) {
  return plan.pp == 1 && plan.dp > 1 && (plan.overlap_grad_reduce || plan.overlap_param_gather);
}

Plan whole_step_key(const Plan& plan) {
  Plan key = plan;
  key.order = Plan{}.order;  // one stage: the same ranks in either order
  key.schedule = Schedule::one_f_one_b;
  key.global_batch =
      plan.dp * plan.microbatch * std::min(plan.microbatches(), kSteadyMicrobatches + 1);
  key.stage_layers.clear();
  without_messages(key);
  return key;
}

Result<WholeStep> measure_whole_step(const Model& model, const Plan& key, const Machine& machine) {
  WholeStep step;
  for (const std::int64_t layers : {kFewLayers, kManyLayers}) {
    const auto workload = lower(with_layers(model, layers), key);
    if (!workload) {
      return fail(workload.error());
    }
    const WholeRun run(*workload, key, machine);
    const bool steady = key.microbatches() > kSteadyMicrobatches;
    const Time time = run.time(steady ? 1 : -1);
    (layers == kFewLayers ? step.few : step.many) = time;
    if (steady) {
      (layers == kFewLayers ? step.few_more : step.many_more) = run.time(-1) - time;
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
