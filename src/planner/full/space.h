// SPDX-License-Identifier: Apache-2.0
/// Says which plans a search looks at.
///
///   shape    tp, cp, ep, etp, pp, dp, microbatch, schedule, chunks, order, exchanges: what decides
///            the kernels and where they run
///   variant  recompute, ZeRO stage, offload, and fields of `only`: what decides memory and the end
///            of the step
///
/// Values that are tried where a field is not fixed:
///   tp, cp, pp     divisors of the devices that the model divides by; dp is the rest
///                  cp: at least 128 tokens in each of a rank's two pieces
///                  pp: at least a layer a stage
///   ep, etp        divisors of the experts; an expert whole or cut as the rest of the layer
///   microbatch     divisors of a replica's sequences, up to 65,536 tokens of a rank
///   schedule       1f1b, interleaved, zb-h1, zb-v, v-half, v-min, dualpipe
///   stage_layers, batch_shares   even; on a machine of several sorts of devices also in proportion
///                  to what they do (workload/parallel/proportion.h)
///   chunks         divisors of a stage's layers, and powers of two up to 16; layers even, and auto
///   order          tp-cp-dp-pp, and tp-cp-pp-dp where both pp and dp are above 1
///   cp_exchange    p2p, all_gather, a2a;  moe_dispatch: alltoall, hierarchical (ep > 1)
///   overlap_ep     true; microbatch where the schedule can
///   overlap_tensor none; tracked_mca where the device states a tracker (tp > 1)
///   recompute      none; of modules (kModulesAgain); all of the first n layers of each chunk, for
///                  the least n that fits (fewer are never slower)
///   zero           0 to 3;  offload_optimizer: none, cpu;  offload_activations: 0, 0.5, 1
///   tp_chunks, fused_cross_entropy   1 and tp; true: on the best plans found (changes())
///   framework      the given one; of --only framework=nemo,torchtitan each with what it runs, its
///                  kernels and costs (search_rounds.cc)
///   local_steps    of co2, where data_parallel_update is that: the fewest that hide its all-reduce
///                  (search_rounds.cc); so with --only data_parallel_update=every_step,co2
///
/// Not tried unless `only` names them: what changes results (types, quantization, capacity), what a
/// kernel library may lack (fused_kernels, overlap_tensor cu_split), gpipe (1F1B runs the same
/// kernels and keeps no more). Always on where the plan allows it and nothing is fixed:
/// overlap_p2p, overlap_grad_reduce, overlap_param_gather, sequence_parallel.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/lists.h"
#include "base/reader.h"
#include "base/result.h"
#include "machine/machine.h"
#include "workload/parallel/proportion.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::full {

/// Lists of modules that are tried where recompute and recompute_modules are open.
inline constexpr auto kModulesAgain = std::to_array<std::string_view>(
    {"", "layernorm", "mlp", "layernorm,mlp", "moe_act", "moe", "layernorm,moe_act", "mla_up_proj",
     "layernorm,mla_up_proj,moe_act"});

struct Task {
  zoo::Model model;
  machine::Machine machine;
  std::int64_t devices = 1;
  plan::PlacedPlan fixed;  ///< fields with a place keep their value
  /// The values to try, by field, as a plan file would state them.
  std::map<std::string, std::vector<std::string>, std::less<>> only{};
  /// The framework whose capabilities (workload/interop/capabilities.h) limit the space; "" = none.
  std::string launcher{};
};

/// Sets one field from its text. Mistakes: unknown fields, with "did you mean", and bad values.
Result<void> set_field(plan::Plan& plan, const std::string& field, const std::string& text,
                       const std::string& where);

class Space {
 public:
  /// Mistakes: of `only`; fields both fixed and in `only`.
  static Result<Space> of(const Task& task);

  /// Splits of the devices and of the batch: everything of a shape but how it is scheduled and
  /// exchanged, in a fixed order.
  std::vector<plan::Plan> groups() const;

  /// Shapes of a group, checked or not; their variant is the plainest one.
  std::vector<plan::Plan> shapes(const plan::Plan& group) const;

  std::vector<std::string> orders(const plan::Plan& group) const;
  std::vector<plan::ContextExchange> context_exchanges(const plan::Plan& group) const;
  std::vector<plan::MoeDispatch> dispatches(const plan::Plan& group) const;
  std::vector<plan::TensorOverlap> tensor_overlaps(const plan::Plan& group) const;
  std::vector<std::int64_t> zeros(const plan::Plan& shape) const;
  std::uint64_t variant_count(const plan::Plan& shape) const;
  /// Returns the plan with each combination of the fields of `only` that nothing else here chooses.
  std::vector<plan::Plan> with_others(const plan::Plan& plan) const;

  /// Variants of a shape, without those that differ in recompute_layers alone: of these the one
  /// with 1 (and 0 = all of the chunk's layers).
  std::vector<plan::Plan> variants(const plan::Plan& shape) const;

  /// Return these variants in two steps. What a plan does not say of recompute and of activations
  /// on the host is open in these; the others are what they become by each saving of memory, 0 to
  /// savings() - 1.
  std::vector<plan::Plan> variants_to_save(const plan::Plan& shape) const;
  std::size_t savings() const { return recomputes_.size() * shares_.size(); }
  plan::Plan with_saving(plan::Plan variant, std::size_t saving) const;
  /// Returns whether b repeats all that a repeats, copies all that a copies, and more: a plan with
  /// b is never faster than one with a.
  bool saves_less(std::size_t a, std::size_t b) const;

  /// Variants of which one needs the least memory of all, the most promising first; the same among
  /// what a variant becomes by savings.
  std::vector<plan::Plan> frugal(const plan::Plan& shape) const;
  std::vector<plan::Plan> most_saving(plan::Plan variant) const;

  /// Returns a group's plainest plan, for what depends on its kernels and states alone.
  static plan::Plan plainest(plan::Plan group);

  /// Returns the mistakes of the plan that the fixed fields and the defaults make, and of fixed
  /// fields what the launcher cannot run.
  Error base_mistakes() const;

  /// Returns the plans with one other field changed that is neither fixed nor part of shapes and
  /// variants: overlaps, buckets, pieces of messages.
  std::vector<plan::Plan> changes(const plan::Plan& plan) const;

  /// Returns how many of a chunk's layers may be recomputed where that is open and not all of them
  /// are; else 0.
  std::int64_t layers_to_recompute(const plan::Plan& plan) const;

 private:
  struct Recomputing {
    plan::Recompute recompute = plan::Recompute::none;
    std::string modules{};
    std::set<std::string> again{};  ///< operators that run twice; of full ones none is named
  };
  struct Variation {
    std::string field;
    std::vector<std::string> values;
  };

  explicit Space(const Task& task);
  Result<void> fill();
  /// Returns the values of overlap_tensor in `only` that need hardware the machine does not state.
  Error tracked_without_tracker() const;
  Error out_of_range(const plan::Plan& plan) const;
  Error mistakes_of(const std::string& field, const std::vector<std::string>& values) const;
  void fill_recompute();

  bool is_open(std::string_view field) const;
  void split_stages(plan::Plan plan, std::vector<plan::Plan>& groups) const;
  void split_batch(const plan::Plan& plan, std::vector<plan::Plan>& groups) const;
  void split_experts(const plan::Plan& plan, std::vector<plan::Plan>& groups) const;
  /// Gives open fields what the launcher decides itself.
  void impose(plan::Plan& plan) const;
  bool can_launch(const plan::Plan& plan) const;
  void share_batch(const plan::Plan& plan, std::vector<plan::Plan>& shapes) const;
  void exchanges(const plan::Plan& plan, std::vector<plan::Plan>& shapes) const;
  std::vector<std::string> layer_splits(plan::Plan plan) const;
  std::vector<std::string> batch_splits(plan::Plan plan) const;
  std::vector<plan::Offload> optimizer_places() const;

  /// Returns the values of `only`, the fixed one, or these.
  template <class T>
  std::vector<T> values(std::string_view field, T plan::Plan::*member, std::vector<T> usual) const;

  Task task_;
  std::shared_ptr<const Task> owner_;                 ///< of what proportion_ refers to
  std::shared_ptr<parallel::Proportion> proportion_;  ///< of a machine of several sorts of devices
  plan::Plan base_;
  std::vector<Recomputing> recomputes_;
  std::vector<double> shares_;     ///< of activations on the host
  std::vector<Variation> others_;  ///< fields of `only` that nothing else here chooses
};

template <class T>
std::vector<T> Space::values(std::string_view field, T plan::Plan::*member,
                             std::vector<T> usual) const {
  if (const auto only = task_.only.find(field); only != task_.only.end()) {
    return mapped(only->second, [&](const std::string& text) { return *parse_value<T>(text); });
  }
  return is_open(field) ? std::move(usual) : std::vector<T>{base_.*member};
}

/// Returns every plan with every value of a field.
template <class T>
std::vector<plan::Plan> with_each(const std::vector<plan::Plan>& plans, T plan::Plan::*member,
                                  const std::vector<T>& values) {
  std::vector<plan::Plan> all;
  all.reserve(plans.size() * values.size());
  for (const plan::Plan& plan : plans) {
    for (const T& value : values) {
      all.push_back(plan);
      all.back().*member = value;
    }
  }
  return all;
}

}  // namespace orrery::full
