// SPDX-License-Identifier: Apache-2.0
/// An Engine is what an inference engine is set to: defaults by name and version, and a file that
/// overrides.
///
///   engine: vllm@0.19
///   parallel: {tp: 4, pp: 1, ep: 1}
///   precision: {weights: fp8, activations: fp8, kv: fp8, block_scaled: false}
///   scheduler: {policy: vllm_v1, max_num_seqs: 256, max_num_batched_tokens: 8192, async: true}
///   cache: {block_size: 16, memory_utilization: 0.9, prefix: true, blocks: 2588,
///           tiers: "host:100 GB,nvme"}
///   lora: {slots: 4, rank: 16}                # or whole models: {slots: 30, whole: true}
///   weights: {window: 4, retain: 2}           # of a model larger than memory
///   graphs: {largest: 512}
///   host: {front_end: 2 ms, step: 0.5 ms, per_request: 4 us, gap: 0 us, launch: 5 us}
///   kernels: {tables: "dense.csv,per_sequence.csv,attention.csv"}   # measured ones of the card
///   fleet: {replicas: 4, router: least_tokens, prefill: 2, prefill_cp: 4}      # or:
///   fleet: {replicas: 1, most_replicas: 8, target_requests: 64, start_up: 40 s}
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config_node.h"
#include "base/fields.h"
#include "base/result.h"
#include "machine/machine.h"
#include "serving/router.h"
#include "serving/scheduler/scheduler.h"
#include "serving/step/step_cost.h"
#include "simulate/network_model.h"
#include "workload/zoo/model.h"

namespace orrery::serving {

/// Says how the memory for the KV cache is found.
enum class KvMemory : std::uint8_t { of_total, of_free };
constexpr auto named_values(KvMemory) {
  return std::to_array<Named<KvMemory>>({
      {KvMemory::of_total, "of_total", "utilization x memory - weights - activations - runtime"},
      {KvMemory::of_free, "of_free", "utilization x (memory - weights - activations - runtime)"},
  });
}

/// Sizes of captured graphs.
enum class GraphSizes : std::uint8_t { steps, powers };
constexpr auto named_values(GraphSizes) {
  return std::to_array<Named<GraphSizes>>({
      {GraphSizes::steps, "steps", "vLLM's: 1, 2, 4, then steps of 8 to 256, of 16 beyond"},
      {GraphSizes::powers, "powers", "trtllm-bench's: powers of two, and 384"},
  });
}

/// Speculation says who guesses the next tokens of decodes.
enum class Speculation : std::uint8_t { none, ngram, mtp, model };
constexpr auto named_values(Speculation) {
  return std::to_array<Named<Speculation>>({
      {Speculation::none, "none", "nobody"},
      {Speculation::ngram, "ngram", "the text so far: no time on the accelerator"},
      {Speculation::mtp, "mtp", "a layer and the output head per guess (MTP, EAGLE)"},
      {Speculation::model, "model", "a pass of a smaller model per guess"},
  });
}

struct Engine {
  std::string name = "vllm@0.19";
  // parallel
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  std::int64_t ep = 1;
  std::int64_t cp = 1;
  plan::MoeDispatch dispatch = plan::MoeDispatch::all_gather;
  double moe_imbalance = 1;  ///< tokens of the busiest expert rank over the mean; or
  double moe_spread = 0;     ///< of experts' loads (plan::Routing); or
  double moe_bias = 0;       ///< what spreads them, whatever the number of experts
  std::int64_t redundant_experts = 0;
  bool two_batch = false;
  std::int64_t ffn = 0;  ///< devices beside tp x dp that compute MLPs and experts
  std::int64_t micro_batches = 3;
  step::Gateway gateway = step::Gateway::none;
  // precision
  graph::DataType weights = graph::DataType::bf16;
  graph::DataType activations = graph::DataType::bf16;
  graph::DataType kv = graph::DataType::bf16;
  graph::DataType state = graph::DataType::bf16;
  bool block_scaled = false;
  step::Narrow narrow = step::Narrow::all;
  double scale_bits = 0;
  bool experts_fp4 = false;
  // scheduler
  scheduler::Policy policy = scheduler::Policy::vllm_v1;
  std::int64_t max_num_seqs = 0;            ///< 0: by the device
  std::int64_t max_num_batched_tokens = 0;  ///< 0: by the device
  std::int64_t max_model_len = 0;           ///< 0: the model's
  std::int64_t long_prefill_token_threshold = 0;
  bool chunked_prefill = true;
  bool reserve_full_isl = true;
  std::int64_t recv_interval = 1;
  std::int64_t batch_wait_iters = 0;
  double batch_wait_ratio = 0;
  bool async = true;
  double watermark = 0;
  std::int64_t quantum = 1;
  double quantum_tokens = 0;  ///< 0: by the device
  // cache
  std::int64_t block_size = 16;
  double memory_utilization = 0.9;
  KvMemory kv_memory = KvMemory::of_total;
  bool prefix = true;
  bool whole_windows = false;
  bool profiles_top_p = false;   ///< the step that finds the free memory sorts logits for top-p
  std::int64_t blocks = 0;       ///< 0: what the memory holds
  std::int64_t null_blocks = 1;  ///< of them, kept by the engine itself
  std::string tiers;
  // lora
  std::int64_t adapter_slots = 0;
  std::int64_t adapter_rank = 16;
  bool whole_adapters = false;
  // weights
  std::int64_t weight_window = 0;
  std::int64_t weight_retain = 0;
  // graphs
  std::int64_t largest_graph = 512;  ///< tokens; 0: eager
  GraphSizes graph_sizes = GraphSizes::steps;
  bool whole_graphs = false;  ///< of decodes alone: attention in them, made for max_model_len
  bool prompt_graphs = true;  ///< steps with prompts are in graphs, too
  step::StreamedExperts streamed_experts = step::StreamedExperts::fp4;
  bool fused_casts = false;      ///< kernels before 8-bit products write 8 bits
  bool sorted_sampling = false;  ///< logits are sorted for top-p
  double fp4_lag = 0;            ///< of 4-bit products of few rows over the card's tables
  // host
  Time front_end{0};    ///< from the client to the engine's queue
  Time step{0};         ///< of the host per step: beside the accelerator if async, else after it
  Time per_request{0};  ///< the same per request in the step
  Time gap{0};          ///< between steps, for which the accelerator waits in any case
  Time gap_per_request{0};  ///< the same per request in the step
  Time launch = 5_us;       ///< per kernel outside of graphs
  Time handover{0};         ///< of a request between pools, before its keys and values move
  std::string all_reduce = "custom";
  bool fuse = false;
  plan::TensorOverlap overlap_tensor = plan::TensorOverlap::none;
  bool one_launch = false;  ///< prompts and decodes attend in one launch
  std::string kernels;      ///< files of measured ones (step/measured_kernels.h); empty: none
  // speculation
  Speculation speculation = Speculation::none;
  std::int64_t draft_tokens = 1;
  double acceptance = 0.7;
  std::string draft_model;

  std::int64_t drafts() const { return speculation == Speculation::none ? 0 : draft_tokens; }

  // fleet
  std::int64_t replicas = 1;
  Router router = Router::round_robin;
  std::int64_t most_requests = 0;
  double admit_rate = 0;
  std::int64_t admit_burst = 1;
  std::int64_t most_replicas = 0;
  std::int64_t target_requests = 0;
  Time start_up{0};
  Time cool_down = 300_s;
  std::int64_t prefill = 0;
  // Degrees of those that compute prompts; 0: as the others'.
  std::int64_t prefill_tp = 0;
  std::int64_t prefill_pp = 0;
  std::int64_t prefill_dp = 0;
  std::int64_t prefill_ep = 0;  ///< 0: tp x dp, if the others have ep or dp is above 1
  std::int64_t prefill_cp = 0;

  /// Says how collectives and transfers of keys and values share links (step::StepOptions::network,
  /// KvTransfers); a run states it, not a file.
  std::optional<simulate::NetworkModel> network{};

  /// The file states these, as ("section.field", "file:line").
  std::vector<std::pair<std::string, std::string>> stated;

  bool scales() const { return most_replicas > 0; }
  /// Returns the devices of all engines together, at most.
  std::int64_t devices() const {
    return std::max(replicas, most_replicas) * ranks() +
           (prefill > 0 ? prefill * for_prompts().ranks() : 0);
  }
  /// Returns the devices of one engine.
  std::int64_t ranks() const { return tp * cp * dp * pp + ffn; }
  /// Returns one of the engines that compute prompts.
  Engine for_prompts() const;

  /// Visits the fields, in sections.
  template <class V>
  static void fields(V&& visit) {
    parallel_fields(visit);
    step_fields(visit);
    memory_and_kernel_fields(visit);
    fleet_fields(visit);
  }

 private:
  template <class V>
  static void parallel_fields(V&& visit) {
    using E = Engine;
    visit("parallel", "tp", &E::tp, "tensor parallel");
    visit("parallel", "pp", &E::pp, "pipeline stages, with as many batches in flight");
    visit("parallel", "dp", &E::dp, "copies of attention that share experts, in lockstep");
    visit("parallel", "ep", &E::ep, "divides tp x dp: parts of the experts");
    visit("parallel", "cp", &E::cp, "context parallel: ranks that share prompts and caches");
    visit("parallel", "dispatch", &E::dispatch, "how tokens of dp copies reach their experts");
    visit("parallel", "moe_imbalance", &E::moe_imbalance,
          "tokens of the busiest expert rank over the mean");
    visit("parallel", "moe_spread", &E::moe_spread,
          "standard deviation of experts' loads over their mean, instead: imbalance grows with ep");
    visit("parallel", "moe_bias", &E::moe_bias,
          "or the share of a router's scores that experts have of their own, which spreads loads");
    visit("parallel", "redundant_experts", &E::redundant_experts,
          "copies of busy experts in a layer; ep divides experts and copies together");
    visit("parallel", "two_batch", &E::two_batch,
          "with dp: half of a step's tokens are exchanged while the other half computes");
    visit("parallel", "ffn", &E::ffn,
          "devices beside tp x dp that compute MLPs and experts, those attention alone; 0: none");
    visit("parallel", "micro_batches", &E::micro_batches,
          "with ffn: parts of a step's tokens that go around between both");
    visit("parallel", "all_reduce", &E::all_reduce, "algorithm of `orrery collective`");
    visit("parallel", "gateway", &E::gateway,
          "all-reduces of devices at home: none, fastest, star, tree or ring");
    visit("parallel", "fuse", &E::fuse,
          "with tp: sums become slices of tokens where that is faster");
    visit("parallel", "overlap_tensor", &E::overlap_tensor,
          "what tp sums do while their product still runs, where that is faster");
  }
  template <class V>
  static void step_fields(V&& visit) {
    using E = Engine;
    visit("precision", "weights", &E::weights, "of the layers' matrices in memory");
    visit("precision", "activations", &E::activations, "what their GEMMs compute in");
    visit("precision", "kv", &E::kv, "of the KV cache");
    visit("precision", "state", &E::state, "of the state of Mamba layers");
    visit("precision", "block_scaled", &E::block_scaled, "fp8 with a scale per block");
    visit("precision", "narrow", &E::narrow,
          "matrices that have them: all, outputs, mlp or experts");
    visit("precision", "scale_bits", &E::scale_bits, "of scales in memory, per narrow weight");
    visit("precision", "experts_fp4", &E::experts_fp4,
          "routed experts in mxfp4 beside matrices of 8 bits (DeepSeek-V4)");
    visit("scheduler", "policy", &E::policy, "how requests are chosen");
    visit("scheduler", "max_num_seqs", &E::max_num_seqs, "requests at once; 0: by the device");
    visit("scheduler", "max_num_batched_tokens", &E::max_num_batched_tokens,
          "tokens of a step; 0: by the device");
    visit("scheduler", "max_model_len", &E::max_model_len,
          "tokens of a request; 0: the model's positions");
    visit("scheduler", "long_prefill_token_threshold", &E::long_prefill_token_threshold,
          "of one prompt in a step; 0: no limit");
    visit("scheduler", "chunked_prefill", &E::chunked_prefill, "prompts may be cut");
    visit("scheduler", "reserve_full_isl", &E::reserve_full_isl,
          "admit only what has blocks for all of its known tokens");
    visit("scheduler", "recv_interval", &E::recv_interval,
          "decode steps between looks for new requests, as SGLang's scheduler-recv-interval");
    visit("scheduler", "batch_wait_iters", &E::batch_wait_iters,
          "steps that prompts wait for others while requests decode, as batch_wait_timeout_iters");
    visit("scheduler", "batch_wait_ratio", &E::batch_wait_ratio,
          "share of max_num_batched_tokens that ends this wait, as batch_wait_max_tokens_ratio");
    visit("scheduler", "async", &E::async, "schedule one step ahead");
    visit("scheduler", "watermark", &E::watermark, "share of blocks kept free when admitting");
    visit("scheduler", "quantum", &E::quantum, "decode steps of mlfq's first queue");
    visit("scheduler", "quantum_tokens", &E::quantum_tokens,
          "of a prompt, as long as a decode step (mlfq); 0: by the device");
  }
  template <class V>
  static void memory_and_kernel_fields(V&& visit) {
    using E = Engine;
    visit("cache", "block_size", &E::block_size, "tokens of a KV block");
    visit("cache", "memory_utilization", &E::memory_utilization, "share of the device's memory");
    visit("cache", "kv_memory", &E::kv_memory, "what that is a share of");
    visit("cache", "prefix", &E::prefix, "find known beginnings");
    visit("cache", "whole_windows", &E::whole_windows,
          "layers with windows keep what is behind them, too");
    visit("cache", "profiles_top_p", &E::profiles_top_p,
          "the step that finds out how much memory is free sorts logits for top-p");
    visit("cache", "blocks", &E::blocks, "KV blocks; 0: what the memory holds");
    visit("cache", "null_blocks", &E::null_blocks, "blocks the engine keeps for itself");
    visit("cache", "tiers", &E::tiers, "memory below, such as host:100 GB,nvme (kv_tiers.h)");
    visit("lora", "slots", &E::adapter_slots, "adapters in the accelerator's memory; 0: none");
    visit("lora", "rank", &E::adapter_rank, "of every adapter");
    visit("lora", "whole", &E::whole_adapters,
          "an adapter is a whole model of the same shape (composition of experts)");
    visit("weights", "window", &E::weight_window,
          "blocks of half a layer in memory, streamed from the second tier; 0: all stay");
    visit("weights", "retain", &E::weight_retain,
          "with a window: the MLP of every so many-th layer stays; 0: none");
    visit("graphs", "largest", &E::largest_graph, "tokens of the largest graph; 0: eager");
    visit("graphs", "sizes", &E::graph_sizes, "which sizes there are: steps or powers");
    visit("graphs", "whole", &E::whole_graphs,
          "of decodes alone: with attention, made for max_model_len");
    visit("graphs", "prompts", &E::prompt_graphs, "steps with prompts are in graphs, too");
    visit("host", "front_end", &E::front_end, "from the client to the queue");
    visit("host", "step", &E::step, "per step, beside the accelerator if async");
    visit("host", "per_request", &E::per_request, "the same per request of the step");
    visit("host", "gap", &E::gap, "accelerator idle between steps");
    visit("host", "gap_per_request", &E::gap_per_request, "the same per request of the step");
    visit("host", "launch", &E::launch, "per kernel outside of graphs");
    visit("host", "handover", &E::handover,
          "router and hand-shake between pools, before keys and values move");
    visit("kernels", "one_launch", &E::one_launch,
          "prompts and decodes attend in one launch, as vLLM V1's do");
    visit("kernels", "streamed_experts", &E::streamed_experts,
          "which narrow experts of up to 512 tokens have kernels that stream their weights");
    visit("kernels", "fused_casts", &E::fused_casts,
          "kernels before 8-bit products without scales of blocks write their operands");
    visit("kernels", "sorted_sampling", &E::sorted_sampling,
          "the sampler sorts the logits, as PyTorch's does for requests with top_p");
    visit(
        "kernels", "fp4_lag", &E::fp4_lag,
        "share that 4-bit products, but of experts, of up to 128 rows take longer than the fastest "
        "kernels, of more rows less");
    visit("kernels", "tables", &E::kernels,
          "CSV files, by commas, of kernels measured on the card (measured_kernels.h)");
    visit("speculation", "method", &E::speculation, "who guesses tokens");
    visit("speculation", "tokens", &E::draft_tokens, "guesses per decode");
    visit("speculation", "acceptance", &E::acceptance,
          "chance of a guess to be right if those before it are");
    visit("speculation", "model", &E::draft_model, "that guesses, with method: model");
  }
  template <class V>
  static void fleet_fields(V&& visit) {
    using E = Engine;
    visit("fleet", "replicas", &E::replicas, "engines alike; with prefill those that decode");
    visit("fleet", "router", &E::router, "which engine gets a request");
    visit("fleet", "most_requests", &E::most_requests,
          "unanswered ones of an engine, others are rejected; 0: no limit");
    visit("fleet", "admit_rate", &E::admit_rate,
          "requests per second that are let in, others are rejected; 0: all");
    visit("fleet", "admit_burst", &E::admit_burst, "that may come at once (token bucket)");
    visit("fleet", "most_replicas", &E::most_replicas,
          "with as many as needed from replicas to this; 0: replicas");
    visit("fleet", "target_requests", &E::target_requests,
          "unanswered ones of an engine that another is started at");
    visit("fleet", "start_up", &E::start_up, "of an engine until it takes requests");
    visit("fleet", "cool_down", &E::cool_down, "too few requests for so long stop an engine");
    visit("fleet", "prefill", &E::prefill, "engines that compute prompts only");
    visit("fleet", "prefill_tp", &E::prefill_tp, "their tensor parallel; 0: as the others'");
    visit("fleet", "prefill_pp", &E::prefill_pp, "their pipeline stages; 0: as the others'");
    visit("fleet", "prefill_dp", &E::prefill_dp, "their copies of attention; 0: as the others'");
    visit("fleet", "prefill_ep", &E::prefill_ep,
          "their ep; 0: tp x dp if the others have it or dp > 1");
    visit("fleet", "prefill_cp", &E::prefill_cp, "their context parallel; 0: as the others'");
  }
};

/// A row of the table of engines.
struct EngineDefaults {
  std::string_view name;
  std::string_view sentence;
  void (*set)(Engine&);
};
const std::vector<EngineDefaults>& engines();

/// A name of the table ("vllm@0.19"; "vllm": the newest) or a file.
Result<Engine> load_engine(const std::string& name_or_path);
/// Loads the engine as it serves a model: formats that it does not state are those of the
/// checkpoint, if that is quantised (step/quantization.h).
Result<Engine> load_engine_for(const zoo::ModelFile& model, const std::string& name_or_path);
/// Returns the file, or what a file that only names an engine of the table would be.
Result<ConfigNode> engine_node(const std::string& name_or_path);
Result<Engine> parse_engine(const ConfigNode& node,
                            const std::optional<step::Precision>& checkpoint = {});
/// Mistakes of an engine that a model and a machine show, with the places of the fields in its
/// file.
Error located(Error error, const Engine& engine);
/// Returns every field, as a file. `of_checkpoint`: without the formats that are as the engine's
/// table has them, which are then a checkpoint's own.
std::string to_yaml(const Engine& engine, bool of_checkpoint = false);
/// Returns the value of "section.field" as a file has it; "" where there is no such field.
std::string field_text(const Engine& engine, std::string_view path);

/// Sizes of graphs up to the largest, ascending.
std::vector<std::int64_t> capture_sizes(std::int64_t largest, GraphSizes sizes);

/// Returns what the engine makes of a step.
step::StepOptions step_options(const Engine& engine);

/// Returns the engine with what is 0 filled by the device: vLLM's defaults for its API server
/// (vllm/engine/arg_utils.py, 0.19): 8192 tokens and 1024 requests with 70 GiB and more, except
/// A100; else 2048 and 256. Without chunked prefill at least max_model_len tokens (the same file,
/// and 0.6's config.py).
Engine completed(Engine engine, const machine::Machine& machine, std::int64_t model_positions);

}  // namespace orrery::serving
