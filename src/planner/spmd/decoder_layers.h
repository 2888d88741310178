// SPDX-License-Identifier: Apache-2.0
/// The operators of one layer of the zoo's decoders (decoder.h).
///
///   attention   norm, three projections (MLA: through latents), the core (rotation and scores are
///               one operator; of a window or chunk "local_attention", with a sink a fourth input),
///               projection
///   Mamba-2     norm, projections to z, to x, B, C and to dt, convolution, scan, gated norm,
///               projection. Columns of x, B, C stand by group, so that slices are of whole groups
///   MLP         norm, one projection or two, activation, projection
///   experts     norm, router that fills slots, [projection to the latent], rows copied to the
///               slots, the experts' projections and activation, weighted sums of the rows,
///               [projection back]; the shared expert
///   sums        after each; norms also before the sum (NormPlace::around); one sum of both, with a
///               norm each or one for both (parallel_residual)
///
/// Flops: attention 6 a pair of query and key that is seen, for each element of the heads of the
/// queries and of the values (3 S^2 of a causal square); the scan's products as zoo's scan, 3 for
/// 2. Others as models.h.
#pragma once

#include <cstdint>
#include <string>

#include "planner/spmd/decoder.h"
#include "planner/spmd/graph_builder.h"

namespace orrery::spmd {

/// Whether layers of a kind have these operators.
bool is_known(const zoo::LayerKind& kind);

class LayerWriter {
 public:
  LayerWriter(const zoo::Model& model, const DecoderSize& size, GraphBuilder& make)
      : model_(model), size_(size), make_(make) {}

  /// Appends a layer made of x (b, s, H). Requires is_known(kind).
  int layer(int x, const zoo::LayerKind& kind);
  int norm(int x, const std::string& name);
  /// Without bias.
  int linear(int x, const std::string& name, std::int64_t outputs);

 private:
  int add(int a, int b) { return make_.elementwise("add", {a, b}); }
  /// The norm of NormPlace::around, which others do not have.
  int after(int x, const std::string& name);
  int mixed(int x, const zoo::LayerKind& kind);
  int fed(int x, const zoo::LayerKind& kind);
  int attention(int x, const zoo::LayerKind& kind);
  int latent_attention(int x, const zoo::LayerKind& kind);
  int attended(int q, int k, int v, const zoo::LayerKind& kind);
  int mamba(int x);
  int scan(int convolved, int step);
  int mlp(int x, std::int64_t width);
  int experts(int x);
  int routed(int x, int chosen);
  template <class Gate>
  int activated(int wide, const Gate& gate);
  /// No device may have a part of one of `parts` of the last node's rows.
  void keep_whole(std::int64_t parts);

  const zoo::Model& model_;
  const DecoderSize& size_;
  GraphBuilder& make_;
};

}  // namespace orrery::spmd
