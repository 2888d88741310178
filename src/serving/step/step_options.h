// SPDX-License-Identifier: Apache-2.0
/// StepOptions are how an engine runs its steps, StepShape what is in one of them (step_cost.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/units.h"
#include "collective/cost.h"
#include "serving/step/link_times.h"
#include "serving/step/precision.h"
#include "workload/plan/plan.h"

namespace orrery::step {

struct Degrees {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;  ///< copies of the attention part that share the experts, in lockstep
  std::int64_t ep = 1;  ///< divides tp x dp: parts of the experts; their widths over the others
  std::int64_t cp = 1;  ///< ranks that share prompts and caches
  /// Devices beside tp x dp that compute MLPs and experts, and these then attention alone
  /// (ffn_apart.h); 0: none.
  std::int64_t ffn = 0;
};

/// All-reduces of devices behind gateways.
enum class Gateway : std::uint8_t { none, fastest, star, tree, ring };
constexpr auto named_values(Gateway) {
  return std::to_array<Named<Gateway>>({
      {Gateway::none, "none", "devices have no gateways"},
      {Gateway::fastest, "fastest", "of star, tree and ring, for each size"},
      {Gateway::star, "star", "to the master and back"},
      {Gateway::tree, "tree", "two levels up and down"},
      {Gateway::ring, "ring", "reduce-scatter and all-gather around a ring"},
  });
}

/// Experts of few tokens that have kernels which stream weights (compute/streamed_experts.h).
enum class StreamedExperts : std::uint8_t { none, fp4, all };
constexpr auto named_values(StreamedExperts) {
  return std::to_array<Named<StreamedExperts>>({
      {StreamedExperts::none, "none", "grouped products for all"},
      {StreamedExperts::fp4, "fp4",
       "experts of 4 bits; others in Triton's and Marlin's kernels, as vLLM and SGLang have"},
      {StreamedExperts::all, "all", "experts of 4 bits and of 8 with scales of blocks"},
  });
}

struct StepOptions {
  Degrees degrees;
  Precision precision;
  std::vector<std::int64_t> captures;  ///< sizes of graphs, ascending; empty: eager
  collective::CollectiveAlgorithm all_reduce = collective::CollectiveAlgorithm::custom;
  plan::MoeDispatch dispatch = plan::MoeDispatch::all_gather;
  bool one_launch = false;         ///< prompts and decodes attend in one launch
  std::int64_t graph_context = 0;  ///< keys that graphs of decodes are made for; 0: the longest's
  bool whole_windows = false;      ///< layers with windows keep all keys and values
  bool fuse = false;               ///< sums become shards where that is faster (above)
  /// A sum follows the tiles of its product like this where that is faster (pass_transfers.cc).
  plan::TensorOverlap overlap_tensor = plan::TensorOverlap::none;
  /// Tokens that dp copies exchange are of one half of a step's while the other half's kernels run,
  /// where that is faster (SGLang's two-batch overlap, vLLM's dual batch overlap).
  bool two_batch = false;
  std::int64_t micro_batches = 3;  ///< with ffn: parts of a step's tokens that go around
  bool eager_prompts = false;      ///< steps with prompts are in no graph
  StreamedExperts streamed_experts = StreamedExperts::fp4;
  bool fused_casts = false;      ///< operands of 8 bits with one scale are written as such
  bool sorted_sampling = false;  ///< logits are sorted for top-p (PassTable::head)
  bool profiles_top_p = false;   ///< and were so when the free memory was found (activations())
  /// Products of 4 bits, but of experts, of m rows take 1 + fp4_lag min(1, 128 / m) times as long.
  double fp4_lag = 0;
  Time launch = 5_us;             ///< host time per kernel outside a graph
  std::int64_t adapter_rank = 0;  ///< of low-rank adapters of every matrix; 0: none
  double imbalance = 1;           ///< rows of the busiest expert rank over the mean; or
  double spread = 0;              ///< of experts' loads (plan::Routing); 0: as `bias` has it
  double bias = 0;                ///< the share of a router's scores that experts have of their own
  std::int64_t redundant = 0;     ///< copies of experts, each as an expert more
  std::string kernels{};          ///< files of measured kernels; empty: none
  Gateway gateway = Gateway::none;
  std::int64_t window = 0;  ///< blocks of weights in memory; 0: all stay there
  std::int64_t retain = 0;  ///< with a window: the MLP of every so many-th layer stays; 0: none
  /// Collectives go over this network; none: closed forms of the dimensions, on a topology flow.
  std::optional<simulate::NetworkModel> network{};
};

/// Returns T, in a graph the next size of one.
inline std::int64_t padded(const StepOptions& options, std::int64_t tokens) {
  const auto found = std::ranges::lower_bound(options.captures, tokens);
  return found == options.captures.end() ? tokens : *found;
}

/// A chunk of a prompt.
struct Prompt {
  std::int64_t queries = 0;
  std::int64_t context = 0;  ///< tokens before it
};

struct StepShape {
  std::int64_t tokens = 0;   ///< T
  std::int64_t samples = 0;  ///< S: requests
  std::vector<Prompt> prompts;
  std::int64_t decodes = 0;
  std::int64_t queries = 1;   ///< of a decode: itself and guesses that are verified with it
  std::int64_t adapted = 0;   ///< of the tokens, those whose requests have an adapter
  std::int64_t adapters = 0;  ///< different ones
  /// Decodes see these keys with their tokens, in layers of StepCost::windows()[i].
  std::vector<double> visible;
  double longest = 0;           ///< keys of the decode that sees most; 0: all see as many
  std::vector<Prompt> tiles{};  ///< of images that are encoded before the pass
  std::int64_t encoded = 0;     ///< rows of the text's stream that are made of them
};

}  // namespace orrery::step
