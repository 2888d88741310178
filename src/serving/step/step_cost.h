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
/// send shards, where that is faster (residual_stream.h). It does not apply to more than one
/// residual stream.
///
/// `overlap_tensor`: a sum that directly follows its product is a ring whose tiles move while the
/// product runs, and an all-gather after it, in steps where that takes less (tile_ring.h): those of
/// prompts. `tracked` and `tracked_mca` need hypothetical hardware.
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
/// `ffn`: further devices compute MLPs and experts, in micro-batches that go around (ffn_apart.h).
///
/// Inside a captured graph T is padded to the next capture size; a step that is too large for one,
/// or has prompts where these are in none (`eager_prompts`), takes at least `launch` per kernel.
///
/// With `network`, and on a machine with a topology, collectives are simulated on its links, those
/// of all groups of the engine at once (link_times.h), the engine on the first of the devices. What
/// other engines send at that time is not seen. Collectives of `gateway` are not simulated.
///
/// The sum of the kernels' times is that at the rate of the kernel tables; the power of all kernels
/// of the step against the device's cap says which clock is left and how much longer they take
/// (compute/clock.h). Collectives and measured kernels count as running, without work that the
/// clock slows.
///
/// Images are encoded before the pass, all of a step in one pass of the encoder (see_by), which is
/// launched kernel by kernel and whose sequences, an image or a tile each, see all of themselves,
/// or windows that do not overlap.
///
/// A model of text that embeds (pass_operators.h) keeps no keys and values and has a row of each of
/// S texts at its end, read and written, without an output head.
///
/// `kernels`: layers, products and attention that its tables cover take their measured times
/// (measured_kernels.h), attention of plain layers without windows, guesses and cp only.
///
/// Ignores:  unequal contexts of decodes in other kernels; which ranks of experts are busy, that
/// an expert's rows differ from its neighbours'.
/// Requires: check().
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "serving/step/attention_cost.h"
#include "serving/step/pass_operators.h"
#include "serving/step/pass_table.h"
#include "serving/step/weight_window.h"

namespace orrery::step {

struct FfnDevices;

class StepCost {
 public:
  /// Mistakes: models that neither generate nor make rows for one that does (HeadKind::projected),
  /// degrees that do not divide, formats that the device does not compute in.
  static Result<StepCost> make(const zoo::Model& model, const machine::Machine& machine,
                               const StepOptions& options);

  /// Returns the distinct windows of attention layers, 0 (none) first.
  const std::vector<std::int64_t>& windows() const { return parts_->attention.windows(); }

  /// Returns time (of all pipeline stages together), clock, power and energy (of one device) of the
  /// step. Not const: remembers what depends on T and S alone.
  compute::ClockPoint run(const StepShape& shape);
  Time time(const StepShape& shape) { return run(shape).time; }
  /// Tokens of decodes are guessed by `drafter`, or, without one, by a layer more like the model's
  /// and its output head (MTP, EAGLE): their weights and cache are added to the model's.
  void guess_by(std::shared_ptr<StepCost> drafter);
  /// Images of a step are encoded by `encoder`, whose weights are added to the model's.
  void see_by(std::shared_ptr<StepCost> encoder);
  /// Returns what comes before run() for the images of the step; nothing without.
  compute::ClockPoint encode(const StepShape& shape);
  /// Returns how long collectives of run() are on links of a dimension of the machine: the layers'
  /// sums over tp and exchanges of experts' tokens, each in the outermost that it crosses.
  /// Ignores: hops between stages, merges of cp, steps of `ffn`, what `two_batch` hides.
  Time collectives(const StepShape& shape, int dimension);
  /// Returns the time of guessing one token for each decode of the step.
  Time draft(const StepShape& shape);
  /// Returns, with pp > 1, the time of the longest stage, for which the next step must wait.
  Time interval(Time step) const;
  /// Returns T in a graph, else T.
  std::int64_t padded(std::int64_t tokens) const { return step::padded(options(), tokens); }

  Bytes weights_per_device() const { return weights_.all; }
  /// Returns weights and activations, for a step of T tokens of every copy, of a device that
  /// computes MLPs and experts alone; 0: there is none.
  Bytes ffn_bytes(std::int64_t tokens) const;
  Bytes kv_bytes_per_token() const { return cache_.per_token; }
  const CacheBytes& cache() const { return cache_; }
  bool embeds() const { return step::embeds(model()); }
  Bytes adapter_bytes() const { return weights_.adapter; }
  /// Returns, for a step of T tokens and S samples, what is alive at once beside weights and cache,
  /// the most of
  ///
  ///   2 T (3 F / tp + 2 H)                         of a dense layer (2 F where nothing gates)
  ///   2 T dp (k (max(2 F, H) + F) + 2 H)           of k experts a token: rows of all dp copies if
  ///                                                they are gathered, F of an expert's part
  ///
  /// and 10 S V of the logits, or with `profiles_top_p` 40 S V if that is more. Source:
  /// fused_experts of vLLM and SGLang (gate and up share memory with what comes back);
  /// TensorRT-LLM's workspace (moe_kernels.cu) has max(F, H) for the last F.
  Bytes activations(std::int64_t tokens, std::int64_t samples) const;
  /// Returns, for a step of T tokens, the most that an operator of a layer reads and writes on a
  /// device besides weights and cache, which a fused kernel keeps on the chip (compute/spatial.h).
  Bytes kept_on_chip(std::int64_t tokens) const { return parts_->table.kept_on_chip(tokens); }
  /// Returns what a rank runs of a layer of the kind (zoo::layer_kinds), in order: kernels on the
  /// compute stream, one a node, and all-reduces over tp (workload/plan/axes.h). Attention and
  /// recurrences, which see requests apart, are left out, and so are the exchange of experts and
  /// the sum behind them.
  LayerNodes layer_nodes(std::size_t kind, std::int64_t tokens) const {
    return parts_->table.layer_nodes(kind, tokens);
  }
  /// Returns what `fuse` makes of a step of T tokens, and why not of pairs that it cannot fuse.
  std::vector<FusedPlace> fused_places(std::int64_t tokens) const {
    return parts_->table.fused_places(padded(tokens));
  }
  const StepOptions& options() const { return parts_->prices.options(); }
  Power idle_power() const { return machine().device.idle_power; }

 private:
  /// Parts stay where they are when the cost is moved: they refer to the prices.
  struct Parts {
    explicit Parts(PassPrices of) : prices(std::move(of)) {}

    PassPrices prices;
    PassTable table{prices};
    AttentionCost attention{prices};
    RecurrentCost recurrent{prices};
  };

  explicit StepCost(PassPrices prices);
  static Result<StepCost> make_apart(const zoo::Model& model, const machine::Machine& machine,
                                     const StepOptions& options);

  const zoo::Model& model() const { return parts_->prices.model(); }
  const machine::Machine& machine() const { return parts_->prices.machine(); }
  /// Returns whether a step of so many tokens, with prompts or without, is launched as a graph.
  bool is_captured(std::int64_t tokens, bool prompts) const;
  /// Returns what of a step depends on its tokens alone.
  const PassRows& rows_of(const StepShape& shape);
  /// Returns the time of a step whose kernels, of the output head and all, take so long, weights
  /// streamed.
  Time through_window(const PassRows& rows, Time head, Time kernels) const;
  /// Puts two halves of the tokens in the place of a step that exchanges tokens, where that is
  /// faster: one half's exchange, 2 X, runs beside the other's kernels, 2 C, but for the first half
  /// layer's. Attention, output head and sums over tp are among the kernels:
  ///
  ///   max(2 C, 2 X) + min(2 C, 2 X) / (2 layers)
  ///
  /// Ignores: multiprocessors that an exchange takes from the kernels.
  void take_two_batches(const PassRows& rows, std::int64_t tokens, bool captured, Part& total);
  /// Returns run() where MLPs and experts have devices of their own.
  compute::ClockPoint run_apart(const StepShape& shape);
  /// Returns what the devices of attention run of a micro-batch, one of `parts`, in all layers.
  Part attending(const StepShape& shape, std::int64_t tokens, std::int64_t parts);
  /// Returns the step whose kernels take so long beside what the host needs.
  compute::ClockPoint clocked(const Part& kernels, Time host) const;

  std::unique_ptr<Parts> parts_;
  PassWeights weights_;  ///< all: with what guesses
  CacheBytes cache_;
  std::shared_ptr<StepCost> drafter_;
  std::shared_ptr<StepCost> encoder_;
  std::shared_ptr<FfnDevices> apart_;
};

}  // namespace orrery::step
