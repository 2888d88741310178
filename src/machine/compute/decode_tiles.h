// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "graph/operator.h"
#include "machine/compute/device.h"

namespace orrery::compute {

/// Fused attention of decodes as FlashAttention-2 computes them where nothing splits their keys: a
/// set of coefficients that a machine file may give. Devices without it have kernels that balance
/// decodes themselves, beside prompts too (FlashAttention-3, kernels of TensorRT-LLM).
inline constexpr std::string_view kDecodeTiles = "decode_tiles";

/// Queries of one token each in one launch, with keys of their own.
struct DecodeTiles {
  std::int64_t sequences = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  graph::DataType type = graph::DataType::bf16;
  double keys = 0;     ///< of all sequences
  double longest = 0;  ///< of one of them
  Bytes kv_head{0};    ///< keys and values of all sequences for one of the kv_heads
};

struct DecodeTileTimes {
  Time all{0};      ///< of all tiles, spread over the units
  Time longest{0};  ///< of the longest tile
  Time uneven{0};   ///< what the longest takes at the end while others have nothing more to do
};

/// With t = attention_tile, keys rounded up to tiles of keys (attention_key_elements / head_dim):
///
///   tile(x) = t (x + key_ramp) (F^4 + softmax^4)^(1/4) units / (peak attention_share),  F = 4 d
///   all     = max(sequences heads tile(mean) / units, bytes / (bandwidth elementwise_share))
///   bytes   = kv_heads kv_head, heads / kv_heads times if kv_head exceeds the last-level cache:
///             every head is a tile of its own, one head of all sequences comes after the other
///   longest = tile(longest),  uneven = attention_tail (tile(longest) - tile(mean))
///
/// Source: FlashAttention-2 (flash_fwd_launch_template.h: a tile of 64 queries whatever there are,
/// 128 keys of 128 elements, with a paged cache; flash_api.cpp: mha_varlen_fwd splits keys and
/// packs heads only where no sequence has more than one query). None: the device has no such set.
std::optional<DecodeTileTimes> decode_tiles(const DecodeTiles& tiles, const Device& device);

/// Whether FlashAttention-2 splits the keys of decodes alone in a launch, whose heads that share
/// keys are rows of one tile: where these are too few for the units (num_splits_heuristic: below
/// 0.8 of them; ignored: versions that count two blocks a unit split up to 1.6).
bool splits_decodes(const DecodeTiles& tiles, const Device& device);

}  // namespace orrery::compute
