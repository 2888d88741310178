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
  bool windowed = false;
  Bytes kv_head{0};  ///< keys and values of all sequences for one of the kv_heads
};

struct DecodeTileTimes {
  Time all{0};      ///< of all tiles, spread over the units
  Time longest{0};  ///< of the longest tile
  Time uneven{0};   ///< what the longest takes at the end while others have nothing more to do
};

/// Returns the times of a decode's attention by tiles, with t = attention_tile, and keys rounded up
/// to tiles of keys (attention_key_elements / head_dim):
///
///   tile(x) = t (x + key_ramp) (F^4 + softmax^4)^(1/4) units / (peak attention_share),  F = 4 d
///   all     = max(sequences heads tile(mean) / units, bytes / (bandwidth elementwise_share))
///   bytes   = kv_heads kv_head, heads / kv_heads times if kv_head exceeds the last-level cache:
///             every head is a tile of its own, one head of all sequences comes after the other
///   longest = tile(longest),  uneven = attention_tail (tile(longest) - tile(mean))
///
/// Source: FlashAttention-2 (flash_fwd_launch_template.h: a tile of 64 queries whatever there are,
/// 128 keys of 128 elements, with a paged cache; flash_api.cpp: mha_varlen_fwd splits keys and
/// packs heads only where no sequence has more than one query). Returns none if the device has no
/// such set.
std::optional<DecodeTileTimes> decode_tiles(const DecodeTiles& tiles, const Device& device);

/// Returns the keys of one sequence that one tile computes where decodes are alone in a launch that
/// was made for `most` keys and `tiles.sequences` (of both a captured graph has more than a step).
/// FlashAttention-2 cuts these keys into equal parts; heads that share keys are rows of one tile:
///
///   waves(s) = sequences kv_heads s / (2 units)          efficiency(s) = waves / ceil(waves)
///   parts    = the fewest s of 1 to min(128, blocks) that reach 0.85 of the best efficiency;
///              1 if waves(1) >= 0.8, with a window, and where heads share no keys
///   part     = ceil(blocks / parts) blocks, blocks = ceil(most / keys of a tile)
///
/// An s that leaves as many blocks in a part as s - 1 is no choice.
///
/// Source: vllm-project/flash-attention, flash_api.cpp (num_splits_heuristic; set_params_splitkv
/// counts two tiles a unit, mha_varlen_fwd calls it where it swaps groups of heads for queries) and
/// flash_fwd_kernel.h (blocks of a part from what the launch was made for). First versions counted
/// one tile a unit: not modelled.
double keys_of_part(const DecodeTiles& tiles, std::int64_t most, const Device& device);

}  // namespace orrery::compute
