// SPDX-License-Identifier: Apache-2.0
/// Device describes what one accelerator can do, as its machine file states it.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/units.h"
#include "graph/operator.h"
#include "machine/compute/pim_device.h"
#include "machine/compute/power_model.h"
#include "machine/compute/spatial_device.h"
#include "machine/compute/systolic_array.h"

namespace orrery::compute {

/// Returns whether a field says nothing. Fields of these kinds that are 0 say "not known", and an
/// ability that is false "without it": they are neither shown nor written.
template <class T>
constexpr bool is_unknown(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return !value;
  }
  if constexpr (std::is_same_v<T, Power> || std::is_same_v<T, EnergyPerByte> ||
                std::is_same_v<T, Energy> || std::is_same_v<T, Money>) {
    return value == T(0);
  }
  return false;
}

/// The first tier is what kernels stream from. Of a lower one (host, nvme) capacity and bandwidth
/// are a device's share, bandwidth that of one direction of the link to it.
struct MemoryTier {
  std::string name;  ///< "hbm"
  Bytes capacity{0};
  Bandwidth bandwidth{0};
  Time latency{0};
  EnergyPerByte energy_per_byte{0};  ///< read or written; 0 = not known
  /// A switch of the network whose ports the copies of the device pass too; "": none.
  std::string through{};

  template <class V>
  static void fields(V&& visit) {
    visit("name", &MemoryTier::name, "for origins and reports");
    visit("capacity", &MemoryTier::capacity, "size");
    visit("bandwidth", &MemoryTier::bandwidth, "peak, reads plus writes");
    visit("latency", &MemoryTier::latency, "of one access");
    visit("energy_per_byte", &MemoryTier::energy_per_byte, "read or written; 0 = not known");
    visit("through", &MemoryTier::through, "a switch of the network whose ports its copies pass");
  }

  friend bool operator==(const MemoryTier&, const MemoryTier&) = default;
};

/// Coefficients of the kernel time model (compute_model.h, docs/models): few per device type,
/// fitted to measured kernels by tools/fit_gemm.py. "Share" is a share of the device's peak rate or
/// of its memory bandwidth.
struct KernelCoefficients {
  double gemm_peak_share = 0.9;         ///< of peak, by a 256 x 128 tile with deep K
  double gemm_memory_share = 0.8;       ///< of bandwidth, by a GEMM's operands
  double gemm_tile_load = 70;           ///< FLOP-equivalents to load one element of a tile's edges
  double gemm_k_ramp = 170;             ///< elements of K lost to each tile's prologue and epilogue
  double gemm_wave_quantisation = 0.5;  ///< 1: the last wave costs a full one; 0: only its share
  Time gemm_launch = 2500_ns;           ///< start and drain of one GEMM kernel
  Time gemm_split_latency = 2700_ns;    ///< further cost of a split-K reduction
  double gemm_split_traffic = 0.5;      ///< share of the partial sums that goes through memory
  double grouped_k_ramp = 0;            ///< further elements of K lost to a tile of a grouped GEMM
  Time grouped_launch{0};               ///< further time to start a grouped GEMM
  double attention_share = 0.6;         ///< of peak, fused attention forward, long and wide
  double attention_backward_share = 0.5;
  double attention_tile = 0;  ///< queries of a tile; 0: attention is its share of peak alone
  double attention_key_elements = 0;  ///< of a tile of keys: its keys times the head size
  double attention_head_step = 0;     ///< elements that heads are computed as a multiple of; 0: any
  double attention_softmax = 0;       ///< FLOP-equivalents of a pair's exponential
  double attention_key_ramp = 0;      ///< keys lost to each tile's prologue and epilogue
  double attention_tail = 0;          ///< share of the longest tile that no other work hides
  double attention_wave_quantisation = 0;  ///< of tiles all as long; 1: the last wave is a full one
  double attention_traffic = 0;     ///< share of queries' and output's traffic that nothing hides
  Time attention_launch = 2500_ns;  ///< start and drain of one attention kernel with tiles
  Time attention_start{0};          ///< of a unit, of few queries' keys of a head of a sequence
  double attention_head_share = 1;  ///< of bandwidth, to those keys of one head of one sequence
  double last_level_speedup = 1;    ///< prompts' attention out of the last-level cache
  double scan_share = 0.5;          ///< of peak, state-space scan
  double scan_backward_share = 0.5;
  double permute_share = 0.4;             ///< of bandwidth, rows of tokens to experts and back
  double convolution_share = 0.7;         ///< of bandwidth, causal convolution over long sequences
  double cache_write_share = 0.35;        ///< of bandwidth, keys and values into a paged cache
  double elementwise_share = 0.8;         ///< of bandwidth, streaming kernels
  double elementwise_backward_share = 0;  ///< their backwards; 0: the same, like those below
  double optimizer_share = 0;             ///< of bandwidth, updates of 32-bit states
  double optimizer_narrow_share = 0;      ///< of bandwidth, updates of 16-bit states
  double accumulate_share = 0;            ///< of bandwidth, gradients into a buffer of sums
  double odd_rows = 3;                    ///< longer by, GEMMs whose result has odd rows
  double odd_rows_input = 3;              ///< the same of an input's gradient
  double odd_rows_weight = 3;             ///< the same of a weight's gradient
  double uneven_rows = 1;                 ///< of an input's gradient whose rows are no whole tiles
  double softmax_share = 0.57;
  double norm_share = 0.86;        ///< rows much shorter than norm_width
  double norm_long_share = 0.41;   ///< rows much longer, which are read twice
  double norm_width = 11700;       ///< elements of a row half way between the two
  double norm_backward_share = 0;  ///< of bandwidth, norms' backwards; 0: as forward
  Time stream_launch = 2500_ns;    ///< start and drain of one memory-bound kernel

  template <class V>
  static void fields(V&& visit) {
    using K = KernelCoefficients;
    visit("gemm_peak_share", &K::gemm_peak_share, "share of peak of a 256 x 128 tile, deep K");
    visit("gemm_memory_share", &K::gemm_memory_share, "share of bandwidth of GEMM operands");
    visit("gemm_tile_load", &K::gemm_tile_load, "FLOP-equivalents to load an edge element");
    visit("gemm_k_ramp", &K::gemm_k_ramp, "elements of K lost per tile");
    visit("gemm_wave_quantisation", &K::gemm_wave_quantisation, "cost of a partial last wave");
    visit("gemm_launch", &K::gemm_launch, "start and drain of a GEMM kernel");
    visit("gemm_split_latency", &K::gemm_split_latency, "further cost of a split-K reduction");
    visit("gemm_split_traffic", &K::gemm_split_traffic, "share of partial sums through memory");
    visit("grouped_k_ramp", &K::grouped_k_ramp, "further K lost per tile of a grouped GEMM");
    visit("grouped_launch", &K::grouped_launch, "further start of a grouped GEMM");
    visit("attention_share", &K::attention_share, "share of peak of fused attention, forward");
    visit("attention_backward_share", &K::attention_backward_share, "the same, backward");
    visit("attention_tile", &K::attention_tile, "queries of a tile; 0: the share alone");
    visit("attention_key_elements", &K::attention_key_elements,
          "elements of a tile of keys; 0: keys singly");
    visit("attention_head_step", &K::attention_head_step,
          "heads are computed as a multiple of it, elements; 0: as they are");
    visit("attention_softmax", &K::attention_softmax, "FLOP-equivalents of a pair's exponential");
    visit("attention_key_ramp", &K::attention_key_ramp, "keys lost per tile of queries");
    visit("attention_tail", &K::attention_tail, "share of the longest tile left alone at the end");
    visit("attention_wave_quantisation", &K::attention_wave_quantisation,
          "cost of a partial last wave of tiles that are all as long");
    visit("attention_traffic", &K::attention_traffic, "share of queries and output not hidden");
    visit("attention_launch", &K::attention_launch, "start and drain of tiled attention");
    visit("attention_start", &K::attention_start,
          "of a unit, of the keys of one head of one sequence, for fewer than 16 queries");
    visit("attention_head_share", &K::attention_head_share,
          "share of bandwidth that the keys of one head of one sequence can take, for the same");
    visit("last_level_speedup", &K::last_level_speedup,
          "bandwidth of prompts' attention out of the last-level cache, over memory's");
    visit("scan_share", &K::scan_share, "share of peak of a state-space scan");
    visit("scan_backward_share", &K::scan_backward_share, "the same, backward");
    visit("permute_share", &K::permute_share, "share of bandwidth of rows to experts and back");
    visit("convolution_share", &K::convolution_share, "share of bandwidth of causal convolution");
    visit("cache_write_share", &K::cache_write_share, "share of bandwidth of writes to a KV cache");
    visit("elementwise_share", &K::elementwise_share, "share of bandwidth of streaming kernels");
    visit("elementwise_backward_share", &K::elementwise_backward_share,
          "share of bandwidth of their backwards; 0: as forward");
    visit("optimizer_share", &K::optimizer_share,
          "share of bandwidth of updates of 32-bit states; 0: as streaming kernels");
    visit("optimizer_narrow_share", &K::optimizer_narrow_share,
          "share of bandwidth of updates of 16-bit states; 0: as of 32-bit ones");
    visit("accumulate_share", &K::accumulate_share,
          "share of bandwidth of gradients into a buffer of sums; 0: as streaming kernels");
    visit("odd_rows", &K::odd_rows, "how much longer GEMMs take whose result has odd rows");
    visit("odd_rows_input", &K::odd_rows_input, "the same of the gradient of their input");
    visit("odd_rows_weight", &K::odd_rows_weight, "the same of the gradient of their weight");
    visit("uneven_rows", &K::uneven_rows,
          "how much longer gradients of inputs take whose rows are not whole multiples of 128");
    visit("softmax_share", &K::softmax_share, "share of bandwidth of softmax");
    visit("norm_share", &K::norm_share, "share of bandwidth of norms over short rows");
    visit("norm_long_share", &K::norm_long_share, "share of bandwidth of norms over long rows");
    visit("norm_width", &K::norm_width, "row length half way between the two, elements");
    visit("norm_backward_share", &K::norm_backward_share,
          "share of bandwidth of norms' backwards; 0: as forward");
    visit("stream_launch", &K::stream_launch, "start and drain of a memory-bound kernel");
  }

  friend bool operator==(const KernelCoefficients&, const KernelCoefficients&) = default;
};

/// Returns whether a share may be 0, where it is as another's.
constexpr bool is_optional_share(std::string_view name) {
  return name == "elementwise_backward_share" || name == "norm_backward_share" ||
         name == "optimizer_share" || name == "optimizer_narrow_share" ||
         name == "accumulate_share";
}

/// fp8 with a scale for each block of K: of 128 elements, outside the matrix units, where these do
/// not scale themselves; of 32 inside them (mxfp8), where they do (Device::microscaling).
inline constexpr std::string_view kBlockScaledFp8 = "fp8_block";

/// Fused attention of fewer than 16 queries, which may read its keys faster than long prompts do.
inline constexpr std::string_view kDecodeKernels = "decode";

/// Returns the name of the coefficients for fused attention of a library, in 16 bits or cuDNN's in
/// fp8, forward or backward; "": the usual coefficients. The usual backward is cuDNN's.
constexpr std::string_view attention_set(graph::AttentionLibrary library, bool backward) {
  switch (library) {
    case graph::AttentionLibrary::any:
      return backward ? "attention_backward" : "";
    case graph::AttentionLibrary::trtllm:
      return "attention_trtllm";
    case graph::AttentionLibrary::cudnn:
      return backward ? "attention_backward" : "attention_cudnn";
    case graph::AttentionLibrary::cudnn_fp8:
      return backward ? "attention_fp8_backward" : "attention_fp8";
    case graph::AttentionLibrary::flash2:
      return backward ? "attention_flash2_backward" : "attention_flash2";
  }
  return "";
}

/// Sets of coefficients that a machine file may give beside those of data types.
inline constexpr std::array kOtherKernelSets{
    kBlockScaledFp8,
    kDecodeKernels,
    attention_set(graph::AttentionLibrary::trtllm, false),
    attention_set(graph::AttentionLibrary::cudnn, false),
    attention_set(graph::AttentionLibrary::cudnn, true),
    attention_set(graph::AttentionLibrary::cudnn_fp8, false),
    attention_set(graph::AttentionLibrary::cudnn_fp8, true),
    attention_set(graph::AttentionLibrary::flash2, false),
    attention_set(graph::AttentionLibrary::flash2, true)};

/// Says how its kernels are timed: a row each of kComputeModels (compute_model.cc).
enum class ComputeModel : std::uint8_t { roofline, systolic, pim, spatial };
constexpr auto named_values(ComputeModel) {
  return std::to_array<Named<ComputeModel>>({
      {ComputeModel::roofline, "roofline",
       "tiles and waves of GEMMs at a share of peak, or the bytes at a share of bandwidth"},
      {ComputeModel::systolic, "systolic",
       "folds of GEMMs on systolic arrays, cycle by cycle, that wait for SRAM to be filled"},
      {ComputeModel::pim, "pim",
       "products in DRAM banks, row by row: activate, multiply, precharge, refresh"},
      {ComputeModel::spatial, "spatial",
       "FLOPs at a share of peak or bytes at a share of bandwidth; a layer is one fused kernel"},
  });
}

constexpr bool is_attention_backward(const graph::Operator& op) {
  return op.kind == graph::OperatorKind::attention && op.backward;
}

/// Hardware that counts the updates of every output tile of a product near the memory controller,
/// starts an engine that moves it when they are complete, and adds what arrives near the memory
/// (T3, arXiv 2401.16677). No device that is sold has it.
struct Tracker {
  /// kappa: a product of g bytes of memory traffic beside c bytes of moved tiles takes
  /// 1 + kappa c / (g + c) times as long, unless memory serves it first (tracked_mca).
  double contention = 0.6;
  double rereads = 2;         ///< reads of a product's operands from memory, over reading them once
  double read_saving = 1.56;  ///< those without tiles in the cache, over those beside the tracker

  template <class V>
  static void fields(V&& visit) {
    visit("contention", &Tracker::contention, "kappa: what moved tiles cost a product");
    visit("rereads", &Tracker::rereads, "reads of a product's operands, over once");
    visit("read_saving", &Tracker::read_saving,
          "by how much its reads shrink, as sums bypass caches");
  }

  friend bool operator==(const Tracker&, const Tracker&) = default;
};

struct Device {
  std::string name;                                    ///< "A100-SXM4-80GB"
  std::array<FlopRate, graph::kDataTypeCount> peak{};  ///< dense, by DataType; 0 = not supported
  int units = 1;                                       ///< streaming multiprocessors, compute units
  std::vector<MemoryTier> memory;  ///< the first holds parameters and activations
  Bytes last_level_cache{0};       ///< of all units together; 0: nothing is found in it
  Power power{0};                  ///< thermal design power; 0 = not known
  Power power_cap{0};              ///< that the operator set; 0: the design power
  Power idle_power{0};             ///< with a context, at full clock; 0 = not known
  PowerModel power_model;          ///< of kernels, by kind and load
  Money price_per_hour{0};         ///< of one device; 0 = not known
  /// Matrix units take a scale per 16 or 32 elements of K themselves (mxfp8, nvfp4).
  bool microscaling = false;
  /// The greatest share of the kernel tables' rate that is kept in a job of minutes at the design
  /// power, as a published loop of products says; what is left under a power cap may be less.
  double sustained_clock = 1;
  /// Share of the kernel tables' rate that is left at the clock which the power cap allows. No
  /// field of a file: clock.h finds it, for the usual mix of kernels when a file is read and for
  /// its own kernels where a step is timed.
  double clock = 1;
  double attention_clock = 1;  ///< the same share of the tables of attention
  double full_clock = 1;       ///< the clock itself, over full clock; found with `clock`
  ComputeModel model = ComputeModel::roofline;
  SystolicArray systolic;  ///< of model systolic
  PimDevice pim;           ///< of model pim
  SpatialDevice spatial;   ///< of model spatial
  KernelCoefficients kernels;
  /// Whole sets of coefficients for kernels of a number format that behave otherwise, by name of
  /// the data type or "fp8_block", and for attention of "decode" or of a library (attention_set). A
  /// file gives only what differs from `kernels`.
  std::map<std::string, KernelCoefficients, std::less<>> format_kernels;
  /// Share of compute units and of memory bandwidth that a collective running at the same time
  /// takes from compute kernels; a point-to-point message alone takes `overlap_send_units`, as it
  /// has fewer channels, and no bandwidth worth counting.
  double overlap_units = 0;
  double overlap_memory = 0;
  double overlap_send_units = 0;
  std::optional<Tracker> tracker{};
  /// These bytes of the first memory tier are not for tensors: what driver, runtime and libraries
  /// of one process take, and what each communicator of several ranks buffers. Fragmentation is not
  /// counted.
  Bytes framework_memory{0};
  Bytes communicator_memory{0};
  /// The bytes that a communicator that exchanges all to all, for each other rank of the node.
  Bytes exchange_memory{0};

  /// Coefficients of the operator's format; without its own, block-scaled fp8 is as fp8. Sums that
  /// leave the matrix units cost as much as scales of blocks; units that microscale sum in fp32.
  const KernelCoefficients& kernels_of(const graph::Operator& op) const {
    auto found = format_kernels.end();
    const bool blocks = op.block_scaled || (op.splits_sums && !microscaling);
    if (blocks && op.type == graph::DataType::fp8) {
      found = format_kernels.find(kBlockScaledFp8);
    }
    if (op.library != graph::AttentionLibrary::any || is_attention_backward(op)) {
      found = format_kernels.find(attention_set(op.library, op.backward));
    }
    if (found == format_kernels.end()) {
      found = format_kernels.find(name_of(op.type));
    }
    return found == format_kernels.end() ? kernels : found->second;
  }

  /// Visits all fields but model, peak, memory, power_model, kernels and tracker.
  template <class V>
  static void fields(V&& visit) {
    visit("name", &Device::name, "as its vendor calls it");
    visit("units", &Device::units, "streaming multiprocessors, compute units");
    visit("last_level_cache", &Device::last_level_cache, "of all units; 0: nothing is found in it");
    visit("microscaling", &Device::microscaling, "matrix units scale blocks: mxfp8, nvfp4");
    visit("sustained_clock", &Device::sustained_clock,
          "most of the kernels' rate that is kept for minutes");
    visit("power", &Device::power, "thermal design power; 0 = not known");
    visit("power_cap", &Device::power_cap, "that the operator set; 0 = the design power");
    visit("idle_power", &Device::idle_power, "with a context, at full clock; 0 = not known");
    visit("price_per_hour", &Device::price_per_hour, "of one device, dollars; 0 = not known");
    visit("overlap_units", &Device::overlap_units, "share of units that a collective takes");
    visit("overlap_memory", &Device::overlap_memory, "share of bandwidth that a collective takes");
    visit("overlap_send_units", &Device::overlap_send_units, "share of units that a message takes");
    visit("framework_memory", &Device::framework_memory, "driver, runtime and libraries");
    visit("communicator_memory", &Device::communicator_memory, "buffers of a communicator");
    visit("exchange_memory", &Device::exchange_memory,
          "all-to-all: buffers for a rank of the node");
  }

  friend bool operator==(const Device&, const Device&) = default;
};

/// Calls f with the map of the device's model: what a machine file says under the model's name.
template <class D, class F>
void model_map(D& device, F&& f) {
  switch (device.model) {
    case ComputeModel::roofline:
      return;
    case ComputeModel::systolic:
      return f(device.systolic);
    case ComputeModel::pim:
      return f(device.pim);
    case ComputeModel::spatial:
      return f(device.spatial);
  }
}

/// Returns the device as kernels alone and for a moment see it: no cap holds its clock.
inline Device at_boost(Device device) {
  device.power_cap = Power::max();
  device.sustained_clock = device.clock = device.attention_clock = device.full_clock = 1;
  return device;
}

}  // namespace orrery::compute
