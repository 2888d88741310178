// SPDX-License-Identifier: Apache-2.0
/// Every reason why a plan cannot run a model.
#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/collect.h"
#include "machine/machine.h"
#include "workload/plan/defaults.h"
#include "workload/plan/layout.h"
#include "workload/plan/lora.h"
#include "workload/plan/low_bandwidth.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/optimizer.h"
#include "workload/plan/plan.h"
#include "workload/plan/plan_lists.h"
#include "workload/plan/recompute.h"
#include "workload/plan/rounds.h"
#include "workload/plan/schedule_row.h"
#include "workload/plan/shard.h"
#include "workload/plan/shares.h"
#include "workload/plan/tensor_overlap.h"
#include "workload/plan/unquantized.h"

namespace orrery::plan {
namespace {

constexpr std::int64_t kMostDegree = std::int64_t{1} << 20;
constexpr std::int64_t kMostSequences = std::int64_t{1} << 30;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;  // of one microbatch
constexpr std::int64_t kMostParts = 4096;                    // stages x chunks
constexpr std::int64_t kMostChunks = 64;                     // of a tp collective

class Checker {
 public:
  Checker(const Plan& plan, const zoo::Model& model) : plan_(plan), model_(model) {}

  Result<void> run() {
    ranges();
    if (error_.empty()) {  // the rest divides and multiplies
      tensor();
      experts();
      context();
      pipeline();
      batch();
      zero();
      remote_memory();
      number_formats();
      sequence();
      documents();
      error_.add(layout_mistakes(plan_));
      error_.add(round_mistakes(plan_, model_));
      error_.add(low_bandwidth_mistakes(plan_));
      collect(check_lora(plan_, model_), error_);
      collect(check_unquantized(plan_, model_), error_);
      collect(check_recompute(plan_, model_), error_);
    }
    return or_mistakes(std::move(error_));
  }

 private:
  /// The text is made where it is wanted: searches check millions of plans.
  template <class T, class... Values>
  void require(bool ok, std::string_view field, const T& found,
               fmt::format_string<const Values&...> expected, const Values&... values) {
    if (!ok) {
      error_.add(
          {{}, std::string(field), fmt::format("{}", found), fmt::format(expected, values...)});
    }
  }
  void in_range(std::string_view field, std::int64_t value, std::int64_t least, std::int64_t most) {
    require(value >= least && value <= most, field, value, "a number from {} to {}", least, most);
  }

  void ranges() {
    require(plan_.strategy.empty(), "strategy", plan_.strategy,
            "none: a program of `orrery spmd` runs under simulate, compare and sweeps of it");
    in_range("tp", plan_.tp, 1, kMostDegree);
    in_range("pp", plan_.pp, 1, kMostDegree);
    in_range("dp", plan_.dp, 1, kMostDegree);
    in_range("cp", plan_.cp, 1, kMostDegree);
    in_range("ep", plan_.ep, 1, kMostDegree);
    in_range("etp", plan_.etp, 0, kMostDegree);
    in_range("cp_a2a", plan_.cp_a2a, 1, kMostDegree);
    in_range("tp_chunks", plan_.tp_chunks, 1, kMostDegree);
    in_range("recompute_layers", plan_.recompute_layers, 0, kMostDegree);
    require(plan_.moe_capacity >= 0 && plan_.moe_capacity <= 1e3, "moe_capacity",
            plan_.moe_capacity, "0 (dropless) or a factor");
    require(plan_.moe_imbalance >= 1 && plan_.moe_imbalance <= 1e3, "moe_imbalance",
            plan_.moe_imbalance, "a factor of 1 or more");
    require(plan_.moe_spread >= 0 && plan_.moe_spread <= 1e3, "moe_spread", plan_.moe_spread,
            "a standard deviation over the mean, 0 or more");
    require(plan_.offload_activations >= 0 && plan_.offload_activations <= 1, "offload_activations",
            plan_.offload_activations, "a share from 0 to 1");
    in_range("chunks", plan_.chunks, 1, kMostDegree);
    in_range("microbatch", plan_.microbatch, 1, kMostDegree);
    in_range("global_batch", plan_.global_batch, 1, kMostSequences);
    in_range("batch_kernels", plan_.batch_kernels, 0, kMostDegree);
    in_range("sequence", plan_.sequence, 0, kMostSequences);
    in_range("zero", plan_.zero, 0, 3);
    if (plan_.as_of != 0) {
      in_range("as_of", plan_.as_of, kFirstYear, kLastYear);
    }
    in_range("vocab_multiple", plan_.vocab_multiple, 1, kMostDegree);
    in_range("bucket_parameters", plan_.bucket_parameters, 0, kMostSequences);
    in_range("bucket_parameters_per_rank", plan_.bucket_parameters_per_rank, 0, kMostSequences);
    require(!plan_.autocast || plan_.master_params, "autocast", plan_.autocast,
            "false without master_params: there are no copies");
    require(plan_.bucket >= Bytes(0), "bucket", plan_.bucket.value(), "a size, or 0");
    require(plan_.host_dispatch >= Time(0) && plan_.host_dispatch <= 1_s, "host_dispatch",
            to_seconds(plan_.host_dispatch), "a time from 0 to 1 s");
    require(graph::size_of(plan_.compute_type) >= 2_B, "compute_type", name_of(plan_.compute_type),
            "bf16, fp16, tf32 or fp32; `quantization` runs GEMMs in fewer bits");
    for (const auto& [field, algorithm] : {std::pair{"tp_algorithm", plan_.tp_algorithm},
                                           std::pair{"dp_algorithm", plan_.dp_algorithm}}) {
      require(algorithm != collective::CollectiveAlgorithm::pairwise, field, name_of(algorithm),
              "an algorithm that reduces; pairwise exchanges are for all-to-all");
    }
    if (!error_.empty()) {
      return;
    }
    const Bytes devices = Bytes(plan_.tp) * plan_.cp * plan_.pp * plan_.dp;  // saturates
    require(devices.value() <= machine::kMostDevices, "tp x cp x pp x dp", devices.value(),
            "at most {} devices", machine::kMostDevices);
    require(plan_.pp * plan_.chunks <= kMostParts, "pp x chunks", plan_.pp * plan_.chunks,
            "at most {} parts of the model", kMostParts);
  }

  void tensor() {
    for (const zoo::TensorExtent& extent : zoo::tensor_extents(model_)) {
      require(extent.extent % plan_.tp == 0, "tp", plan_.tp, "a divisor of {} {}", extent.extent,
              extent.what);
    }
    require(!plan_.sequence_parallel || plan_.tp > 1, "sequence_parallel", true,
            "tp of 2 or more: it splits over the tensor-parallel ranks");
    require(plan_.tp_chunks == 1 || plan_.tp > 1, "tp_chunks", plan_.tp_chunks,
            "1 without tensor parallelism: there is no collective to cut");
    require(plan_.overlap_tensor == TensorOverlap::none || plan_.tp > 1, "overlap_tensor",
            name_of(plan_.overlap_tensor),
            "none without tensor parallelism: no product's result is summed over tp");
    require(!follows_tiles(plan_.overlap_tensor) || plan_.tp_chunks == 1, "overlap_tensor",
            name_of(plan_.overlap_tensor),
            "none or chunked with tp_chunks above 1, which cuts the same products into kernels of "
            "their own");
    require(tensor_pieces(plan_) <= kMostChunks, "tp_chunks", tensor_pieces(plan_),
            "at most {} pieces", kMostChunks);
  }

  void number_formats() {
    const bool quantizes = plan_.quantization != Quantization::none;
    require(!quantizes || graph::size_of(plan_.compute_type) == 2_B, "quantization",
            name_of(plan_.quantization), "none, or a compute_type of 16 bits");
    require(!plan_.quantized_params || quantizes, "quantized_params", true,
            "a quantization other than none");
    require(!plan_.fused_conversions || quantizes, "fused_conversions", true,
            "false, or a quantization other than none");
    require(!plan_.quantized_params || plan_.zero >= 1, "quantized_params", true,
            "zero of 1 or more: whole parameters are not gathered");
    const Bytes master = graph::size_of(plan_.master_type);
    require(master >= 2_B && plan_.master_type != graph::DataType::tf32, "master_type",
            name_of(plan_.master_type), "fp32, bf16 or fp16");
    require(master >= graph::size_of(plan_.compute_type), "master_type", name_of(plan_.master_type),
            "a type at least as wide as compute_type");
    require(plan_.moment_type != graph::DataType::fp4 && plan_.moment_type != graph::DataType::tf32,
            "moment_type", name_of(plan_.moment_type), "fp32, bf16, fp16 or fp8");
    optimizer();
  }

  void optimizer() {
    const std::string_view name = name_of(plan_.optimizer);
    require(is_adam(plan_) || plan_.offload_optimizer == Offload::none, "optimizer", name,
            "adam with offload_optimizer: hosts have kernels of Adam alone");
    require(plan_.optimizer != Optimizer::muon || plan_.zero < 3, "optimizer", name,
            "another with zero 3, whose shards are parts of the matrices that muon needs whole");
  }

  void experts() {
    if (model_.experts == 0) {
      const Plan plain;
      require(plan_.ep == 1, "ep", plan_.ep, "1: the model has no experts");
      require(plan_.etp <= 1, "etp", plan_.etp, "0 or 1: the model has no experts");
      require(plan_.moe_capacity == plain.moe_capacity, "moe_capacity", plan_.moe_capacity,
              "0: the model has no experts");
      require(plan_.moe_imbalance == plain.moe_imbalance, "moe_imbalance", plan_.moe_imbalance,
              "1: the model has no experts");
      require(plan_.moe_spread == plain.moe_spread, "moe_spread", plan_.moe_spread,
              "0: the model has no experts");
      return;
    }
    require(model_.experts % plan_.ep == 0, "ep", plan_.ep, "a divisor of the {} experts",
            model_.experts);
    for (const zoo::TensorExtent& extent : zoo::expert_extents(model_)) {
      require(extent.extent % expert_tensor_parallel(plan_) == 0, "etp",
              expert_tensor_parallel(plan_), "a divisor of {} {}", extent.extent, extent.what);
    }
    require(plan_.tp == 1 || plan_.sequence_parallel, "sequence_parallel", false,
            "true with tp > 1: the tokens that experts get are split over the tp ranks");
    require(plan_.moe_capacity == 0 || plan_.moe_imbalance == 1, "moe_imbalance",
            plan_.moe_imbalance, "1 with moe_capacity: every expert gets its capacity");
    require(plan_.moe_spread == 0 || (plan_.moe_capacity == 0 && plan_.moe_imbalance == 1),
            "moe_spread", plan_.moe_spread, "0 with moe_capacity or moe_imbalance");
  }

  void context() {
    const std::int64_t tokens = sequence_of(model_, plan_);
    if (plan_.cp == 1) {
      require(plan_.cp_a2a == 1, "cp_a2a", plan_.cp_a2a, "1 without context parallelism");
      return;
    }
    require(zoo::is_fused(plan_.attention), "attention", name_of(plan_.attention),
            "flash with cp > 1: partial results are merged by its row sums");
    require(tokens % (2 * plan_.cp) == 0, "sequence", tokens,
            "a multiple of 2 x cp = {}: every rank has two pieces", 2 * plan_.cp);
    require(plan_.cp_exchange == ContextExchange::a2a_p2p || plan_.cp_a2a == 1, "cp_a2a",
            plan_.cp_a2a, "1, or cp_exchange a2a+p2p");
    require(plan_.cp % plan_.cp_a2a == 0, "cp_a2a", plan_.cp_a2a, "a divisor of cp = {}", plan_.cp);
    const std::int64_t heads = plan_.cp_exchange == ContextExchange::a2a ? plan_.cp : plan_.cp_a2a;
    if (heads == 1) {
      return;
    }
    for (const zoo::TensorExtent& extent : zoo::tensor_extents(model_)) {
      const bool of_heads =
          extent.dim == graph::Dim::heads || extent.dim == graph::Dim::key_value_heads;
      require(!of_heads || extent.extent % (plan_.tp * heads) == 0, "cp_exchange",
              name_of(plan_.cp_exchange),
              "an all-to-all over ranks that with tp divide {} {} (here {} x {})", extent.extent,
              extent.what, plan_.tp, heads);
    }
  }

  void pipeline() {
    const ScheduleRow& row = row_of(plan_.schedule);
    if (row.most_chunks == 1 && plan_.chunks != 1) {
      require(false, "chunks", plan_.chunks, "1, or schedule {}",
              schedules_that([](const ScheduleRow& any) { return any.most_chunks > 1; }));
    }
    require(row.most_chunks == 1 ||
                (plan_.chunks >= row.least_chunks && plan_.chunks <= row.most_chunks),
            "chunks", plan_.chunks, "{}{} with schedule {}", row.least_chunks,
            row.least_chunks < row.most_chunks ? " or more" : "", row.name);
    require(plan_.pp >= row.least_stages, "pp", plan_.pp, "{} or more with schedule {}",
            row.least_stages, row.name);
    require(!row.both_ends || plan_.pp % 2 == 0, "pp", plan_.pp,
            "an even number with schedule {}: stage s is paired with pp-1-s", row.name);
    if (plan_.overlap_ep == OverlapExperts::microbatch && !row.in_pairs) {
      require(false, "schedule", name_of(plan_.schedule), "{} with overlap_ep microbatch",
              schedules_that([](const ScheduleRow& any) { return any.in_pairs; }));
    }
    collect(split_layers(model_, plan_), error_);
  }

  void shares() {
    const auto shares = replica_microbatches(plan_);
    if (!shares) {
      error_.add(shares.error());
      return;
    }
    require(plan_.ep == 1, "batch_shares", plan_.batch_shares,
            "even shares with ep > 1: replicas exchange tokens in every microbatch");
    require(plan_.zero < 2, "batch_shares", plan_.batch_shares,
            "even shares with zero 2 and 3, whose replicas exchange in every microbatch");
    for (const std::int64_t distinct : std::set<std::int64_t>(shares->begin(), shares->end())) {
      if (auto one = check(with_microbatches(plan_, distinct), model_); !one && error_.empty()) {
        error_.add(std::move(one.error()));
      }
    }
  }

  void batch() {
    if (!plan_.batch_shares.empty() && plan_.batch_shares != "auto") {
      return shares();
    }
    const std::int64_t together = plan_.dp * plan_.microbatch;
    require(plan_.global_batch % together == 0, "global_batch", plan_.global_batch,
            "a multiple of dp x microbatch = {}", together);
    const ScheduleRow& row = row_of(plan_.schedule);
    if (plan_.global_batch % together == 0 && row.by_rounds) {
      require(plan_.microbatches() % plan_.pp == 0, "global_batch", plan_.global_batch,
              "microbatches per replica (here {}) in a multiple of pp = {}: the "
              "{} schedule takes them in groups of pp",
              plan_.microbatches(), plan_.pp, row.name);
    }
    if (plan_.global_batch % together == 0 && row.both_ends) {
      require(plan_.microbatches() % 2 == 0, "global_batch", plan_.global_batch,
              "an even number of microbatches per replica (here {}): half of them "
              "enter {} at either end",
              plan_.microbatches(), row.name);
    }
  }

  void zero() {
    require(plan_.reshard_after_forward || plan_.zero == 3, "reshard_after_forward", false,
            "zero of 3: others do not gather parameters");
    require(!plan_.overlap_param_gather || plan_.zero >= 1, "overlap_param_gather", true,
            "zero of 1 or more: whole parameters are not gathered");
  }

  void remote_memory() {
    const bool remote = plan_.offload_params == Offload::remote;
    require(remote || plan_.offload_params == Offload::none, "offload_params",
            name_of(plan_.offload_params), "none or remote");
    require(remote || !plan_.pool_collectives, "pool_collectives", true,
            "offload_params remote: other gathers do not touch the remote memory");
    if (!remote) {
      return;
    }
    require(plan_.zero == 3 && plan_.reshard_after_forward, "zero", plan_.zero,
            "3, with reshard_after_forward, for offload_params: parameters go when they were used");
    require(plan_.offload_optimizer == Offload::remote, "offload_optimizer",
            name_of(plan_.offload_optimizer), "remote, as offload_params");
    require(plan_.shard_params == 0 && plan_.shard_grads == 0 && plan_.shard_optimizer == 0,
            "offload_params", "remote", "shards over all ranks (shard_* of 0)");
    require(!splits_backward(plan_.schedule), "schedule", name_of(plan_.schedule),
            "one that does not split the backward, for offload_params");
  }

  void sequence() {
    const std::int64_t tokens = sequence_of(model_, plan_);
    require(tokens >= 1, "sequence", plan_.sequence,
            "a sequence length: the model does not state one");
    if (model_.position == zoo::PositionKind::learned) {
      require(tokens <= model_.max_positions, "sequence", tokens,
              "at most {}, the rows of the model's position table", model_.max_positions);
    }
    const std::int64_t pieces = plan_.tp * plan_.cp;
    require(!plan_.sequence_parallel || tokens % pieces == 0, "sequence", tokens,
            "a multiple of tp x cp = {} for sequence_parallel", pieces);
    require(tokens <= kMostTokens / plan_.microbatch, "microbatch", plan_.microbatch,
            "at most {} tokens per microbatch", kMostTokens);
  }

  void documents() {
    if (plan_.documents.empty()) {
      return;
    }
    auto lengths = documents_of(plan_);
    if (!lengths) {
      error_.add(std::move(lengths.error()));
      return;
    }
    const std::int64_t tokens = sequence_of(model_, plan_);
    Bytes sum{0};  // saturates
    for (const std::int64_t length : *lengths) {
      sum += Bytes(length);
    }
    require(sum == Bytes(tokens), "documents", plan_.documents,
            "lengths that sum to the sequence's {} tokens (here {})", tokens, sum.value());
    require(zoo::is_fused(plan_.attention), "documents", plan_.documents,
            "attention flash: unfused kernels compute the whole square, whatever is masked");
  }

  const Plan& plan_;
  const zoo::Model& model_;
  Error error_;
};

}  // namespace

Result<void> check(const Plan& plan, const zoo::Model& model) {
  return Checker(plan, model).run();
}

}  // namespace orrery::plan
