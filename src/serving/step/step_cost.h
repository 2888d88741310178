// SPDX-License-Identifier: Apache-2.0
/// Time of one engine step: a pass over the model for all tokens of a tick.
///
///   step = embedding(T) + sum over layers of
///            [norm, QKV, rotary, cache write, output projection, MLP or experts](T)
///          + attention(prompts) + attention(decodes) + all-reduces(T)
///          + scan(prompts) + state update(decodes) of recurrent layers (Mamba-2)
///          + [final norm, output head, sampling](S)
///
/// Every GEMM runs once over all T tokens; only attention and recurrences see requests apart. The
/// kernels are those of zoo::layer_operators, split as plan::shard does, and timed by
/// compute::kernel_time: there is no other roofline. What differs from training: a residual sum is
/// one kernel with the norm after it; biases are epilogues; keys and values go to a paged cache; a
/// prompt's queries see the context before them; all decodes are one kernel whose work is the sum
/// of their contexts, and all prompts another, in which each takes the part that it would have
/// among as many of its own length; of the experts those that T tokens reach are read, E (1 - (1 -
/// top_k / E)^T) of them; latent attention is absorbed for decodes (DeepSeek-AI 2024).
///
/// The experts are divided over ep groups of tp x dp / ep ranks, each of which has a part of their
/// width. With dp > 1 they compute the tokens of all copies. `dispatch` all_gather: an all-gather
/// of T dp rows before them and a reduce-scatter after (vLLM's allgather_reducescatter);
/// all_to_all: the T / tp tokens of a rank go to their top_k experts in the type that these compute
/// in and come back in 16 bits; hierarchical: so, but one copy to a node and to a rank (DeepEP;
/// collective/token_exchange.h). What comes back is gathered over tp, or, with a shared expert,
/// summed with its part.
///
/// With cp > 1 a prompt's tokens are split over ranks that all have the weights, and so are the
/// keys and values of every request; decodes are computed by all of them. Rows of a rank:
/// ceil(tokens of prompts / cp) + decodes. Prompts attend in a ring (Liu et al. 2023; in the order
/// that gives every rank as many pairs): cp passes over a cp-th of the keys each,
///
///   pass + (cp - 1) (max(pass, send of a cp-th of the keys and values) + adding what it has found)
///
/// decodes to a cp-th of the keys, whose results are merged: an all-gather of a number per row and
/// head, an all-reduce of the rows.
///
/// Low-rank adapters (LoRA; Hu et al. 2021): every matrix k x n but routers and routed experts has
/// factors k x r and r x n, split as it is (a k x r for each matrix fused into it). Both are a GEMM
/// over the adapted tokens, batched by adapter.
///
/// `fuse`: the residual stream lies in shards of ceil(T / tp) rows between sums, or stages alone
/// send shards, where that is faster (residual_stream.h). Not with more than one residual stream.
///
/// `overlap_tensor`: a sum that directly follows its product is a ring whose tiles move while the
/// product runs, and an all-gather after it, in steps where that takes less (tile_ring.h): those of
/// prompts. With `tracked` and `tracked_mca` on hypothetical hardware.
///
/// On a device of model spatial that fuses, every layer, the embedding and the head are one kernel
/// each, whose launches come on top (machine/compute/spatial.h).
///
/// `window`: the layers' weights pass through so many blocks of half a layer on their way from the
/// second memory tier (weight_window.h); embedding and output head stay. A step takes what a token
/// takes in the steady state, with blocks of a mean layer: the next step's first blocks are loaded
/// while nothing runs. `gateway`: all-reduces as between devices at home (collective/gateway.h).
///
/// Where the engine attends in one launch (`one_launch`, vLLM's) and the device computes decodes in
/// FlashAttention-2's tiles, these take, beside prompts or with guesses to verify,
///
///   max(all + uneven, longest - prompts)      of compute/decode_tiles.h
///
/// and alone `uneven` more than without, at least `longest`, of parts of keys that are cut for the
/// longest context or, in graphs, for `graph_context` (compute::keys_of_part).
///
/// Inside a captured graph T is padded to the next capture size; a step that is too large for one,
/// or has prompts where these are in none (`eager_prompts`), takes at least `launch` per kernel.
///
/// With `network`, and on a machine with a topology, collectives are simulated on its links, those
/// of all groups of the engine at once (link_times.h), the engine on the first of the devices. What
/// other engines send at that time is not seen. Not those of `gateway`.
///
/// The sum of the kernels' times is that at the rate of the kernel tables; the power of all kernels
/// of the step against the device's cap says which clock is left and how much longer they take
/// (compute/clock.h). Collectives and measured kernels count as running, without work that the
/// clock slows.
///
/// `kernels`: layers, products and attention that its tables cover take their measured times
/// (measured_kernels.h), attention of plain layers without windows, guesses and cp only.
///
/// Ignores:  unequal contexts of decodes in other kernels; which ranks of experts are busy, that
/// an expert's rows differ from its neighbours'.
/// Requires: check().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "collective/cost.h"
#include "collective/gateway.h"
#include "machine/machine.h"
#include "serving/step/cache_bytes.h"
#include "serving/step/link_times.h"
#include "serving/step/measured_kernels.h"
#include "serving/step/precision.h"
#include "serving/step/residual_stream.h"
#include "serving/step/step_options.h"
#include "serving/step/timed.h"
#include "serving/step/weight_window.h"
#include "workload/lower/layouts.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::compute {
struct DecodeTiles;
}

namespace orrery::step {

class StepCost {
 public:
  /// Mistakes: kinds of layers that are not generated from (encoders, recommendation ...), degrees
  /// that do not divide, formats that the device does not compute in.
  static Result<StepCost> make(const zoo::Model& model, const machine::Machine& machine,
                               const StepOptions& options);

  /// Distinct windows of attention layers, 0 (none) first.
  const std::vector<std::int64_t>& windows() const { return windows_; }

  /// Returns time (of all pipeline stages together), clock, power and energy (of one device) of the
  /// step. Not const: remembers what depends on T and S alone.
  compute::ClockPoint run(const StepShape& shape);
  Time time(const StepShape& shape) { return run(shape).time; }
  /// Tokens of decodes are guessed by `drafter`, or, without one, by a layer more like the model's
  /// and its output head (MTP, EAGLE): their weights and cache are added to the model's.
  void guess_by(std::shared_ptr<StepCost> drafter);
  /// Returns the time of guessing one token for each decode of the step.
  Time draft(const StepShape& shape);
  /// With pp > 1: of the longest stage, what the next step must wait for.
  Time interval(Time step) const;
  /// T in a graph, else T.
  std::int64_t padded(std::int64_t tokens) const;

  Bytes weights_per_device() const { return weights_; }
  Bytes kv_bytes_per_token() const { return cache_.per_token; }
  const CacheBytes& cache() const { return cache_; }
  Bytes adapter_bytes() const { return adapter_; }
  /// Returns, for a step of T tokens and S samples, what is alive at once beside weights and cache,
  /// the most of
  ///
  ///   2 T (3 F / tp + 2 H)                         of a dense layer (2 F where nothing gates)
  ///   2 T dp (k (max(2 F, H) + F) + 2 H)           of k experts a token: rows of all dp copies if
  ///                                                they are gathered, F of an expert's part
  ///
  /// and 10 S V of the logits. Source: fused_experts of vLLM and SGLang (gate and up share memory
  /// with what comes back); TensorRT-LLM's workspace (moe_kernels.cu) has max(F, H) for the last F.
  Bytes activations(std::int64_t tokens, std::int64_t samples) const;
  /// Returns, for a step of T tokens, the most that an operator of a layer reads and writes on a
  /// device besides weights and cache, which a fused kernel keeps on the chip (compute/spatial.h).
  Bytes kept_on_chip(std::int64_t tokens) const;
  /// The nodes of a layer for T tokens.
  struct LayerNodes {
    std::vector<graph::Node> nodes;
    std::size_t first_branch = 0;  ///< number of nodes up to the first sum over tp
    bool routes = false;           ///< has routed experts
  };
  /// Returns what a rank runs of a layer of the kind (zoo::layer_kinds), in order: kernels on the
  /// compute stream, one a node, and all-reduces over tp (workload/plan/axes.h). Attention and
  /// recurrences, which see requests apart, are left out, and so are the exchange of experts and
  /// the sum behind them.
  LayerNodes layer_nodes(std::size_t kind, std::int64_t tokens) const;
  /// Returns what `fuse` makes of a step of T tokens, and why not of pairs that it cannot fuse.
  std::vector<FusedPlace> fused_places(std::int64_t tokens) const;
  const StepOptions& options() const { return options_; }
  Power idle_power() const { return machine_.device.idle_power; }

 private:
  StepCost(const zoo::Model& model, machine::Machine machine, const StepOptions& options,
           std::shared_ptr<const MeasuredKernels> measured);

  /// Rows hold the parts that depend on the number of tokens alone.
  struct Rows {
    Part all;
    Part fused;        ///< what stream() saves, and kernels more
    Time outside{0};   ///< of the layers
    Time second{0};    ///< branches of the layers: MLPs, experts
    Time reducing{0};  ///< the layers' sums
  };
  /// Alike holds, for steps with equal numbers of tokens and samples, what does not depend on their
  /// contexts.
  struct Alike {
    std::int64_t tokens = -1;
    std::int64_t samples = -1;
    bool prompts = false;
    bool captured = false;
    Rows rows;  ///< with the output head
  };
  /// Layers of one kind that attend alike.
  struct AttentionKind {
    std::int64_t layers = 0;
    std::int64_t window = 0;
    std::int64_t kept = 0;    ///< tokens whose keys and values it needs; 0: all
    std::size_t visible = 0;  ///< index into windows()
    bool latent = false;
    bool measured = false;  ///< with its cache write
  };

  /// Valid until the next call.
  const Alike& alike(std::int64_t tokens, std::int64_t samples, bool prompts);
  /// Whether a step of so many tokens, with prompts or without, is launched as a graph.
  bool is_captured(std::int64_t tokens, bool prompts) const;
  /// Tokens that a rank computes.
  std::int64_t rows_of(const StepShape& shape) const;
  void measure_weights();
  plan::Plan plan_for(std::int64_t tokens) const;
  void add_operator(Part& part, zoo::ModelOperator op, const plan::Plan& plan) const;
  /// Returns the kernels that an operator of the whole model is on a rank.
  std::vector<graph::Operator> kernels_of(zoo::ModelOperator op, const plan::Plan& plan) const;
  /// Returns the bytes of one move between tokens and the rows of a rank's experts, as kernels of
  /// them were measured (tools/fit_moe.py): 2 (T + R) H, of which R = T top_k / ep are rows of the
  /// busiest rank, T the tokens of all dp copies.
  Bytes moved_rows(const plan::Plan& plan) const;
  /// Returns the kernels of a rank's share of a product.
  std::vector<graph::Operator> gemm_kernels(const zoo::ModelOperator& op,
                                            const plan::Plan& plan) const;
  /// Returns the bytes that a sum over the tensor-parallel group adds up.
  Bytes summed_bytes(std::int64_t tokens) const;
  void add_all_reduce(Part& part, std::int64_t tokens) const;
  /// Adds a sum over tp, whose product (none: null) is counted: what both take less that.
  void add_sum(Part& part, const graph::Operator* product, std::int64_t tokens) const;
  /// With tp > 1, of a norm over all heads of queries and of keys (MiniMax-M2, OLMo 2): a kernel
  /// that sums the squares of a rank's part, and an all-reduce of both sums, 8 T bytes (published:
  /// vllm-project/vllm pull request 31493, sgl-project/sglang pull request 14416).
  void add_norm_sum(Part& part, std::size_t kind, std::int64_t tokens) const;
  /// Returns what a product and the sum of its result take with `overlap_tensor`; the longest time
  /// where nothing overlaps.
  Time overlapped(graph::Operator product, std::int64_t tokens) const;
  /// An all-reduce of `gateway`.
  Time reduced_at_home(Bytes size) const;
  /// With dp > 1: every copy gets all tokens before the experts, and its own ones' sums after them.
  void add_exchange(Part& part, std::int64_t tokens) const;
  /// A collective of every group of its kind: closed forms, or simulated.
  Time moved(
      graph::CollectiveKind kind, Bytes size, const RankGroup& group,
      collective::CollectiveAlgorithm algorithm = collective::CollectiveAlgorithm::automatic) const;
  /// Tokens to their experts node by node, or back.
  Time exchanged(Bytes size) const;
  Result<void> check_links() const;
  /// From a stage to the next.
  Time hop(std::int64_t tokens) const;
  /// Experts send back shards of tokens that nothing else is summed with.
  bool exchanges_shards() const;
  StreamPrices stream_prices(std::int64_t tokens) const;
  /// A layer's operators, whole, and the layouts of what they read and write over tp.
  struct PassLayer {
    std::vector<zoo::ModelOperator> operators;
    lower::Choice choice;
  };
  PassLayer layer_of(std::size_t kind, const plan::Plan& plan) const;
  class PassKernels;
  /// Returns the time of what works on the residual stream of one layer of the kind.
  Time norm_time(std::size_t kind, const plan::Plan& plan) const;
  StreamUses stream_uses(std::int64_t tokens) const;
  /// Returns the choice of `fuse`; without, or where there is nothing to fuse, none.
  StreamChoice stream(std::int64_t tokens) const;
  Rows layers(std::int64_t tokens) const;
  /// Returns the time of a step whose kernels take so long, weights streamed.
  Time through_window(const Rows& rows, Time kernels) const;
  Part head(std::int64_t samples) const;
  Part adapters(std::int64_t tokens, std::int64_t different) const;
  /// Calls visit(layers, n, k, fused) for every adapted matrix of a rank.
  template <class Visit>
  void visit_adapted(std::int64_t tokens, Visit visit) const;
  Timed attend(const AttentionKind& kind, const StepShape& shape);
  /// Launches are an attention kernel's parts as if each were alone.
  struct Launches {
    Time decodes{0};
    Time prompts{0};
  };
  /// Returns what decodes of unequal contexts, or beside prompts, take more than `alone` on a
  /// device that computes them in tiles (compute/decode_tiles.h).
  Time uneven(const AttentionKind& kind, const StepShape& shape, double kv_bytes,
              const Launches& alone);
  void cut_keys(compute::DecodeTiles& tiles);
  /// Says of layers of a kind whether tables have it: plain, without window and cp.
  bool measures_attention(std::size_t kind) const;
  Time measured_attention(const StepShape& shape, double decode_keys) const;
  /// With cp > 1: to what the steps of a ring before have found for so many rows of prompts what
  /// one more has. Sums and their weights have 4 bytes, a step's results 2.
  Timed add_partial(std::int64_t rows) const;
  /// With cp > 1: of what every rank has found for the decodes in its part of the keys.
  Time merge(std::int64_t rows);
  Timed attend_latent(const StepShape& shape, double visible);
  /// Returns attention in the latent space: queries go into it and results back by a GEMM per head,
  /// the core reads one head of `keys`.
  Timed attend_absorbed(std::int64_t rows, double pairs, double keys);
  /// Returns what the indexer of sparse attention takes for so many pairs over so many keys.
  Timed choose_keys(double pairs, double keys) const;
  /// Returns prompts of latent attention whose keys and values are expanded for every head.
  Timed attend_expanded(const std::vector<Prompt>& prompts);
  graph::Operator cache_write_kernel(std::int64_t tokens) const;
  Timed cache_write(std::int64_t tokens) const;
  bool is_recurrent(std::size_t kind) const {
    return !model_.kinds.empty() && (model_.kinds[kind].mixer == zoo::MixerKind::mamba ||
                                     model_.kinds[kind].mixer == zoo::MixerKind::gated_delta);
  }
  /// Returns the part of all recurrent layers.
  Part recur(const StepShape& shape);
  Part scan(std::size_t kind, std::int64_t tokens) const;
  Part update_states(std::int64_t decodes) const;
  Bytes state_of_layer() const;  ///< on a device, of a request
  void measure_cache();
  Timed kernel(graph::Operator op) const;
  Timed timed(const graph::Operator& op) const;
  /// Returns the step whose kernels take so long beside what the host needs.
  compute::ClockPoint clocked(const Part& kernels, Time host) const;
  /// bf16, on devices without it fp16, without both fp32.
  graph::DataType wide_type() const;

  zoo::Model model_;
  machine::Machine machine_;
  StepOptions options_;
  std::vector<std::int64_t> kinds_;  ///< layers by kind
  std::vector<AttentionKind> attention_;
  std::vector<std::int64_t> windows_;
  RankGroup tensor_group_;
  RankGroup data_group_;
  RankGroup expert_group_;
  RankGroup stage_group_;
  RankGroup context_group_;
  Bytes weights_{0};
  Bytes first_branch_{0};   ///< weights of a mean layer: attention
  Bytes second_branch_{0};  ///< MLP or experts
  CacheBytes cache_;
  bool recurs_ = false;
  Bytes adapter_{0};
  std::unordered_map<std::int64_t, Rows> layers_;
  std::unordered_map<std::int64_t, Part> heads_;
  std::unordered_map<std::int64_t, Part> scans_;    ///< by tokens of prompts
  std::unordered_map<std::int64_t, Part> updates_;  ///< by decodes
  Alike alike_;  ///< the last ones: steps in a row are often alike
  std::map<std::pair<std::int64_t, std::int64_t>, Part> adapters_;
  std::unordered_map<std::int64_t, Timed> absorbed_;
  std::unordered_map<std::int64_t, Time> merged_;
  struct {
    std::int64_t sequences = 0;
    std::int64_t steps = 0;
    double part = 0;
  } cut_;  ///< what cut_keys found last
  graph::Operator decode_;
  std::shared_ptr<StepCost> drafter_;
  std::shared_ptr<const MeasuredKernels> measured_;
  /// Link times are what is simulated; it remembers what it has found.
  mutable std::optional<LinkTimes> on_links_;
};

}  // namespace orrery::step
