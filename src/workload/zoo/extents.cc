// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

using Extents = std::vector<TensorExtent>;

/// Each only once, however many layers have it.
void add(Extents& extents, const std::string& what, std::int64_t extent,
         graph::Dim dim = graph::Dim::inner) {
  const bool known = std::any_of(extents.begin(), extents.end(), [&](const TensorExtent& e) {
    return e.what == what && e.extent == extent;
  });
  if (!known) {
    extents.push_back({what, extent, dim});
  }
}

void add_mixer(Extents& extents, const Model& model, const LayerKind& kind) {
  if (kind.mixer == MixerKind::mamba || kind.mixer == MixerKind::gated_delta) {
    add(extents, "Mamba heads", model.mamba.heads, graph::Dim::heads);
    add(extents, "Mamba groups", model.mamba.groups, graph::Dim::groups);
  } else if (kind.mixer == MixerKind::latent_attention) {
    add(extents, "attention heads", model.heads, graph::Dim::heads);
  } else if (kind.mixer == MixerKind::compressed_attention) {
    add(extents, "attention heads", model.heads, graph::Dim::heads);
    add(extents, "groups of the output projection", model.compressed.output_groups,
        graph::Dim::groups);
  } else if (kind.mixer == MixerKind::attention) {
    add(extents, "attention heads", model.heads, graph::Dim::heads);
    add(extents, "key-value heads", kv_heads_of(model, kind), graph::Dim::key_value_heads);
  }
}

}  // namespace

std::vector<TensorExtent> tensor_extents(const Model& model) {
  Extents extents;
  const std::size_t kinds = layer_kinds(model).size();
  for (std::size_t i = 0; i < kinds; ++i) {
    const LayerKind kind = kind_of(model, static_cast<int>(i));
    add_mixer(extents, model, kind);
    if (kind.feed_forward == FeedForwardKind::dense) {
      add(extents, "MLP's width", kind.ffn > 0 ? kind.ffn : model.ffn);
    } else if (kind.feed_forward == FeedForwardKind::experts && model.expert.shared_ffn > 0) {
      add(extents, "shared expert's width", model.expert.shared_ffn);
    }
  }
  return extents;
}

std::vector<TensorExtent> expert_extents(const Model& model) {
  return model.experts == 0 ? Extents{}
                            : Extents{{"expert's width", model.expert.ffn, graph::Dim::inner}};
}

}  // namespace orrery::zoo
