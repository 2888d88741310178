// SPDX-License-Identifier: Apache-2.0
/// GEMMs of layers in 8 or 4 bits, and the kernels that make their operands.
///
/// Quantised: the three GEMMs (forward, input gradient, weight gradient) of every weight of a
/// layer, its experts and multi-token prediction included. Not: router, attention core, embedding,
/// logits. Results stay in the compute type. w = bytes of a quantised element with its share of the
/// scales:
///
///   recipe        w            maximum   after a norm
///   fp8-delayed   1            -         the norm writes both copies itself
///   fp8-current   1            +1 read   the norm finds the maximum: no further read
///   fp8-block     1 + 4/128    -         -                       (fp32 scale per 128)
///   mxfp8         1 + 1/32     -         -                       (8-bit scale per 32)
///   nvfp4         1/2 + 1/16   +1 read   -                       (8-bit scale per 16)
///
/// Backward GEMMs of the recipes with one scale per tensor use the split accumulator: every 128
/// elements of K their sums leave the matrix units to be added in full fp32
/// (Operator::splits_sums), which is what block scales do too, so they are timed as block-scaled
/// where units do not microscale (Blackwell's sum in fp32).
///
///   input, output gradient    one kernel: reads e, writes 2 w per element (a copy along rows for
///                             one GEMM, one along columns for the weight gradient); a maximum
///                             reads e more in a kernel before. Every microbatch.
///   weight                    the same in the first microbatch, then kept; with ZeRO 3, whose
///                             weights are gathered anew, the row copy before every forward and the
///                             column copy before every backward.
///   quantized_params          weights arrive quantised: their column copy reads and writes w
///                             (blocks are square, so the transposed copy has the same scales), and
///                             ZeRO gathers w per element. Not so mxfp8, whose copies differ:
///                             Megatron gathers its weights in the compute type.
///
/// Memory: weights are there in 16 bits and as both copies (2 w), with quantized_params only as the
/// copies; a quantised GEMM keeps its input's column copy (w) instead of e per element. Fused
/// attention keeps its result for its own backward too, e per element beside the projection's w.
/// fp8-block keeps as DeepSeek-V3 does (section 3.3.3): that result once for both, in 12 bits
/// (E5M6) and scales; the input of an activation whose result is recomputed in w.
///
/// Assumes:  both copies are written at once and gathered as such over tp (as mxfp8 does; recipes
///           with one scale transpose after the gather); weights copied on every device (Blackwell
///           needs no transposed copies of fp8 with one scale per tensor). nvfp4's random Hadamard
///           transform and stochastic rounding happen inside the kernel that quantises.
/// Layers and modules that a recipe keeps in 16 bits: unquantized.h.
/// Ignores:  the casts of what is kept, which ride on the kernels that make and read it;
///           reductions of maxima between ranks; padding of expert rows to blocks.
/// Source:   NVIDIA Transformer Engine, user guide and normalisation and cast kernels (2.x), whose
///           backward GEMMs have the split accumulator by default; on H100 the fast one is 1.1
///           to 1.2 times as fast (pytorch/ao issue 2377), the measured H100 tables of fp8 and
///           fp8_block 1.2 times; DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", section 3.3 (1
///           x 128 and 128 x 128 blocks); OCP Microscaling Formats 1.0, 2023; NVIDIA 2025,
///           "Pretraining Large Language Models with NVFP4".
#pragma once

#include "workload/plan/axes.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::plan {

struct QuantizationRecipe {
  graph::DataType type = graph::DataType::fp8;
  bool block_scaled = false;    ///< fp8 with a scale per block of K
  bool splits_sums = false;     ///< backward GEMMs promote partial sums outside the matrix units
  double scale_bytes = 0;       ///< per element
  bool reads_maximum = false;   ///< of the whole tensor before it is scaled
  bool norm_finds_it = false;   ///< that maximum, when a norm makes the tensor
  bool norm_quantizes = false;  ///< a norm writes the copies instead of its 16-bit result
  bool microscaling = false;    ///< needs units that scale blocks of 16 or 32 (Device)
  bool transposable = true;     ///< the column copy can be made of the row copy
  /// Bits of attention's result, kept once for its backward and the projection; 0: in the compute
  /// type for the one, quantised for the other.
  int attention_result_bits = 0;
  bool keeps_activation_inputs = false;  ///< quantised, where the activation runs again

  /// Returns w.
  double element_bytes() const {
    return static_cast<double>(graph::bits_of(type)) / 8 + scale_bytes;
  }
};
/// Requires a quantization other than none.
const QuantizationRecipe& recipe_of(Quantization quantization);

/// Returns the type in which the plan runs most of its matrix work: the recipe's, else
/// compute_type.
graph::DataType gemm_type(const Plan& plan);

/// Returns whether the plan runs the operator's GEMMs in the recipe's type.
bool is_quantized(const Plan& plan, const zoo::ModelOperator& op);

/// Returns the bytes of `elements` of a tensor that crosses the network for such an operator, else
/// of the compute type.
Bytes exchanged_bytes(const Plan& plan, const zoo::ModelOperator& op, Bytes in_compute_type);

/// Returns the bytes that attention keeps of its result, `in_compute_type` of it, for its own
/// backward beside what `projection` keeps as its input; none where that is the whole result.
Bytes kept_for_attention(const Plan& plan, const zoo::ModelOperator& projection,
                         Bytes in_compute_type);
/// Returns the bytes that an activation between GEMMs keeps of its input when it runs again before
/// its backward.
Bytes kept_activation_input(const Plan& plan, const zoo::ModelOperator& next_gemm,
                            Bytes in_compute_type);

/// Returns the bytes that a ZeRO gather of the operator's parameters moves, and that the optimizer
/// writes.
Bytes parameter_bytes(const Plan& plan, const zoo::ModelOperator& op, std::int64_t parameters);

/// Returns the bytes of the traffic of a GEMM that reads operands of one type and writes its result
/// in another.
Bytes gemm_bytes(const graph::GemmShape& shape, graph::DataType operands, graph::DataType result);

/// QuantizeWork is what a quantising kernel does to a tensor of `elements` of the compute type.
struct QuantizeWork {
  Bytes bytes{0};
  int kernels = 0;
};
/// Returns the work on an input; copies: 2 with a weight gradient, else 1; after_norm: a norm makes
/// it.
QuantizeWork quantize_input(const Plan& plan, std::int64_t elements, int copies, bool after_norm);
/// Returns the work on an output gradient.
QuantizeWork quantize_gradient(const Plan& plan, std::int64_t elements, int copies);
/// Returns the work on a weight.
QuantizeWork quantize_weight(const Plan& plan, std::int64_t elements, StepPhase phase);

}  // namespace orrery::plan
