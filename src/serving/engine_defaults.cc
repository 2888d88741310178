// SPDX-License-Identifier: Apache-2.0
/// Engine defaults are what engines do by name and version where a file says nothing.
#include "serving/engine.h"

namespace orrery::serving {
namespace {

/// Eager PyTorch makes 839 launches of 5 us in a step of Llama-3-8B, of which 325 are counted
/// (measured).
constexpr Time kEagerLaunch = 13_us;
/// The share of a router's scores that experts have of their own (plan::Routing), with which top 8
/// of 256 deviate by 1.36 of their mean: derived from DeepSeek-R1's ranks of 8 experts, which
/// deviate by 0.48 with random prompts (published: examples/ep_load_balancer of
/// NVIDIA/TensorRT-LLM).
constexpr double kRouterBias = 0.245;
constexpr std::int64_t kWholePrompts = 65536;  // tokens of a step that takes prompts whole

/// Graphs of decodes are whole by default since 0.11 (vllm-project/vllm pull request 25444).
void vllm_v1(Engine& engine) {
  engine.one_launch = true;
  engine.whole_graphs = true;
}
/// Top-p was sorted for by PyTorch until a kernel of its own came (vllm-project/vllm pull request
/// 33538), in the profiling step, too.
void vllm_sync(Engine& engine) {
  vllm_v1(engine);
  engine.profiles_top_p = true;
  engine.whole_graphs = false;
  engine.async = false;
  engine.reserve_full_isl = false;
}
/// Sets vLLM with its host: measured with 0.11.1 without other load, 0.35 ms a step and 54 us a
/// sequence of requests with top-p, 47 of which are their sort on the accelerator
/// (Engine::sorted_sampling). Front end: 2 ms that the server's tokenizer waits (published:
/// AsyncMicrobatchTokenizer), 2 ms of HTTP and sockets (recalled). Products of 4 bits on Blackwell:
/// FlashInfer's CUTLASS backend, the default, has 12 to 22 % less FLOPs a second than the best one
/// at 1 to 128 rows (mean 17 %), 8 % at 256 and 512, 1 % beyond (published: vllm-project/vllm pull
/// request 42235).
void vllm_v1_host(Engine& engine) {
  vllm_v1(engine);
  engine.fp4_lag = 0.2;
  engine.front_end = 4_ms;
  engine.moe_bias = kRouterBias;
  engine.step = 350_us;
  engine.per_request = 7_us;
}
/// Asynchronous scheduling is no default yet.
void vllm_v1_sync_host(Engine& engine) {
  vllm_v1_host(engine);
  engine.profiles_top_p = true;
  engine.async = false;
}
void vllm_v0(Engine& engine) {
  engine.policy = scheduler::Policy::vllm_v0;
  engine.async = false;
  engine.prefix = false;
  engine.chunked_prefill = false;
  engine.reserve_full_isl = false;
  engine.watermark = 0.01;
  engine.whole_windows = true;
  engine.max_num_seqs = 256;
  engine.largest_graph = 256;
  engine.null_blocks = 0;
}
void sglang(Engine& engine) {
  engine.policy = scheduler::Policy::sglang;
  engine.block_size = 1;
  engine.null_blocks = 1;
  engine.memory_utilization = 0.88;
  engine.max_num_batched_tokens = 8192;
  engine.largest_graph = 256;
}
/// Prompts are launched eagerly.
void sglang_host(Engine& engine) {
  sglang(engine);
  engine.prompt_graphs = false;
  engine.launch = kEagerLaunch;
  engine.front_end = 4_ms;
  engine.moe_bias = kRouterBias;
}
void trtllm(Engine& engine) {
  engine.policy = scheduler::Policy::trtllm;
  engine.block_size = 32;
  engine.null_blocks = 0;
  engine.kv_memory = KvMemory::of_free;
  engine.max_num_seqs = 2048;
  engine.max_num_batched_tokens = 8192;
  engine.all_reduce = "custom_trtllm";
  engine.largest_graph = 2048;
  engine.graph_sizes = GraphSizes::powers;
  engine.streamed_experts =
      step::StreamedExperts::none;  // CUTLASS' are the default backend of experts
}
/// The PyTorch backend with the backend of experts that recipes of it name (TRTLLM), which launches
/// prompts eagerly. The sampler takes 6 to 14 us a request on the host (published:
/// NVIDIA/TensorRT-LLM pull request 11983).
void trtllm_pytorch(Engine& engine) {
  trtllm(engine);
  engine.streamed_experts = step::StreamedExperts::all;
  engine.prompt_graphs = false;
  engine.launch = kEagerLaunch;
  engine.front_end = 4_ms;
  engine.moe_bias = kRouterBias;
  engine.fused_casts = true;
  engine.per_request = 10_us;
}
/// Sets the gap between steps. Before 1.2 the accelerator waits between steps, for 0.4 ms and for
/// the sampler, whose time by request the host does not hide: 8 us, as all of the gap calibrated on
/// the declared half of serving_silicon (Llama-3.1-70B in fp4 on B200). Measured on Hopper: 0.7 to
/// 0.9 ms with what the host takes for a step.
void trtllm_pytorch_gap(Engine& engine) {
  trtllm_pytorch(engine);
  engine.gap = 400_us;
  engine.gap_per_request = 8_us;
}
void orca(Engine& engine) {
  engine.policy = scheduler::Policy::orca;
  engine.async = false;
  engine.prefix = false;
  engine.chunked_prefill = false;
  engine.null_blocks = 0;
  engine.largest_graph = 0;
  engine.max_num_batched_tokens = kWholePrompts;
}
void sarathi(Engine& engine) {
  engine.policy = scheduler::Policy::sarathi;
  engine.async = false;
  engine.prefix = false;
  engine.max_num_batched_tokens = 512;
  engine.max_num_seqs = 128;
  engine.null_blocks = 0;
}
void trtllm_max_utilization(Engine& engine) {
  trtllm(engine);
  engine.policy = scheduler::Policy::max_utilization;
}
void trtllm_static(Engine& engine) {
  trtllm(engine);
  engine.policy = scheduler::Policy::static_batch;
}
void fastserve(Engine& engine) {
  engine.policy = scheduler::Policy::mlfq;
  engine.async = false;
  engine.prefix = true;
  engine.chunked_prefill = false;
  engine.reserve_full_isl = false;
  engine.max_num_seqs = 256;
  engine.max_num_batched_tokens = kWholePrompts;
  engine.largest_graph = 256;
  engine.null_blocks = 0;
}
void fixed_batch(Engine& engine) {
  engine.policy = scheduler::Policy::static_batch;
  engine.async = false;
  engine.prefix = false;
  engine.null_blocks = 0;
  engine.max_num_seqs = 8;
  engine.max_num_batched_tokens = kWholePrompts;
}

}  // namespace

const std::vector<EngineDefaults>& engines() {
  static const std::vector<EngineDefaults> table{
      {"vllm@0.20", "vLLM, V1 scheduler, asynchronous, with its host's time", vllm_v1_host},
      {"vllm@0.19", "vLLM, V1 scheduler, asynchronous", vllm_v1},
      {"vllm@0.11", "vLLM, V1 scheduler, synchronous, with its host's time", vllm_v1_sync_host},
      {"vllm@0.10", "vLLM, V1 scheduler, synchronous", vllm_sync},
      {"vllm@0.6", "vLLM, V0 scheduler, prompts alone", vllm_v0},
      {"sglang@0.5.9", "SGLang, overlap scheduler, eager prompts, with its host's time",
       sglang_host},
      {"sglang@0.5", "SGLang, overlap scheduler, pages of one token", sglang},
      {"trtllm@1.2", "TensorRT-LLM, PyTorch backend, eager prompts, with its host's time",
       trtllm_pytorch},
      {"trtllm@1.1", "TensorRT-LLM, as 1.2, with a gap between steps", trtllm_pytorch_gap},
      {"trtllm@1.0", "TensorRT-LLM, GUARANTEED_NO_EVICT, chunked context", trtllm},
      {"trtllm-max@1.0", "TensorRT-LLM, MAX_UTILIZATION, chunked context", trtllm_max_utilization},
      {"trtllm-static@1.0", "TensorRT-LLM, STATIC_BATCH, chunked context", trtllm_static},
      {"orca", "iteration-level scheduling with whole answers reserved", orca},
      {"sarathi", "chunked prefill of 512 tokens a step", sarathi},
      {"fastserve", "skip-join queues by what was computed", fastserve},
      {"static", "batches that run until their longest answer ends", fixed_batch},
  };
  return table;
}

}  // namespace orrery::serving
