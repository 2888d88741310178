// SPDX-License-Identifier: Apache-2.0
/// Number formats of a checkpoint, by the `quantization_config` of its Hugging Face config.json.
///
///   quant_method        weights  operands  from
///   fp8, fbgemm_fp8     fp8      fp8       weight_block_size: a scale per block
///   gptq, awq           bits     16 bits   bits (w_bit), group_size (q_group_size), zero points
///   compressed-tensors  num_bits input_activations' num_bits, null: 16 bits
///                                          config_groups (all alike; targets), ignore,
///                                          kv_cache_scheme
///   modelopt            quant_algo FP8, NVFP4 (fp4 operands), W4A16_AWQ, W4A8_AWQ ...;
///                       kv_cache_quant_algo, kv_cache_scheme; also without a quant_method
///   mxfp4               fp4      16 bits   routed experts only
///   fp8, expert_dtype fp4: routed experts in mxfp4 (DeepSeek-V4)
///
/// 8-bit integers are timed as fp8 and 4-bit ones as fp4: they move the same bytes, and devices
/// that have both multiply them at one rate.
///
///   scale_bits = b / group, b = 16 (fp8 scales of NVFP4 8, exponents of mxfp4 8) + bits of a zero
///                point where there are some; blocks of r x c: 32 / (r c); none per channel or row
///
/// Attention stays in 16 bits if the lists of what is left out name it in every layer, and so do
/// MLPs if they name shared experts, too. Models that see may have it in their `text_config`.
/// Ignores:  single layers that are left out, sparsity, output_activations.
/// Source:   transformers' quantization_config classes, compressed-tensors' schemes (published).
#pragma once

#include <optional>

#include "base/config_node.h"
#include "base/result.h"
#include "serving/step/precision.h"

namespace orrery::step {

/// Returns the precision of a quantised checkpoint; nothing where the configuration has none.
/// Mistakes: other methods and widths.
Result<std::optional<Precision>> quantization_of(const ConfigNode& config);

}  // namespace orrery::step
