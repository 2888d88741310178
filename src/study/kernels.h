// SPDX-License-Identifier: Apache-2.0
/// Kernels by their shapes alone, and how long each takes on a device.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/names.h"
#include "base/result.h"
#include "machine/compute/device.h"
#include "study/kernel_bound.h"

namespace orrery::study {

/// C[m, n] = A[m, k] B[k, n], `batch` times.
struct GemmQuery {
  std::string type = "bf16";
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;

  static constexpr std::array<std::string_view, 3> kRequired{"m", "n", "k"};

  template <class V>
  static void fields(V&& visit) {
    visit("type", &GemmQuery::type, "number format: bf16, fp16, fp32, tf32, fp8, fp8_block, ...");
    visit("m", &GemmQuery::m, "rows of A and C");
    visit("n", &GemmQuery::n, "columns of B and C");
    visit("k", &GemmQuery::k, "columns of A, rows of B");
    visit("batch", &GemmQuery::batch, "products of different operands; default 1");
  }
};

/// One fused attention kernel. Causal queries are the last of the keys.
struct AttentionQuery {
  std::string type = "bf16";
  std::int64_t batch = 1;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t window = 0;
  bool causal = true;
  bool backward = false;
  bool cache = true;
  std::string framework{};
  graph::AttentionLibrary library = graph::AttentionLibrary::any;

  static constexpr std::array<std::string_view, 3> kRequired{"heads", "head_dim", "queries"};

  template <class V>
  static void fields(V&& visit) {
    visit("type", &AttentionQuery::type, "number format: bf16, fp16, fp8, ...");
    visit("batch", &AttentionQuery::batch, "sequences; default 1");
    visit("heads", &AttentionQuery::heads, "query heads");
    visit("kv_heads", &AttentionQuery::kv_heads, "key-value heads; 0 = heads");
    visit("head_dim", &AttentionQuery::head_dim, "elements of a head");
    visit("queries", &AttentionQuery::queries, "of each sequence");
    visit("keys", &AttentionQuery::keys, "of each sequence; 0 = queries");
    visit("window", &AttentionQuery::window, "keys that a causal query sees at most; 0 = all");
    visit("causal", &AttentionQuery::causal, "a query sees no later key; default true");
    visit("backward", &AttentionQuery::backward, "the backward kernel; default false");
    visit("cache", &AttentionQuery::cache, "forward: keys and values also go to a paged cache");
    visit("framework", &AttentionQuery::framework,
          "trtllm: as library trtllm; vllm, sglang, pytorch: as library says");
    visit("library", &AttentionQuery::library,
          "whose kernels, where the device knows them: trtllm, cudnn, cudnn_fp8, flash2; default "
          "any");
  }
};

/// Says how the rows of a MoE layer fall on experts.
enum class Routing : std::uint8_t { balanced, power_law };
constexpr auto named_values(Routing) {
  return std::to_array<Named<Routing>>({
      {Routing::balanced, "balanced", "as many rows for every expert"},
      {Routing::power_law, "power_law", "loads of experts as x^-1; the most loaded rank"},
  });
}

/// The experts of one rank, without router, shared experts and exchange of tokens.
struct MoeQuery {
  std::string type = "bf16";
  std::int64_t num_tokens = 0;
  std::int64_t hidden_size = 0;
  std::int64_t inter_size = 0;
  std::int64_t topk = 0;
  std::int64_t num_experts = 0;
  std::int64_t moe_tp_size = 1;
  std::int64_t moe_ep_size = 1;
  Routing distribution = Routing::balanced;
  bool gated = true;

  static constexpr std::array<std::string_view, 5> kRequired{"num_tokens", "hidden_size",
                                                             "inter_size", "topk", "num_experts"};

  template <class V>
  static void fields(V&& visit) {
    visit("type", &MoeQuery::type, "number format of the GEMMs: bf16, fp8, fp8_block, nvfp4, ...");
    visit("num_tokens", &MoeQuery::num_tokens, "of all ranks that share the experts");
    visit("hidden_size", &MoeQuery::hidden_size, "elements of a token");
    visit("inter_size", &MoeQuery::inter_size, "inner width of an expert");
    visit("topk", &MoeQuery::topk, "experts of a token");
    visit("num_experts", &MoeQuery::num_experts, "of all ranks");
    visit("moe_tp_size", &MoeQuery::moe_tp_size, "ranks that share each expert; default 1");
    visit("moe_ep_size", &MoeQuery::moe_ep_size, "ranks that share the experts; default 1");
    visit("distribution", &MoeQuery::distribution, "balanced (default) or power_law");
    visit("gated", &MoeQuery::gated, "two matrices before the activation; default true");
  }
};

/// Rows of the most loaded of `ep` ranks over those of an equal share. Loads of experts drawn from
/// a density x^-1 between 1 and 0.8 tokens, as the tables of aiconfigurator are (recalled): with L
/// = ln(0.8 tokens) the greatest is L times the mean and the variance (L / 2 - 1) times its square,
/// so that the greatest of ep means of experts / ep loads is about
///
///   1 + sqrt(L / 2 - 1) sqrt(2 ln(ep) ep / experts),  at most L, and at most ep
double greatest_load(std::int64_t tokens, std::int64_t experts, std::int64_t ep);

/// The kernels as the compute model knows them, in order. Mistakes, each at `where`: extents below
/// 1 or too large, formats that are unknown or that the device does not compute in. Formats have
/// the names of data types, of other tools (bfloat16, ...), or of block scaling: fp8_block, mxfp8,
/// nvfp4.
///
/// Attention: 2 products forward and 5 backward per head and pair of query and key (Dao et al.
/// 2023); causal queries have half of the pairs among themselves. Forward reads queries, keys and
/// values and writes the output and an fp32 sum per row; backward reads all of them and the
/// output's gradient and writes three gradients. With a cache, as inference engines run it, a
/// kernel before it reads and writes the keys and values of the queries' positions; training has
/// none.
using Kernels = std::vector<graph::Operator>;
Result<Kernels> kernels_of(const GemmQuery& query, const compute::Device& device,
                           const std::string& where);
Result<Kernels> kernels_of(const AttentionQuery& query, const compute::Device& device,
                           const std::string& where);
/// Returns the kernels: permutation, first products, activation, second products, weighted sum. A
/// rank has num_tokens topk / ep rows (power_law: times greatest_load), in equal parts on its
/// experts; no row, no expert.
Result<Kernels> kernels_of(const MoeQuery& query, const compute::Device& device,
                           const std::string& where);

struct KernelRow {
  Time time{0};
  Bound bound = Bound::compute;  ///< the largest part of bounds_of(), of all kernels together
  double flops_per_s = 0;
  double bytes_per_s = 0;  ///< operands and results, each once
};
/// Times kernels one after the other.
KernelRow time_kernels(const Kernels& kernels, const compute::Device& device);

/// Reads one query per row: columns are named as its fields, type also dtype; kRequired must be
/// there, others of the file are not read. Mistakes of all rows, at most 20; more rows than a file
/// may have (too_many_rows), each of a query and `beside` bytes that its reader makes of it.
template <class Query>
Result<std::vector<Query>> read_queries(const CsvTable& table, std::size_t beside = 0);

}  // namespace orrery::study
