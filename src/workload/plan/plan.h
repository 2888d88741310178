// SPDX-License-Identifier: Apache-2.0
/// A strategy as data: how a model is spread over devices and run. What it means is in the
/// other headers of this folder; which work it makes, in workload/parallel.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/config_node.h"
#include "base/fields.h"
#include "base/names.h"
#include "base/result.h"
#include "base/units.h"
#include "collective/algorithm_name.h"
#include "graph/operator.h"
#include "workload/plan/choices.h"
#include "workload/zoo/architecture.h"

namespace orrery::plan {

struct Plan {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  std::int64_t cp = 1;
  std::int64_t ep = 1;
  std::int64_t etp = 0;  ///< tensor-parallel degree inside an expert; 0 = tp
  bool sequence_parallel = false;
  Schedule schedule = Schedule::one_f_one_b;
  std::int64_t chunks = 1;        ///< v, model chunks per device (interleaved, zb-v ...)
  std::int64_t microbatch = 1;    ///< sequences
  std::int64_t global_batch = 1;  ///< sequences
  std::int64_t sequence = 0;      ///< tokens; 0 = those of the model's pre-training
  ContextExchange cp_exchange = ContextExchange::p2p;
  std::int64_t cp_a2a = 1;  ///< of a2a+p2p: ranks of the all-to-all
  MoeDispatch moe_dispatch = MoeDispatch::all_to_all;
  ExpertGemms expert_gemms = ExpertGemms::grouped;
  double moe_capacity = 0;   ///< capacity factor; 0 = dropless
  double moe_imbalance = 1;  ///< tokens of the busiest expert rank / mean
  double moe_spread = 0;  ///< standard deviation of experts' loads / mean; the busiest rank counts
  OverlapExperts overlap_ep = OverlapExperts::off;  ///< what token exchange runs beside
  std::int64_t zero = 0;                            ///< ZeRO stage 0-3
  /// Ranks over which ZeRO splits parameters, gradients and optimizer states; 0 = all of dp x cp.
  std::int64_t shard_params = 0;
  std::int64_t shard_grads = 0;
  std::int64_t shard_optimizer = 0;
  Optimizer optimizer = Optimizer::adam;
  DataParallelUpdate data_parallel_update = DataParallelUpdate::every_step;
  std::int64_t local_steps = 1;         ///< tau, steps of a round
  bool shard_outer = false;             ///< workers share the outer optimizer's states
  bool quantized_gather = false;        ///< ZeRO 3 gathers blocks of 8-bit integers (qwZ)
  bool quantized_reduce = false;        ///< ZeRO exchanges blocks of 4-bit integers (qgZ)
  std::int64_t quantized_block = 2048;  ///< elements with one scale, of both
  std::int64_t secondary_shard =
      0;                        ///< ranks that share a second copy for backward (hpZ); 0 = none
  std::int64_t reduce_hop = 0;  ///< ranks of quantized_reduce's first hop; 0 = secondary_shard
  bool reshard_after_forward = true;  ///< ZeRO 3: parameters are gathered again for backward
  Recompute recompute = Recompute::none;
  std::string recompute_modules{};    ///< "norm,mlp": operators of a layer to recompute as well
  std::int64_t recompute_layers = 0;  ///< per chunk, from its first; 0 = all
  Offload offload_optimizer = Offload::none;
  Offload offload_params = Offload::none;  ///< of parameters and their gradients; none or remote
  bool pool_collectives = false;   ///< remote memory's switches gather these and add them up
  double offload_activations = 0;  ///< share of the layers' kept activations that goes to the host
  std::string order = "tp-cp-dp-pp";
  std::string
      stage_layers{};  ///< "12,13,13,10": layers per stage (chunks in model order); "" = even
  std::string batch_shares{};  ///< "12*8,4*8": microbatches of every replica (shares.h); "" = even
  std::string parts{};     ///< "a100,h100": parts of the machine in the order of ranks; "" = all
  std::string strategy{};  ///< file of the forms of every operator (`orrery spmd --save`) on dp
                           ///< devices, in place of the other degrees; "" = none
  PipelineSend pipeline_send = PipelineSend::whole;
  std::int64_t tp_chunks = 1;  ///< pieces of a tp collective that run beside its GEMM
  TensorOverlap overlap_tensor = TensorOverlap::none;  ///< of a product and the sum behind it
  bool overlap_tp = true;             ///< reductions of input gradients run beside weight gradients
  bool overlap_p2p = false;           ///< compute does not wait for its own sends
  bool overlap_grad_reduce = false;   ///< gradient buckets reduce during the last backward
  bool overlap_param_gather = false;  ///< ZeRO parameter gathers overlap with compute
  std::int64_t bucket_parameters = 0;           ///< of a gradient bucket, at least; 0 = by `bucket`
  std::int64_t bucket_parameters_per_rank = 0;  ///< of dp x cp, at least
  Bytes bucket{0};  ///< gradient bucket size; 0 = one per layer with overlap, else one buffer,
                    ///< which holds at most 5e8 elements with zero 2 and 3
  graph::DataType compute_type = graph::DataType::bf16;
  Quantization quantization = Quantization::none;
  std::int64_t unquantized_start_layers = 0;  ///< whose GEMMs stay in compute_type
  std::int64_t unquantized_end_layers = 0;
  std::string unquantized_modules{};  ///< "attention,mtp": GEMMs of every layer that do
  bool quantized_params = false;      ///< ZeRO gathers parameters in the quantised type
  graph::DataType master_type =
      graph::DataType::fp32;  ///< of the optimizer's copy of the parameters
  graph::DataType moment_type = graph::DataType::fp32;  ///< of Adam's two moments
  std::int64_t lora_rank = 0;  ///< r of low-rank adapters, all else frozen; 0 = train all
  FrozenType frozen_type = FrozenType::compute_type;
  std::string lora_targets = "all";  ///< what has adapters: "attention_qkv,mlp"
  double lora_dropout = 0;           ///< of an adapter's input; 0 = no such kernel
  std::string documents{};  ///< "4096,2048,2048": lengths packed into one sequence; "" = one
  graph::DataType grad_type = graph::DataType::fp32;         ///< gradient accumulation buffer
  graph::DataType grad_reduce_type = graph::DataType::fp32;  ///< on the wire
  bool free_gradients = false;  ///< gradients exist from backward to update alone (set_to_none)
  bool master_params = false;   ///< parameters are the optimizer's; passes read copies of them
  bool autocast = false;        ///< the residual stream is fp32; copies live until backward
  Autograd autograd = Autograd::engine;
  bool fused_grad_accumulation = false;  ///< weight-gradient GEMM adds into the buffer itself
  zoo::AttentionKernel attention = zoo::AttentionKernel::unfused;
  bool fused_kernels = true;
  bool fused_conversions = false;    ///< activations write the next product's operand in its type
  bool fused_cross_entropy = false;  ///< loss and its gradient in one pass over the logits
  bool fuse_communication = false;   ///< sums that leave a stage become shards (collective/layout)
  bool persistent_norm = true;       ///< norms keep a row in registers, however long it is
  collective::CollectiveAlgorithm tp_algorithm = collective::CollectiveAlgorithm::automatic;
  collective::CollectiveAlgorithm dp_algorithm = collective::CollectiveAlgorithm::automatic;
  std::int64_t vocab_multiple = 128;  ///< the vocabulary is padded to a multiple of this x tp
  Time host_dispatch{0};              ///< host time to issue one kernel
  CudaGraphs cuda_graphs = CudaGraphs::none;
  std::int64_t batch_kernels = 0;  ///< that prepare tokens and masks before every forward pass
  bool host_sync = false;  ///< the host waits for every forward and backward (timers of Megatron)
  bool p2p_host_sync = false;  ///< the host waits for pipeline messages (Megatron before 2023)
  Clocks clocks = Clocks::sustained;
  std::string framework{};  ///< "torchtitan@2024-12": what its runs have (framework.h); "" = none
  std::int64_t as_of = 0;   ///< year whose habits fill what is left open (defaults.h); 0 = today

  template <class V>
  static void fields(V&& visit) {
    degree_fields(visit);
    memory_fields(visit);
    kernel_fields(visit);
  }

  friend bool operator==(const Plan&, const Plan&) = default;

  std::int64_t devices() const { return (Bytes(tp) * cp * pp * dp).value(); }  ///< saturates
  /// Returns the microbatches per replica; with batch_shares their mean, rounded down.
  std::int64_t microbatches() const { return global_batch / (dp * microbatch); }

 private:
  template <class V>
  static void degree_fields(V& visit) {
    visit("tp", &Plan::tp, "tensor-parallel degree");
    visit("pp", &Plan::pp, "pipeline-parallel degree (stages)");
    visit("dp", &Plan::dp, "data-parallel degree");
    visit("cp", &Plan::cp, "context-parallel degree (parts of each sequence)");
    visit("ep", &Plan::ep, "expert-parallel degree; divides tp x cp x dp / etp");
    visit("etp", &Plan::etp, "tensor-parallel degree of an expert; 0 = tp");
    visit("sequence_parallel", &Plan::sequence_parallel, "split norms and dropout over tp too");
    visit("schedule", &Plan::schedule, "pipeline schedule");
    visit("chunks", &Plan::chunks,
          "model chunks per device (schedule interleaved, zb-v, v-half, v-min)");
    visit("microbatch", &Plan::microbatch, "sequences per microbatch and replica");
    visit("global_batch", &Plan::global_batch, "sequences per step over all replicas");
    visit("sequence", &Plan::sequence,
          "tokens per sequence; 0 = as in the model's pre-training, or its maximum");
    visit("cp_exchange", &Plan::cp_exchange, "how context-parallel ranks exchange keys and values");
    visit("cp_a2a", &Plan::cp_a2a, "ranks of the all-to-all in cp_exchange a2a+p2p");
    visit("moe_dispatch", &Plan::moe_dispatch, "how tokens reach their experts");
    visit("expert_gemms", &Plan::expert_gemms, "what multiplies the experts' matrices");
    visit("moe_capacity", &Plan::moe_capacity, "expert capacity factor; 0 = dropless");
    visit("moe_imbalance", &Plan::moe_imbalance, "tokens of the busiest expert rank over the mean");
    visit("moe_spread", &Plan::moe_spread, "standard deviation of experts' loads over their mean");
    visit("overlap_ep", &Plan::overlap_ep, "what the exchange of tokens runs beside");
  }
  template <class V>
  static void memory_fields(V& visit) {
    visit("zero", &Plan::zero, "ZeRO stage: 0 none, 1 optimizer, 2 + gradients, 3 + parameters");
    visit("shard_params", &Plan::shard_params, "ranks that share parameters (zero 3); 0 = dp x cp");
    visit("shard_grads", &Plan::shard_grads, "ranks that share gradients (zero 2, 3); 0 = dp x cp");
    visit("shard_optimizer", &Plan::shard_optimizer, "ranks that share optimizer states; 0 = all");
    update_fields(visit);
    visit("reshard_after_forward", &Plan::reshard_after_forward,
          "zero 3 gathers parameters again for backward");
    visit("recompute", &Plan::recompute, "activation recompute");
    visit("recompute_modules", &Plan::recompute_modules,
          "comma-separated operators or modules of a layer to recompute as well");
    visit("recompute_layers", &Plan::recompute_layers, "layers per chunk to recompute; 0 = all");
    visit("offload_optimizer", &Plan::offload_optimizer, "where optimizer states live");
    visit("offload_params", &Plan::offload_params,
          "where parameters and gradients live: none, remote");
    visit("pool_collectives", &Plan::pool_collectives,
          "remote memory's switches gather parameters and add gradients up");
    visit("offload_activations", &Plan::offload_activations,
          "share of kept activations that goes to host memory");
    visit("order", &Plan::order, "order of parallel axes over ranks, innermost first");
    visit("stage_layers", &Plan::stage_layers,
          "layers per stage, comma-separated; \"\" even; auto even with the ends counted");
    visit("batch_shares", &Plan::batch_shares,
          "microbatches of every replica, as 12*8,4*8; \"\" even; auto by what its devices do");
    visit("parts", &Plan::parts, "parts of a mixed machine that ranks fill, in order; \"\" all");
    visit(
        "strategy", &Plan::strategy,
        "program of `orrery spmd --save` in place of the other degrees, on dp devices; \"\" none");
    visit("pipeline_send", &Plan::pipeline_send, "how stage boundaries are sent");
    visit("tp_chunks", &Plan::tp_chunks, "pieces of a tp collective that run beside its GEMM");
    visit("overlap_tensor", &Plan::overlap_tensor,
          "what tp collectives do while their product still runs");
    visit("overlap_tp", &Plan::overlap_tp, "tp reductions run beside weight-gradient GEMMs");
    visit("overlap_p2p", &Plan::overlap_p2p, "compute does not wait for its own sends");
    visit("overlap_grad_reduce", &Plan::overlap_grad_reduce, "reduce gradients during backward");
    visit("overlap_param_gather", &Plan::overlap_param_gather, "gather ZeRO parameters ahead");
    visit("bucket_parameters", &Plan::bucket_parameters,
          "parameters of a gradient bucket, at least; 0 = by bucket");
    visit("bucket_parameters_per_rank", &Plan::bucket_parameters_per_rank,
          "the same for each data-parallel rank");
    visit("bucket", &Plan::bucket, "gradient bucket size; 0 = per layer when overlapped, else one");
  }
  template <class V>
  static void update_fields(V& visit) {
    visit("optimizer", &Plan::optimizer, "what updates parameters, and what it keeps for that");
    visit("data_parallel_update", &Plan::data_parallel_update,
          "how data-parallel workers come to one model");
    visit("local_steps", &Plan::local_steps, "steps of a worker between two averages (tau)");
    visit("shard_outer", &Plan::shard_outer, "workers share the outer optimizer's states");
    visit("quantized_gather", &Plan::quantized_gather,
          "zero 3 gathers parameters as blocks of int8 (ZeRO++ qwZ)");
    visit("quantized_reduce", &Plan::quantized_reduce,
          "zero 2 and 3 exchange gradients as blocks of int4 (ZeRO++ qgZ)");
    visit("quantized_block", &Plan::quantized_block, "elements that share a scale, of both");
    visit("secondary_shard", &Plan::secondary_shard,
          "ranks of a node that share a second copy of parameters for backward (hpZ); 0 = none");
    visit("reduce_hop", &Plan::reduce_hop,
          "ranks of the first hop of quantized_reduce; 0 = secondary_shard, else one hop");
  }
  template <class V>
  static void kernel_fields(V& visit) {
    visit("compute_type", &Plan::compute_type, "data type of parameters and activations");
    visit("quantization", &Plan::quantization, "what runs GEMMs in fewer than 16 bits");
    visit("unquantized_start_layers", &Plan::unquantized_start_layers,
          "first layers that stay in compute_type");
    visit("unquantized_end_layers", &Plan::unquantized_end_layers,
          "last layers that stay in compute_type");
    visit("unquantized_modules", &Plan::unquantized_modules,
          "comma-separated modules of layers that stay in compute_type");
    visit("quantized_params", &Plan::quantized_params, "gather ZeRO parameters in that type");
    visit("master_type", &Plan::master_type, "data type of the optimizer's parameters");
    visit("moment_type", &Plan::moment_type, "data type of the optimizer's moments");
    visit("lora_rank", &Plan::lora_rank, "rank of LoRA adapters, all else frozen; 0 = train all");
    visit("frozen_type", &Plan::frozen_type, "in what frozen parameters are stored");
    visit("lora_targets", &Plan::lora_targets, "matrices with adapters, comma-separated, or all");
    visit("lora_dropout", &Plan::lora_dropout, "share of an adapter's input that is dropped");
    visit("documents", &Plan::documents, "lengths packed into a sequence, comma-separated");
    visit("grad_type", &Plan::grad_type, "data type of the gradient accumulation buffer");
    visit("grad_reduce_type", &Plan::grad_reduce_type, "data type of gradients on the network");
    visit("free_gradients", &Plan::free_gradients, "gradients exist from backward to update alone");
    visit("master_params", &Plan::master_params,
          "parameters are stored in master_type; passes read copies in compute_type");
    visit("autocast", &Plan::autocast,
          "the residual stream is fp32, and copies of parameters live until backward");
    visit("autograd", &Plan::autograd, "which software keeps tensors for backward");
    visit("fused_grad_accumulation", &Plan::fused_grad_accumulation,
          "weight-gradient GEMMs add into the gradient buffer themselves");
    visit("attention", &Plan::attention, "attention kernel");
    visit("fused_kernels", &Plan::fused_kernels, "fused bias, activation, dropout and residual");
    visit("fused_conversions", &Plan::fused_conversions,
          "activations write the quantised operand of the next product themselves");
    visit("fused_cross_entropy", &Plan::fused_cross_entropy, "loss and gradient in one kernel");
    visit("fuse_communication", &Plan::fuse_communication,
          "sums that leave a stage become slices on the way where that is faster");
    visit("persistent_norm", &Plan::persistent_norm, "norms keep whole rows in registers");
    visit("tp_algorithm", &Plan::tp_algorithm, "collective algorithm of tp");
    visit("dp_algorithm", &Plan::dp_algorithm, "collective algorithm of dp");
    visit("vocab_multiple", &Plan::vocab_multiple, "vocabulary padded to a multiple of this x tp");
    visit("host_dispatch", &Plan::host_dispatch, "host time to issue one kernel");
    visit("cuda_graphs", &Plan::cuda_graphs, "what the host launches as captured graphs");
    visit("batch_kernels", &Plan::batch_kernels, "small kernels that prepare each forward pass");
    visit("host_sync", &Plan::host_sync, "host waits after every forward and backward pass");
    visit("p2p_host_sync", &Plan::p2p_host_sync, "host waits for pipeline messages");
    visit("clocks", &Plan::clocks, "at which clocks matrix kernels run");
    visit("framework", &Plan::framework,
          "NAME or NAME@RELEASE of `orrery list frameworks`: fields that are not given");
    visit("as_of", &Plan::as_of, "year whose habits fill what is left open; 0 = today");
  }
};

/// Returns whether PyTorch's autograd keeps what backward needs, and its allocator holds it.
inline bool is_pytorch(const Plan& plan) {
  return plan.autograd == Autograd::pytorch || plan.autograd == Autograd::hugging_face;
}
/// Returns whether gradients are there from the backward of the step's only microbatch to the
/// update alone: those of several add up in a buffer, and sharded ones have one.
inline bool gradients_come_and_go(const Plan& plan) {
  return plan.free_gradients && plan.zero < 2 && plan.pp == 1 && plan.microbatches() == 1;
}

/// A plan and where each of its fields was given: "plan.yaml:3", "--tp".
struct PlacedPlan {
  Plan plan;
  std::map<std::string, std::string, std::less<>> places;  ///< by field name

  /// Returns the mistakes of check() and others that name fields alone, with the places of those
  /// fields.
  Error placed(Error mistakes) const;
};

/// Fields under their own names or a framework's (aliases.h), not both. The path of `strategy` is
/// one from the folder of the plan's file. What the file leaves open
/// has the value above; for what is usual instead, see defaults.h.
Result<PlacedPlan> parse_placed_plan(const ConfigNode& node);
Result<PlacedPlan> load_placed_plan(const std::string& name_or_path);
Result<Plan> parse_plan(const ConfigNode& node);
Result<Plan> load_plan(const std::string& name_or_path);
std::string to_yaml(const Plan& plan);
/// Returns the text of one field, as in the file.
std::string field_text(const Plan& plan, std::string_view field);

/// Every reason why the plan cannot run this model: degrees that do not divide heads, layers or
/// batch; schedule and chunks that contradict; ZeRO with what it does not allow; ranges. Fields are
/// named as in the plan.
Result<void> check(const Plan& plan, const zoo::Model& model);

}  // namespace orrery::plan
