// SPDX-License-Identifier: Apache-2.0
/// Prices of what a pass of an engine runs: kernels of a rank's share of an operator, and
/// collectives of its groups (step_cost.h says which and why).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collective/cost.h"
#include "machine/machine.h"
#include "serving/step/link_times.h"
#include "serving/step/measured_kernels.h"
#include "serving/step/step_options.h"
#include "serving/step/timed.h"
#include "workload/plan/plan.h"
#include "workload/plan/routing.h"
#include "workload/zoo/builder.h"

namespace orrery::step {

class PassPrices {
 public:
  /// `machine` has as many devices as the engine.
  PassPrices(const zoo::Model& model, machine::Machine machine, const StepOptions& options,
             std::shared_ptr<const MeasuredKernels> measured);

  const zoo::Model& model() const { return model_; }
  const machine::Machine& machine() const { return machine_; }
  const StepOptions& options() const { return options_; }
  const MeasuredKernels* measured() const { return measured_.get(); }
  const RankGroup& context_group() const { return context_group_; }
  const RankGroup& tensor_group() const { return tensor_group_; }
  /// Returns the ranks between which add_exchange() moves tokens.
  const RankGroup& exchange_group() const {
    return options_.dispatch == plan::MoeDispatch::all_gather ? data_group_ : expert_group_;
  }
  /// Returns the number of layers by kind (zoo::layer_kinds).
  const std::vector<std::int64_t>& kinds() const { return kinds_; }
  zoo::LayerKind kind_of(std::size_t kind) const {
    return zoo::kind_of(model_, static_cast<int>(kind));
  }
  bool is_recurrent(std::size_t kind) const {
    const zoo::MixerKind mixer = kind_of(kind).mixer;
    return mixer == zoo::MixerKind::mamba || mixer == zoo::MixerKind::gated_delta;
  }
  /// Says of layers of a kind whether tables have their attention: plain, without window and cp.
  bool measures_attention(std::size_t kind) const;
  /// Returns the number of key-value heads of a rank in layers of this kind, copied where there are
  /// fewer than ranks.
  std::int64_t kv_heads(const zoo::LayerKind& kind) const;
  /// Mistakes: collectives that the network cannot run.
  Result<void> check_links() const;

  plan::Plan plan_for(std::int64_t tokens) const;
  /// Adds all that is_left_out() does not leave out.
  void add_operators(Part& part, const std::vector<zoo::ModelOperator>& operators,
                     const plan::Plan& plan) const;
  /// Returns the kernels that an operator of the whole model is on a rank.
  std::vector<graph::Operator> kernels_of(zoo::ModelOperator op, const plan::Plan& plan) const;
  /// Writes what a layer of this kind keeps of so many tokens.
  graph::Operator cache_write_kernel(const zoo::LayerKind& kind, std::int64_t tokens) const;
  Timed kernel(graph::Operator op) const;
  Timed timed(const graph::Operator& op) const;
  /// Returns the time of a kernel that reads and writes so many bytes.
  Timed elementwise(Bytes bytes, int kernels = 1) const;
  /// Returns bf16, on devices without it fp16, without both fp32.
  graph::DataType wide_type() const;

  /// Returns the bytes that a sum over the tensor-parallel group adds up.
  Bytes summed_bytes(std::int64_t tokens) const;
  void add_all_reduce(Part& part, std::int64_t tokens) const;
  /// Adds a sum over tp, whose product (none: null) is counted: what both take less that.
  void add_sum(Part& part, const graph::Operator* product, std::int64_t tokens) const;
  /// Adds the exchange of dp > 1: every copy gets all tokens before the experts, and the sums of
  /// its own ones after them.
  void add_exchange(Part& part, std::int64_t tokens) const;
  /// Returns the time of a collective of every group of its kind: closed forms, or simulated.
  Time moved(
      graph::CollectiveKind kind, Bytes size, const RankGroup& group,
      collective::CollectiveAlgorithm algorithm = collective::CollectiveAlgorithm::automatic) const;
  /// Returns the same over tp; `all_reduce` by the engine's algorithm.
  Time over_tensor(graph::CollectiveKind kind, Bytes size) const;
  /// Returns the time from a stage to the next.
  Time hop(std::int64_t tokens) const;

 private:
  /// Returns the bytes of one move between tokens and the rows of a rank's experts, as kernels of
  /// them were measured (tools/fit_moe.py): 2 (T + R) H, of which R = T top_k / ep are rows of the
  /// busiest rank, T the tokens of all dp copies, H the width in which experts work.
  Bytes moved_rows(const plan::Plan& plan) const;
  /// Returns the tokens of a step of all dp copies.
  double tokens_of_all(const plan::Plan& plan) const;
  /// Leaves in `gemm`, the product of a rank's experts, those of all ranks' that the tokens reach,
  /// each with an equal part of their rows.
  void reach_experts(const plan::Plan& plan, graph::GemmShape& gemm) const;
  /// Returns what Triton's kernel without a tuned file takes at least for weights of 16 bits, of
  /// the rank that has most experts to read; zero for others, which have kernels of their own,
  /// measured with the loads of a busy rank.
  Time untuned_experts(const graph::Operator& product, const plan::Plan& plan) const;
  /// Returns the kernels of a rank's share of a product.
  std::vector<graph::Operator> gemm_kernels(const zoo::ModelOperator& op,
                                            const plan::Plan& plan) const;
  /// Returns what a product and the sum of its result take with `overlap_tensor`; the longest time
  /// where nothing overlaps.
  Time overlapped(graph::Operator product, std::int64_t tokens) const;
  /// Returns the time of an all-reduce of `gateway`.
  Time reduced_at_home(Bytes size) const;
  /// Returns the time of tokens to their experts node by node, or back.
  Time exchanged(Bytes size) const;

  zoo::Model model_;
  machine::Machine machine_;
  StepOptions options_;
  std::optional<plan::Routing> routing_;  ///< none: no experts
  std::vector<std::int64_t> kinds_;
  RankGroup tensor_group_;
  RankGroup data_group_;
  RankGroup expert_group_;
  RankGroup stage_group_;
  RankGroup context_group_;
  std::shared_ptr<const MeasuredKernels> measured_;
  /// Link times are what is simulated; it remembers what it has found.
  mutable std::optional<LinkTimes> on_links_;
};

}  // namespace orrery::step
