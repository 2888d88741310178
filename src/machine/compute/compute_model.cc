// SPDX-License-Identifier: Apache-2.0
#include "machine/compute/compute_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

#include "machine/compute/kernel_pieces.h"
#include "machine/compute/pim.h"
#include "machine/compute/spatial.h"
#include "machine/compute/stream_share.h"
#include "machine/compute/systolic_time.h"

namespace orrery::compute {
namespace {

struct Tile {
  std::int64_t m;
  std::int64_t n;
};
constexpr std::array<Tile, 8> kTiles{
    {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}, {32, 64}, {16, 64}}};
constexpr std::int64_t kLeastDepthOfSplit = 128;  // elements of K
constexpr double kPartialSumBytes = 4;            // fp32
constexpr double kLeastResultBits = 16;           // of GEMMs in fp8 and fp4

double square(double x) {
  return x * x;
}

struct GemmProblem {
  graph::GemmShape shape;
  double tiles = 0;
  double per_k = 0;   ///< seconds of one wave per element of K
  double memory = 0;  ///< seconds to stream all operands
  double k_ramp = 0;
  bool splits = true;  ///< K may be split
};

double split_time(const GemmProblem& problem, std::int64_t split, const Rates& rates,
                  const KernelCoefficients& c) {
  const auto s = static_cast<double>(split);
  const double waves = problem.tiles * s / rates.units;
  const double full = std::floor(waves);
  const double partial = waves - full;
  const double compute =
      (static_cast<double>(problem.shape.k) / s + problem.k_ramp) * problem.per_k;
  const double memory = problem.memory / waves;
  double time = full * std::max(compute, memory);
  if (partial > 0) {
    const double q = full > 0 ? c.gemm_wave_quantisation : 1.0;
    time += std::max(compute * (q + (1 - q) * partial), memory * partial);
  }
  if (split > 1) {
    const double sums = kPartialSumBytes * s * static_cast<double>(problem.shape.batch) *
                        static_cast<double>(problem.shape.m) * static_cast<double>(problem.shape.n);
    time += to_seconds(c.gemm_split_latency) + c.gemm_split_traffic * sums / rates.bandwidth;
  }
  return time;
}

double best_split_time(const GemmProblem& problem, const Rates& rates,
                       const KernelCoefficients& c) {
  const std::int64_t deepest = std::max<std::int64_t>(1, problem.shape.k / kLeastDepthOfSplit);
  double best = split_time(problem, 1, rates, c);
  if (!problem.splits) {
    return best;
  }
  if (problem.tiles < 4 * rates.units) {
    for (const std::int64_t split : {2, 3, 4}) {
      best = std::min(best, split_time(problem, std::min(split, deepest), rates, c));
    }
  }
  if (problem.tiles < rates.units) {
    const auto filling = static_cast<std::int64_t>(rates.units / problem.tiles);
    best = std::min(best, split_time(problem, std::min(filling, deepest), rates, c));
  }
  return best;
}

/// Returns how much longer matrix units take where rows of a weight's GEMM are odd; batched
/// products of attention have kernels of their own. Rows of the result have n elements and those of
/// an input gradient's operands k, which is then the wide side: the k of a weight's gradient is a
/// number of tokens, along which nothing is laid out.
double odd_rows(const graph::Operator& op, const KernelCoefficients& c) {
  const graph::GemmShape& s = op.gemm;
  if (s.batch != 1 || graph::bits_of(op.type) != 16) {
    return 1;
  }
  if (s.n % 2 != 0) {
    return op.backward ? c.odd_rows_weight : c.odd_rows;
  }
  if (s.k % 2 != 0 && s.k > s.m) {
    return c.odd_rows_input;
  }
  constexpr std::int64_t kRow = 128;  // elements that a tile of the result is wide
  return op.backward && s.n % kRow != 0 && s.m % kRow == 0 ? c.uneven_rows : 1;
}

double gemm_seconds(const graph::Operator& op, const Rates& rates, const KernelCoefficients& c) {
  const graph::GemmShape& s = op.gemm;
  const auto batch = static_cast<double>(s.batch);
  const auto m = static_cast<double>(s.m);
  const auto n = static_cast<double>(s.n);
  const auto k = static_cast<double>(s.k);
  if (batch * m * n * k <= 0) {
    return 0;
  }
  constexpr Tile kLargest = kTiles.front();
  constexpr double kLargestArea = static_cast<double>(kLargest.m * kLargest.n);
  constexpr double kLargestEdges = static_cast<double>(kLargest.m + kLargest.n);
  const double unit_rate = rates.flops / rates.units * c.gemm_peak_share *
                           std::sqrt(1 + square(c.gemm_tile_load * kLargestEdges / kLargestArea));
  const bool grouped = op.kind == graph::OperatorKind::grouped_gemm;
  GemmProblem problem{.shape = s};
  problem.k_ramp = c.gemm_k_ramp + (grouped ? c.grouped_k_ramp : 0);
  problem.splits = !grouped;
  const double bits = static_cast<double>(graph::bits_of(op.type));
  const double stored = op.stored_bits > 0 ? static_cast<double>(op.stored_bits) : bits;
  const double traffic =
      bits / 8 * m * k + stored / 8 * k * n + std::max(bits, kLeastResultBits) / 8 * m * n;
  problem.memory = batch * traffic / (rates.bandwidth * c.gemm_memory_share);
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const auto bm = static_cast<double>(tile.m);
    const auto bn = static_cast<double>(tile.n);
    problem.tiles = batch * std::ceil(m / bm) * std::ceil(n / bn);
    problem.per_k = 2 * std::sqrt(square(bm * bn) + square(c.gemm_tile_load * (bm + bn))) /
                    unit_rate * odd_rows(op, c);
    best = std::min(best, best_split_time(problem, rates, c));
  }
  return to_seconds(c.gemm_launch + (grouped ? c.grouped_launch : Time(0))) + best;
}

/// Queries of a tile where few are asked for: decoding.
constexpr double kSmallAttentionTile = 16;

/// FlashAttention-2 splits keys where its tiles are fewer than 0.8 of two a unit, and computes
/// whole tiles of prompts elsewhere: num_splits_heuristic and set_params_splitkv in flash_api.cpp
/// of PyTorch and of later versions of FlashAttention-2; seen in kernels' names on H100 and H200.
constexpr double kMostSplitTiles = 1.6;

/// Kernels of decoding split the keys of few queries over idle units. TensorRT-LLM's of prompts,
/// which have no keys before their queries, do not.
bool splits_keys(const graph::Operator& op, double units) {
  if (static_cast<double>(op.gemm.m) >= kSmallAttentionTile) {
    return false;
  }
  switch (op.library) {
    case graph::AttentionLibrary::trtllm:
      return op.gemm.n > op.gemm.m;
    case graph::AttentionLibrary::flash2:
      return static_cast<double>(op.gemm.batch) < kMostSplitTiles * units;
    default:
      return true;
  }
}

/// Keys that a tile of queries loads and computes at a time.
double keys_of_tile(const graph::Operator& op, const KernelCoefficients& c) {
  constexpr double kMostKeysOfTile = 256;
  const double fit = c.attention_key_elements / std::max(1.0, static_cast<double>(op.gemm.k));
  return static_cast<double>(
      std::bit_floor(static_cast<std::uint64_t>(std::min(fit, kMostKeysOfTile))));
}

/// Elements of a head that are computed, over those that it has.
double widened(const graph::Operator& op, const KernelCoefficients& c) {
  const auto wide = static_cast<double>(op.gemm.k);
  const double step = c.attention_head_step;
  return step > 0 ? std::ceil(wide / step) * step / wide : 1;
}

/// Returns the seconds that a tiled attention kernel computes.
double tiled_attention_seconds(const graph::Operator& op, const Rates& rates,
                               const KernelCoefficients& c) {
  const auto batch = static_cast<double>(op.gemm.batch);
  const auto queries = static_cast<double>(op.gemm.m);
  const auto keys = static_cast<double>(op.gemm.n);
  const double pair = (op.backward ? 10.0 : 4.0) * static_cast<double>(op.gemm.k);
  const double visible = op.flops.value() / (batch * queries * pair);  // keys of a query
  const double per_pair = pair * widened(op, c);
  const bool few = splits_keys(op, rates.units);
  const double tile = few ? kSmallAttentionTile : c.attention_tile;
  // Beside the diagonal, half a tile on average is computed and masked; a window has another edge.
  const double edges = !few && 2 * visible < keys ? 2 : 1;
  const double step = few ? 0 : keys_of_tile(op, c);
  const double whole = step > 0 ? std::ceil(keys / step) * step : keys;
  const double masked = edges * std::max(tile, step) / 2;
  const double mean = std::max(visible, std::min(visible + masked, whole));
  const double share = op.backward ? c.attention_backward_share : c.attention_share;
  const double slowed = square(square(c.attention_softmax / per_pair));
  const double per_key = tile * per_pair * std::sqrt(std::sqrt(1 + slowed)) * rates.units /
                         (rates.flops * share);  // seconds of one unit
  const double most = few ? 0 : std::max(mean, std::min(keys, 2 * visible));
  const double waves = batch * std::ceil(queries / tile) / rates.units;
  const double whole_waves = most == mean ? c.attention_wave_quantisation : 0;  // as long each
  const double total =
      (waves + whole_waves * (std::ceil(waves) - waves)) * (mean + c.attention_key_ramp) * per_key;
  const double longest = few ? 0 : (most + c.attention_key_ramp) * per_key;
  const double rows = (op.backward ? 4.0 : 2.0) * batch * queries *
                      static_cast<double>(op.gemm.k * graph::bits_of(op.type)) / 8;
  return std::max(longest, total + (1 - whole_waves) * c.attention_tail * longest) +
         c.attention_traffic * rows / rates.bandwidth;
}

/// The device's coefficients where few queries read many keys, if it has any.
const KernelCoefficients& attention_coefficients(const graph::Operator& op, const Device& device) {
  const auto decode = device.format_kernels.find(kDecodeKernels);
  const bool decodes = splits_keys(op, device.units) && op.gemm.m > 0 &&
                       op.library != graph::AttentionLibrary::trtllm;
  return decodes && decode != device.format_kernels.end() ? decode->second : device.kernels_of(op);
}

/// Attention of prompts finds queries, keys and values where the kernel before it has left them,
/// and so does the write of keys and values to a paged cache: in the last-level cache, if they fit.
/// Contexts of earlier steps and what backward reads have long been displaced.
Rates near_rates(const graph::Operator& op, const Rates& rates, const Device& device,
                 const KernelCoefficients& c) {
  const bool fresh = op.kind == graph::OperatorKind::cache_write ||
                     (!op.backward && op.gemm.m > 0 && op.gemm.m == op.gemm.n);
  Rates near = rates;
  if (fresh && op.bytes <= device.last_level_cache) {
    near.bandwidth *= c.last_level_speedup;
  }
  return near;
}

/// Few queries read keys head by head of every sequence: one is cut into so many parts at most, and
/// a unit starts anew on each head, which long ones hide.
double decode_seconds(const graph::Operator& op, const Rates& rates, const KernelCoefficients& c) {
  const std::int64_t heads = op.key_heads > 0 ? op.key_heads : op.gemm.batch;
  const double share =
      std::min(c.elementwise_share, static_cast<double>(heads) * c.attention_head_share);
  const double memory = static_cast<double>(op.bytes.value()) / (rates.bandwidth * share);
  if (c.attention_start == Time(0)) {
    return memory;
  }
  const double starts = static_cast<double>(heads) / rates.units * to_seconds(c.attention_start);
  return std::cbrt(memory * memory * memory + starts * starts * starts);
}

double attention_seconds(const graph::Operator& op, const Rates& rates,
                         const KernelCoefficients& c) {
  const double memory =
      static_cast<double>(op.bytes.value()) / (rates.bandwidth * c.elementwise_share);
  if (c.attention_tile > 0 && op.flops > Flops(0) && op.gemm.m > 0) {
    const bool decodes = splits_keys(op, rates.units) && op.gemm.n > op.gemm.m;
    return to_seconds(c.attention_launch) +
           std::max(tiled_attention_seconds(op, rates, c),
                    decodes ? decode_seconds(op, rates, c) : memory);
  }
  const double share = op.backward ? c.attention_backward_share : c.attention_share;
  return to_seconds(c.gemm_launch) + std::max(op.flops.value() / (rates.flops * share), memory);
}

/// Share of bandwidth of a state-space scan in five kernels. Derived: 12.35e6 tokens/s of the
/// original Triton kernels on an H100 (128 heads of 64, state 128, chunks of 256 tokens, mean of
/// 4,096 to 32,768; vllm-project/vllm pull request 27299), 99,072 bytes per token of workload/zoo.
constexpr double kScanMemoryShare = 0.365;

double scan_seconds(const graph::Operator& op, const Rates& rates, const KernelCoefficients& c) {
  const double share = op.backward ? c.scan_backward_share : c.scan_share;
  return to_seconds(c.gemm_launch) +
         std::max(op.flops.value() / (rates.flops * share),
                  static_cast<double>(op.bytes.value()) / (rates.bandwidth * kScanMemoryShare));
}

double opaque_seconds(const graph::Operator& op, const Rates& rates, const KernelCoefficients& c) {
  const double flops =
      op.flops > Flops(0) ? op.flops.value() / (rates.flops * c.gemm_peak_share) : 0;
  const double bytes = static_cast<double>(op.bytes.value());
  return to_seconds(c.gemm_launch) * op.kernels +
         std::max(flops, bytes / (rates.bandwidth * c.gemm_memory_share));
}

double stream_seconds(const graph::Operator& op, const Rates& rates, const KernelCoefficients& c) {
  return to_seconds(c.stream_launch) * op.kernels +
         static_cast<double>(op.bytes.value()) / (rates.bandwidth * stream_share(op, c));
}

/// Returns the rates that are left where others take shares of the units and of the memory
/// bandwidth.
Rates less(const Rates& rates, double units, double memory) {
  return {.flops = rates.flops * (1 - units),
          .units = std::max(1.0, std::floor(rates.units * (1 - units))),
          .bandwidth = rates.bandwidth * (1 - memory)};
}

double roofline_seconds(const graph::Operator& op, const Rates& rates, const Device& device) {
  const KernelCoefficients& c = device.kernels_of(op);
  switch (op.kind) {
    case graph::OperatorKind::gemm:
    case graph::OperatorKind::grouped_gemm:
      return gemm_seconds(op, rates, c);
    case graph::OperatorKind::attention: {
      const KernelCoefficients& attention = attention_coefficients(op, device);
      return attention_seconds(op, near_rates(op, rates, device, attention), attention);
    }
    case graph::OperatorKind::cache_write:
      return stream_seconds(op, near_rates(op, rates, device, c), c);
    case graph::OperatorKind::scan:
      return scan_seconds(op, rates, c);
    case graph::OperatorKind::opaque:
      return opaque_seconds(op, rates, c);
    default:
      return stream_seconds(op, rates, c);
  }
}

/// Products on the arrays; others as anywhere.
double systolic_device_seconds(const graph::Operator& op, const Rates& rates,
                               const Device& device) {
  const std::optional<double> product = systolic_seconds(op, rates, device);
  return product ? *product : roofline_seconds(op, rates, device);
}

double pim_seconds(const graph::Operator& op, const Rates& rates, const Device& device) {
  return pim_cost(op, rates, device).seconds();
}

/// A kernel of its own.
double spatial_seconds(const graph::Operator& op, const Rates& rates, const Device& device) {
  const FusedWork work = lone_work(op, rates, device);
  return std::max(work.compute, work.memory) +
         to_seconds(device.spatial.host_launch + device.spatial.launch) * op.kernels;
}

struct ModelRow {
  ComputeModel model;
  double (*seconds)(const graph::Operator& op, const Rates& rates, const Device& device);
};
constexpr std::array kComputeModels{ModelRow{ComputeModel::roofline, roofline_seconds},
                                    ModelRow{ComputeModel::systolic, systolic_device_seconds},
                                    ModelRow{ComputeModel::pim, pim_seconds},
                                    ModelRow{ComputeModel::spatial, spatial_seconds}};

double seconds(const graph::Operator& op, const Rates& rates, const Device& device) {
  return kComputeModels[static_cast<std::size_t>(device.model)].seconds(op, rates, device);
}

}  // namespace

Time lone_kernel_time(const graph::Operator& op, const Device& device) {
  return lone_kernel_time(op, device, clock_of(op, device));
}

Time lone_kernel_time(const graph::Operator& op, const Device& device, double clock) {
  assert(!device.memory.empty() && "a device has memory");
  if (op.pieces > 1) {
    return lone_piece_time(op, device, clock);
  }
  return op.duration > Time(0) ? op.duration
                               : from_seconds(seconds(op, rates_of(op, device, clock), device));
}

KernelTime kernel_time(const graph::Operator& op, const Device& device) {
  assert(!device.memory.empty() && "a device has memory");
  if (op.pieces > 1) {
    return piece_time(op, device);
  }
  if (op.duration > Time(0)) {
    const auto slowed = [&](double factor) {
      return factor > 1 ? op.duration * factor : op.duration;
    };
    return {op.duration, slowed(op.beside_collective), slowed(op.beside_message)};
  }
  const Rates rates = rates_of(op, device, clock_of(op, device));
  KernelTime time;
  time.alone = lone_kernel_time(op, device);
  const auto beside = [&](double units, double memory) {
    return units > 0 || memory > 0
               ? std::max(time.alone, from_seconds(seconds(op, less(rates, units, memory), device)))
               : time.alone;
  };
  time.beside_collective = beside(device.overlap_units, device.overlap_memory);
  time.beside_message = beside(device.overlap_send_units, 0);
  return time;
}

}  // namespace orrery::compute
