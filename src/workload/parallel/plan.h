// SPDX-License-Identifier: Apache-2.0
/// A strategy as data: how a model is spread over devices and run. What it means is in lower.h.
#pragma once

#include <cstdint>
#include <string>

#include "base/config_node.h"
#include "base/fields.h"
#include "base/names.h"
#include "base/result.h"
#include "base/units.h"
#include "collective/cost.h"
#include "graph/operator.h"
#include "machine/machine.h"
#include "workload/zoo/model.h"

namespace orrery {

enum class Schedule : std::uint8_t { gpipe, one_f_one_b, interleaved };
template <>
inline constexpr auto kNames<Schedule> = std::to_array<Named<Schedule>>({
    {Schedule::gpipe, "gpipe", "all forwards, then all backwards"},
    {Schedule::one_f_one_b, "1f1b", "warm up, then one forward and one backward in turn"},
    {Schedule::interleaved, "interleaved", "1F1B over `chunks` model chunks per device"},
});
enum class Recompute : std::uint8_t { none, selective, full };
template <>
inline constexpr auto kNames<Recompute> = std::to_array<Named<Recompute>>({
    {Recompute::none, "none", "keep every activation"},
    {Recompute::selective, "selective", "drop and recompute the attention core"},
    {Recompute::full, "full", "keep only each layer's input"},
});
enum class PipelineSend : std::uint8_t { whole, scatter_gather };
template <>
inline constexpr auto kNames<PipelineSend> = std::to_array<Named<PipelineSend>>({
    {PipelineSend::whole, "whole", "every tp rank sends the whole boundary tensor"},
    {PipelineSend::scatter_gather, "scatter_gather", "each sends 1/tp, all-gather at the receiver"},
});
enum class AxisOrder : std::uint8_t { tp_dp_pp, tp_pp_dp };
template <>
inline constexpr auto kNames<AxisOrder> = std::to_array<Named<AxisOrder>>({
    {AxisOrder::tp_dp_pp, "tp-dp-pp", "neighbouring ranks: tensor, then data, then pipeline"},
    {AxisOrder::tp_pp_dp, "tp-pp-dp", "neighbouring ranks: tensor, then pipeline, then data"},
});
struct Plan {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  bool sequence_parallel = false;
  Schedule schedule = Schedule::one_f_one_b;
  std::int64_t chunks = 1;        ///< v, model chunks per device (interleaved)
  std::int64_t microbatch = 1;    ///< sequences
  std::int64_t global_batch = 1;  ///< sequences
  std::int64_t sequence = 0;      ///< tokens; 0 = the model's max_positions
  std::int64_t zero = 0;          ///< ZeRO stage 0-3
  Recompute recompute = Recompute::none;
  AxisOrder order = AxisOrder::tp_dp_pp;
  std::string
      stage_layers{};  ///< "12,13,13,10": layers per stage (chunks in model order); "" = even
  PipelineSend pipeline_send = PipelineSend::whole;
  bool overlap_tp = true;             ///< reductions of input gradients run beside weight gradients
  bool overlap_p2p = false;           ///< compute does not wait for its own sends
  bool overlap_grad_reduce = false;   ///< gradient buckets reduce during the last backward
  bool overlap_param_gather = false;  ///< ZeRO parameter gathers overlap with compute
  Bytes bucket{0};  ///< gradient bucket size; 0 = one per layer with overlap, else one buffer
  DataType compute_type = DataType::bf16;
  DataType grad_type = DataType::fp32;         ///< gradient accumulation buffer
  DataType grad_reduce_type = DataType::fp32;  ///< on the wire
  bool fused_grad_accumulation = false;        ///< weight-gradient GEMM adds into the buffer itself
  AttentionKernel attention = AttentionKernel::unfused;
  bool fused_kernels = true;
  bool persistent_norm = true;  ///< norms keep a row in registers, however long it is
  CollectiveAlgorithm tp_algorithm = CollectiveAlgorithm::automatic;
  CollectiveAlgorithm dp_algorithm = CollectiveAlgorithm::automatic;
  std::int64_t vocab_multiple = 128;  ///< the vocabulary is padded to a multiple of this x tp
  Time host_dispatch{0};              ///< host time to issue one kernel
  std::int64_t batch_kernels = 0;     ///< that prepare tokens and masks before every forward pass
  bool host_sync = false;  ///< the host waits for every forward and backward (timers of Megatron)
  bool p2p_host_sync = false;  ///< the host waits for pipeline messages (Megatron before 2023)

  template <class V>
  static void fields(V&& visit) {
    visit("tp", &Plan::tp, "tensor-parallel degree");
    visit("pp", &Plan::pp, "pipeline-parallel degree (stages)");
    visit("dp", &Plan::dp, "data-parallel degree");
    visit("sequence_parallel", &Plan::sequence_parallel, "split norms and dropout over tp too");
    visit("schedule", &Plan::schedule, "pipeline schedule");
    visit("chunks", &Plan::chunks, "model chunks per device (schedule interleaved)");
    visit("microbatch", &Plan::microbatch, "sequences per microbatch and replica");
    visit("global_batch", &Plan::global_batch, "sequences per step over all replicas");
    visit("sequence", &Plan::sequence, "tokens per sequence; 0 = the model's maximum");
    visit("zero", &Plan::zero, "ZeRO stage: 0 none, 1 optimizer, 2 + gradients, 3 + parameters");
    visit("recompute", &Plan::recompute, "activation recompute");
    visit("order", &Plan::order, "order of parallel axes over ranks, innermost first");
    visit("stage_layers", &Plan::stage_layers, "layers per stage, comma-separated; empty = even");
    visit("pipeline_send", &Plan::pipeline_send, "how stage boundaries are sent");
    visit("overlap_tp", &Plan::overlap_tp, "tp reductions run beside weight-gradient GEMMs");
    visit("overlap_p2p", &Plan::overlap_p2p, "compute does not wait for its own sends");
    visit("overlap_grad_reduce", &Plan::overlap_grad_reduce, "reduce gradients during backward");
    visit("overlap_param_gather", &Plan::overlap_param_gather, "gather ZeRO parameters ahead");
    visit("bucket", &Plan::bucket, "gradient bucket size; 0 = per layer when overlapped, else one");
    visit("compute_type", &Plan::compute_type, "data type of parameters and activations");
    visit("grad_type", &Plan::grad_type, "data type of the gradient accumulation buffer");
    visit("grad_reduce_type", &Plan::grad_reduce_type, "data type of gradients on the network");
    visit("fused_grad_accumulation", &Plan::fused_grad_accumulation,
          "weight-gradient GEMMs add into the gradient buffer themselves");
    visit("attention", &Plan::attention, "attention kernel");
    visit("fused_kernels", &Plan::fused_kernels, "fused bias, activation, dropout and residual");
    visit("persistent_norm", &Plan::persistent_norm, "norms keep whole rows in registers");
    visit("tp_algorithm", &Plan::tp_algorithm, "collective algorithm of tp");
    visit("dp_algorithm", &Plan::dp_algorithm, "collective algorithm of dp");
    visit("vocab_multiple", &Plan::vocab_multiple, "vocabulary padded to a multiple of this x tp");
    visit("host_dispatch", &Plan::host_dispatch, "host time to issue one kernel");
    visit("batch_kernels", &Plan::batch_kernels, "small kernels that prepare each forward pass");
    visit("host_sync", &Plan::host_sync, "host waits after every forward and backward pass");
    visit("p2p_host_sync", &Plan::p2p_host_sync, "host waits for pipeline messages");
  }

  friend bool operator==(const Plan&, const Plan&) = default;

  std::int64_t devices() const { return tp * pp * dp; }
  std::int64_t microbatches() const { return global_batch / (dp * microbatch); }  ///< per replica
};

Result<Plan> parse_plan(const ConfigNode& node);
Result<Plan> load_plan(const std::string& name_or_path);
std::string to_yaml(const Plan& plan);

/// Every reason why the plan cannot run this model: degrees that do not divide heads, layers or
/// batch; schedule and chunks that contradict; ZeRO with what it does not allow; ranges. Fields are
/// named as in the plan.
Result<void> check(const Plan& plan, const Model& model);

}  // namespace orrery
