// SPDX-License-Identifier: Apache-2.0
#include "estimate/placement.h"

#include <algorithm>

#include "estimate/chunk_cost.h"
#include "machine/topology/link_map.h"
#include "workload/parallel/data_axes.h"
#include "workload/parallel/layout.h"
#include "workload/parallel/lower.h"
#include "workload/parallel/memory.h"

namespace orrery {
namespace {

constexpr std::size_t kFirst = 0;
constexpr std::size_t kMiddle = 1;
constexpr std::size_t kLast = 2;
constexpr std::int64_t kSampleReplicas = 2;
constexpr std::int64_t kSampleStages = 3;
constexpr std::int64_t kMostBuckets = 256;  // as the lowering

/// End of the step of one stage: of one layer, of two, and of one with twice the replicas.
struct Samples {
  const Template& one;
  const Template& two;
  const Template& wide;
};

FinishTemplates::Stage stage_of(const Samples& samples) {
  const Template& one = samples.one;
  FinishTemplates::Stage stage{.one = one, .operators = {}, .collectives = {}, .sharded = {}};
  for (std::size_t n = 0; n < one.nodes.size(); ++n) {
    stage.collectives.push_back(samples.two.nodes[n].bytes - one.nodes[n].bytes);
    for (std::size_t o = 0; o < one.nodes[n].operators.size(); ++o) {
      const Bytes bytes = one.nodes[n].operators[o].bytes;
      stage.operators.push_back(samples.two.nodes[n].operators[o].bytes - bytes);
      stage.sharded.push_back(samples.wide.nodes[n].operators[o].bytes < bytes);
    }
  }
  return stage;
}

bool is_gradient_reduction(const Node& node) {
  return node.axis == Axis::dp && node.collective != CollectiveKind::all_gather &&
         node.bytes > size_of(DataType::fp32);  // not the norm's single value
}

class FinishTimer {
 public:
  FinishTimer(const Plan& plan, const FinishTemplates& templates, const Machine& machine)
      : plan_(plan),
        templates_(templates),
        machine_(machine),
        timer_(machine, layout_of(plan), algorithms_of(plan), Time(0)) {}

  StageFinish finish(std::size_t role, std::int64_t layers) {
    StageFinish finish = segments(templates_.stages[role], layers - 1);
    if (plan_.dp > 1) {
      beside_passes(role, layers, finish);
      within_passes(layers, finish);
    }
    return finish;
  }

 private:
  StageFinish segments(const FinishTemplates::Stage& stage, std::int64_t more) {
    StageFinish finish;
    Time* segment = &finish.reduce;
    std::size_t next_operator = 0;
    for (std::size_t n = 0; n < stage.one.nodes.size(); ++n) {
      Node node = stage.one.nodes[n];
      for (const Operator& op : node.operators) {
        *segment += kernel(scaled(op, stage, next_operator++, more));
      }
      if (node.kind == Node::Kind::collective) {
        node.bytes += stage.collectives[n] * more;
        collective(node, finish, segment);
      }
    }
    return finish;
  }

  Operator scaled(Operator op, const FinishTemplates::Stage& stage, std::size_t number,
                  std::int64_t more) const {
    op.bytes += stage.operators[number] * more;
    if (stage.sharded[number]) {
      op.bytes = op.bytes * kSampleReplicas / plan_.dp;
    }
    return op;
  }

  Time kernel(const Operator& op) const { return kernel_time(op, machine_.device).alone; }

  void collective(const Node& node, StageFinish& finish, Time*& segment) {
    if (node.axis == Axis::embedding) {
      finish.embedding = timer_.time(node);
      segment = &finish.norm;
    } else if (node.axis == Axis::pp) {
      finish.sum = timer_.time(node);
      segment = &finish.update;
    } else if (is_gradient_reduction(node)) {
      *segment += in_buckets(node);
    } else {
      *segment += timer_.time(node);
    }
  }

  Time in_buckets(Node node) const {
    const Bytes bucket = bucket_size(plan_);
    const std::int64_t wanted = bucket == Bytes(0) ? 1 : (node.bytes / bucket.value()).value();
    const std::int64_t buckets = std::clamp<std::int64_t>(wanted, 1, kMostBuckets);
    node.bytes = node.bytes / buckets;
    return timer_.time(node) * buckets;
  }

  Time over_dp(CollectiveKind kind, Bytes bytes) const {
    if (bytes == Bytes(0)) {
      return Time(0);
    }
    Node node;
    node.axis = Axis::dp;
    node.collective = kind;
    node.bytes = bytes;
    return timer_.time(node);
  }

  void beside_passes(std::size_t role, std::int64_t layers, StageFinish& finish) const {
    if (plan_.overlap_grad_reduce) {
      reductions(role, layers, finish);
    }
    if (plan_.overlap_param_gather) {
      finish.gather = over_dp(CollectiveKind::all_gather, templates_.layer_parameters);
      finish.end_gather = over_dp(CollectiveKind::all_gather, templates_.end_parameters[role]);
    }
  }

  /// ZeRO 2 and 3 without overlap, which have a single stage.
  void within_passes(std::int64_t layers, StageFinish& finish) const {
    if (plan_.zero == 3) {
      const auto gather = [&](Bytes bytes) { return over_dp(CollectiveKind::all_gather, bytes); };
      finish.forward = gather(templates_.layer_parameters) * layers +
                       gather(templates_.end_parameters[kFirst]) +
                       gather(templates_.end_parameters[kLast]);
      finish.backward = finish.forward;
    }
    if (plan_.zero >= 2) {
      Node node;
      node.axis = Axis::dp;
      node.collective = CollectiveKind::reduce_scatter;
      node.bytes = templates_.layer_gradient * layers + templates_.end_gradient[kFirst] +
                   templates_.end_gradient[kLast];
      finish.backward += in_buckets(node);
    }
  }

  void reductions(std::size_t role, std::int64_t layers, StageFinish& finish) const {
    const CollectiveKind kind =
        plan_.zero == 0 ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter;
    const Bytes layer = templates_.layer_gradient;
    const Bytes end = templates_.end_gradient[role];
    std::int64_t blocks = 1;  // of a bucket
    if (plan_.bucket > layer) {
      blocks = (plan_.bucket.value() + layer.value() - 1) / layer.value();
      blocks = std::clamp<std::int64_t>(blocks, 1, std::max<std::int64_t>(1, layers));
    }
    const std::int64_t full = layers / blocks;
    const Time bucket = over_dp(kind, layer * blocks);
    const Time rest = over_dp(kind, layer * (layers % blocks) + end);
    finish.hidden = bucket * full + rest;
    finish.last_bucket = role == kFirst || layers % blocks > 0 ? rest : bucket;
  }

  const Plan& plan_;
  const FinishTemplates& templates_;
  const Machine& machine_;
  NodeTimer timer_;
};

std::size_t role_of(std::size_t stage, const Plan& plan) {
  if (stage == 0) {
    return kFirst;
  }
  return static_cast<std::int64_t>(stage) + 1 == plan.pp ? kLast : kMiddle;
}

std::vector<Boundary> boundaries_of(const Plan& plan, const Machine& machine) {
  std::vector<Boundary> boundaries;
  const LinkMap topology(machine.network);
  const std::int64_t stride = layout_of(plan).stride(Axis::pp);
  for (std::int64_t stage = 0; stage < plan.pp; ++stage) {
    const Route route = topology.message(stage * stride, (stage + 1) % plan.pp * stride);
    boundaries.push_back({route.latency + route.overhead, route.seconds_per_byte});
  }
  return boundaries;
}

}  // namespace

Plan finish_key(const Plan& plan) {
  Plan key = chunk_key(plan);
  key.pp = plan.pp > 1 ? kSampleStages : 1;
  key.microbatch = 1;
  key.recompute = Recompute::none;
  key.pipeline_send = PipelineSend::whole;
  key.overlap_p2p = false;
  key.fused_grad_accumulation = false;
  key.attention = AttentionKernel::unfused;
  key.fused_kernels = true;
  key.host_dispatch = Time(0);
  key.p2p_host_sync = false;
  key.tp_algorithm = CollectiveAlgorithm::automatic;
  key.sequence = 0;
  key.zero = plan.zero;
  key.dp = std::min(plan.dp, kSampleReplicas);
  key.global_batch = key.dp;
  key.grad_reduce_type = plan.grad_reduce_type;
  key.overlap_grad_reduce = plan.overlap_grad_reduce;
  key.overlap_param_gather = plan.overlap_param_gather;
  return key;
}

namespace {

/// The step's lowering for few layers in every stage, as many replicas as the key says or others.
Result<Workload> sample(const Model& model, const Plan& key, std::int64_t layers,
                        std::int64_t replicas) {
  Model few = model;
  few.layers = key.pp * layers;
  Plan plan = key;
  plan.dp = plan.global_batch = replicas;
  return lower(few, plan, {.skip = {"fuse"}, .observe = {}});
}

void set_sizes(const Model& model, const Plan& key, FinishTemplates& result) {
  const BlockMemories blocks = block_memories(model, key);
  const Bytes gradient = size_of(key.grad_reduce_type);
  const Bytes parameter = size_of(key.compute_type);
  const std::int64_t embedding = blocks.blocks[kEmbeddingBlock].parameters;
  const std::int64_t head =
      blocks.blocks[kHeadBlock].parameters + (key.pp > 1 ? blocks.tied_copy : 0);
  const std::int64_t layer = blocks.blocks[kFirstLayerBlock].parameters;
  result.layer_gradient = gradient * layer;
  result.layer_parameters = parameter * layer;
  result.end_gradient = {gradient * embedding, Bytes(0), gradient * head};
  result.end_parameters = {parameter * embedding, Bytes(0), parameter * head};
}

}  // namespace

Result<FinishTemplates> finish_templates(const Model& model, const Plan& key) {
  const auto one = sample(model, key, 1, key.dp);
  const auto two = sample(model, key, 2, key.dp);
  const bool shards = key.dp > 1 && key.zero > 0;
  const auto wider = shards ? sample(model, key, 1, key.dp * 2) : Result<Workload>();
  const auto& wide = shards ? wider : one;
  if (!one || !two || !wide) {
    return fail(!one ? one.error() : !two ? two.error() : wide.error());
  }
  FinishTemplates result;
  for (std::size_t stage = 0; stage < one->programs.size(); ++stage) {
    const auto finish = [stage](const Result<Workload>& workload) -> const Template& {
      return workload->programs[stage].templates.back();
    };
    result.stages[stage] = stage_of({finish(one), finish(two), finish(wide)});
  }
  set_sizes(model, key, result);
  return result;
}

Plan placement_key(const Plan& plan) {
  Plan key = finish_key(plan);
  key.pp = plan.pp;
  key.dp = plan.dp;
  key.order = plan.order;
  key.tp_algorithm = plan.tp_algorithm;
  key.dp_algorithm = plan.dp_algorithm;
  key.bucket = plan.bucket;
  key.stage_layers = plan.stage_layers;
  if (!plan.stage_layers.empty()) {  // else every split into chunks gives the same stages
    key.schedule = plan.schedule;
    key.chunks = plan.chunks;
  }
  return key;
}

Result<Placement> place(const Model& model, const Plan& key, const FinishTemplates& finish,
                        const Machine& machine) {
  const auto split = split_layers(model, key);
  if (!split) {
    return fail(split.error());
  }
  Placement placement{.boundaries = boundaries_of(key, machine), .layers = {}, .finish = {}};
  FinishTimer timer(key, finish, machine);
  for (std::size_t stage = 0; stage < split->size(); ++stage) {
    std::int64_t layers = 0;
    for (const std::int64_t chunk : (*split)[stage]) {
      layers += chunk;
    }
    const std::size_t role = role_of(stage, key);
    const bool as_before = role == kMiddle && stage > 1 && placement.layers.back() == layers;
    placement.layers.push_back(layers);
    placement.finish.push_back(as_before ? placement.finish.back() : timer.finish(role, layers));
  }
  return placement;
}

}  // namespace orrery
