// SPDX-License-Identifier: Apache-2.0
/// Parts of a pass that depend on numbers of tokens and samples alone, each computed once.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "serving/step/pass_prices.h"
#include "serving/step/residual_stream.h"
#include "workload/lower/layouts.h"

namespace orrery::step {

/// PassRows are the parts of a pass that depend on the number of tokens alone.
struct PassRows {
  Part all;
  Part fused;        ///< what `fuse` saves, and kernels more
  Part attending;    ///< of the layers, up to the sum of what attention has found
  Part ffn;          ///< of the layers, after it, without exchanges and sums of experts
  Time outside{0};   ///< of the layers
  Time second{0};    ///< branches of the layers: MLPs, experts
  Time reducing{0};  ///< the layers' sums
  Time exchange{0};  ///< tokens on their way to experts and back
};

/// LayerNodes are what a rank runs of a layer for T tokens.
struct LayerNodes {
  std::vector<graph::Node> nodes;
  std::size_t first_branch = 0;  ///< number of nodes up to the first sum over tp
  bool routes = false;           ///< has routed experts
};

/// PassWeights are the weights of a device.
struct PassWeights {
  Bytes all{0};
  Bytes first_branch{0};   ///< of a mean layer: attention
  Bytes second_branch{0};  ///< MLP or experts
  Bytes adapter{0};        ///< of one adapter
};

/// PassTable remembers them by these numbers.
class PassTable {
 public:
  /// `prices` must outlive the table.
  explicit PassTable(const PassPrices& prices)
      : prices_(prices), model_(prices.model()), options_(prices.options()) {}

  const PassRows& rows(std::int64_t tokens);
  /// Returns the final norm, output head and sampling.
  const Part& head(std::int64_t samples);
  /// Returns the adapters' products for so many adapted tokens, of so many different adapters.
  const Part& adapters(std::int64_t tokens, std::int64_t different);
  PassWeights weights() const;
  /// The functions of StepCost with these names say what they return.
  Bytes kept_on_chip(std::int64_t tokens) const;
  LayerNodes layer_nodes(std::size_t kind, std::int64_t tokens) const;
  std::vector<FusedPlace> fused_places(std::int64_t tokens) const;

 private:
  /// A layer's operators, whole, and the layouts of what they read and write over tp.
  struct PassLayer {
    std::vector<zoo::ModelOperator> operators;
    lower::Choice choice;
    bool routes = false;  ///< has routed experts
  };

  /// A matrix with an adapter, of a rank: k x n, of so many fused into one.
  struct Adapted {
    std::int64_t layers;
    std::int64_t n;
    std::int64_t k;
    std::int64_t fused;
  };

  PassLayer layer_of(std::size_t kind, const plan::Plan& plan) const;
  PassRows layers(std::int64_t tokens) const;
  /// Adds the sums of products that projectors of images cut by rows.
  void add_projector_sums(Part& part, std::int64_t rows) const;
  Part head_of(std::int64_t samples) const;
  Part adapters_of(std::int64_t tokens, std::int64_t different) const;
  /// Adds what a norm over all heads of queries and of keys (MiniMax-M2, OLMo 2) takes with tp > 1:
  /// a kernel that sums the squares of a rank's part, and an all-reduce of both sums, 8 T bytes
  /// (published: vllm-project/vllm pull request 31493, sgl-project/sglang pull request 14416).
  void add_norm_sum(Part& part, std::size_t kind, std::int64_t tokens) const;
  std::vector<Adapted> adapted(std::int64_t tokens) const;
  /// Experts send back shards of tokens that nothing else is summed with.
  bool exchanges_shards() const;
  StreamPrices stream_prices(std::int64_t tokens) const;
  StreamUses stream_uses(std::int64_t tokens) const;
  /// Returns the choice of `fuse`; without, or where there is nothing to fuse, none.
  StreamChoice stream(std::int64_t tokens) const;

  const PassPrices& prices_;
  const zoo::Model& model_;
  const StepOptions& options_;
  std::unordered_map<std::int64_t, PassRows> layers_;
  std::unordered_map<std::int64_t, Part> heads_;
  std::map<std::pair<std::int64_t, std::int64_t>, Part> adapters_;
};

}  // namespace orrery::step
