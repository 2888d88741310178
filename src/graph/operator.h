// SPDX-License-Identifier: Apache-2.0
/// One kernel as the device runs it: what it computes, how much it moves.
#pragma once

#include <cstdint>
#include <string>

#include "base/names.h"
#include "base/units.h"

namespace orrery::graph {

enum class DataType : std::uint8_t { fp32, tf32, bf16, fp16, fp8, fp4 };
constexpr auto named_values(DataType) {
  return std::to_array<Named<DataType>>({
      {DataType::fp32, "fp32", "IEEE single precision, 4 bytes"},
      {DataType::tf32, "tf32", "single precision with a 10-bit mantissa in matrix units, 4 bytes"},
      {DataType::bf16, "bf16", "8-bit exponent, 7-bit mantissa, 2 bytes"},
      {DataType::fp16, "fp16", "IEEE half precision, 2 bytes"},
      {DataType::fp8, "fp8", "8-bit floating point, 1 byte"},
      {DataType::fp4, "fp4", "4-bit floating point, two in a byte"},
  });
}
inline constexpr int kDataTypeCount = static_cast<int>(kNames<DataType>.size());

/// Returns the stored width of one element, scales of blocks not counted.
constexpr std::int64_t bits_of(DataType type) {
  switch (type) {
    case DataType::fp32:
    case DataType::tf32:
      return 32;
    case DataType::bf16:
    case DataType::fp16:
      return 16;
    case DataType::fp8:
      return 8;
    case DataType::fp4:
      return 4;
  }
  return 32;
}

/// Returns the size of `elements` packed elements, rounded up to whole bytes; saturates as Bytes
/// does.
constexpr Bytes bytes_of(DataType type, std::int64_t elements) {
  const std::int64_t bits = bits_of(type);
  return bits >= 8 ? Bytes(elements) * (bits / 8) : Bytes(elements) / (8 / bits);
}

/// Returns the size of one element alone. An fp4 element does not fill its byte: count arrays with
/// bytes_of.
constexpr Bytes size_of(DataType type) {
  return bytes_of(type, 1);
}

/// Says how the compute model times it.
enum class OperatorKind : std::uint8_t {
  gemm,
  grouped_gemm,
  attention,
  norm,
  softmax,
  elementwise,
  embedding,
  loss,
  optimizer,
  accumulate,
  permute,
  convolution,
  scan,
  cache_write,
  opaque
};
constexpr auto named_values(OperatorKind) {
  return std::to_array<Named<OperatorKind>>({
      {OperatorKind::gemm, "gemm", "batch x (m x k)(k x n) on the matrix units"},
      {OperatorKind::grouped_gemm, "grouped_gemm", "one gemm per expert, all in one launch"},
      {OperatorKind::attention, "attention", "fused (flash) attention; never stores S x S"},
      {OperatorKind::norm, "norm", "row reduction and scaling; memory bound"},
      {OperatorKind::softmax, "softmax", "row softmax; memory bound"},
      {OperatorKind::elementwise, "elementwise", "streams its operands; memory bound"},
      {OperatorKind::embedding, "embedding", "gather of rows, or scatter-add backward"},
      {OperatorKind::loss, "loss", "cross entropy over the vocabulary; memory bound"},
      {OperatorKind::optimizer, "optimizer", "streams parameters, gradients and states"},
      {OperatorKind::accumulate, "accumulate", "gradients into a buffer of sums; memory bound"},
      {OperatorKind::permute, "permute", "rows of tokens to experts, or back; memory bound"},
      {OperatorKind::convolution, "convolution", "causal, depthwise (Mamba); memory bound"},
      {OperatorKind::scan, "scan", "chunked state-space scan (Mamba-2) on the matrix units"},
      {OperatorKind::cache_write, "cache_write", "keys and values into a paged cache"},
      {OperatorKind::opaque, "opaque", "known by its FLOPs and bytes alone; the longer of the two"},
  });
}

/// AttentionLibrary names whose kernels of fused attention run, where the device knows them apart.
enum class AttentionLibrary : std::uint8_t { any, trtllm, cudnn, cudnn_fp8, flash2 };
constexpr auto named_values(AttentionLibrary) {
  return std::to_array<Named<AttentionLibrary>>({
      {AttentionLibrary::any, "any", "the device's usual ones"},
      {AttentionLibrary::trtllm, "trtllm", "TensorRT-LLM's"},
      {AttentionLibrary::cudnn, "cudnn", "cuDNN's, as Transformer Engine and PyTorch run them"},
      {AttentionLibrary::cudnn_fp8, "cudnn_fp8", "cuDNN's with operands and result in fp8"},
      {AttentionLibrary::flash2, "flash2", "FlashAttention-2's, as PyTorch runs them"},
  });
}

/// C[m, n] = A[m, k] B[k, n], `batch` times with different operands.
struct GemmShape {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;

  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};
constexpr Flops flops_of(const GemmShape& s) {
  return Flops(2.0 * static_cast<double>(s.batch) * static_cast<double>(s.m) *
               static_cast<double>(s.n) * static_cast<double>(s.k));
}

/// Tracking says how engines move the tiles of a product in N pieces while it runs, of whose result
/// every rank sends N-1 N-ths and receives as many.
enum class Tracking : std::uint8_t {
  none,    ///< nothing does, or kernels
  shared,  ///< the product and the engines share the memory's bandwidth
  first,   ///< the memory serves the product first
};

struct Operator {
  std::string name;  ///< "qkv_gemm", "softmax_backward"
  OperatorKind kind = OperatorKind::elementwise;
  DataType type = DataType::bf16;
  /// The shape depends on the kind. gemm: as named; grouped_gemm: batch = local experts of m rows
  /// each; attention: batch = B*heads, m = S_q, n = S_kv, k = head_dim; norm: k = row length.
  GemmShape gemm{};
  Flops flops{0};         ///< work really done (a causal kernel counts half of the square)
  Bytes bytes{0};         ///< moved to and from device memory, reads plus writes
  int kernels = 1;        ///< launches; each costs one host dispatch, unless captured
  bool captured = false;  ///< part of a graph (CUDA graph) that the host launches as one
  int layer = -1;         ///< as Node::layer
  bool backward = false;  ///< a kernel of the backward pass, which may be slower than a forward's
  AttentionLibrary library = AttentionLibrary::any;  ///< of fused attention
  bool block_scaled = false;  ///< of fp8 GEMMs: a scale per block of K (DeepSeek-V3's, mxfp8)
  /// Fused attention has this many heads of keys, of all sequences; 0: gemm.batch.
  std::int64_t key_heads = 0;
  /// Elements of B (a GEMM's weights) have this many bits in memory where they are narrower than
  /// what the matrix units compute in; 0: as `type`.
  std::int64_t stored_bits = 0;
  bool splits_sums = false;  ///< of fp8 GEMMs: sums leave the matrix units every 128 elements of K
  /// The measured duration, which wins over what the compute model would say, whatever the device.
  /// Zero: unknown.
  Time duration{0};
  /// An operator with a duration takes this many times as long beside a collective, or a message.
  double beside_collective = 1;
  double beside_message = 1;
  /// Piece number `piece` of a kernel that runs in `pieces` of equal time, each a node or part of
  /// one: piece i takes floor((i+1) t / pieces) - floor(i t / pieces) of the whole kernel's time t,
  /// so all of them together take t. The shape and the duration are the whole kernel's, FLOPs and
  /// bytes the piece's; the first piece has the launch. Of products and of what has a duration.
  std::int32_t piece = 0;
  std::int32_t pieces = 1;
  Tracking tracking = Tracking::none;  ///< of a product in pieces: what engines do beside it

  friend bool operator==(const Operator&, const Operator&) = default;
};

/// Returns whether its time follows from its shape or its duration alone, so that it may run in
/// pieces.
inline bool is_divisible(const Operator& op) {
  return op.kind == OperatorKind::gemm || op.kind == OperatorKind::grouped_gemm ||
         op.duration > Time(0);
}

/// Returns floor((i+1) total / n) - floor(i total / n): the n parts add up to the total, and differ
/// by one at most. Requires 0 <= i < n and a total of 0 or more.
template <class Dimension>
constexpr Quantity<Dimension, std::int64_t> part_of(Quantity<Dimension, std::int64_t> total,
                                                    std::int64_t i, std::int64_t n) {
  const std::int64_t each = total.value() / n;  // the products below cannot overflow
  const std::int64_t rest = total.value() % n;
  return total.is_overflow() || n == 1
             ? total
             : Quantity<Dimension, std::int64_t>(each + (i + 1) * rest / n - i * rest / n);
}

/// Returns the time that the host needs to issue the operator, at `dispatch` a kernel. Ignores: the
/// one launch of a captured graph.
inline Time issue_time(const Operator& op, Time dispatch) {
  return op.captured ? Time(0) : dispatch * op.kernels;
}

}  // namespace orrery::graph
