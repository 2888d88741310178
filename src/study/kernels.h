// SPDX-License-Identifier: Apache-2.0
/// Kernels by their shapes alone, and how long each takes on a device.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
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
  }
};

/// The kernels as the compute model knows them, in order. Mistakes, each at `where`: extents below
/// 1 or too large, formats that are unknown or that the device does not compute in. Formats have
/// the names of data types, of other tools (bfloat16, ...), or of block scaling: fp8_block, mxfp8,
/// nvfp4.
///
/// Attention: 2 products forward and 5 backward per head and pair of query and key (Dao et al.
/// 2023); of causal queries half of the pairs among themselves. Forward reads queries, keys and
/// values and writes the output and an fp32 sum per row; backward reads all of them and the
/// output's gradient and writes three gradients. With a cache, as inference engines run it, a
/// kernel before it reads and writes the keys and values of the queries' positions; training has
/// none.
using Kernels = std::vector<graph::Operator>;
Result<Kernels> kernels_of(const GemmQuery& query, const compute::Device& device,
                           const std::string& where);
Result<Kernels> kernels_of(const AttentionQuery& query, const compute::Device& device,
                           const std::string& where);

struct KernelRow {
  Time time{0};
  Bound bound = Bound::compute;  ///< the largest part of bounds_of(), of all kernels together
  double flops_per_s = 0;
  double bytes_per_s = 0;  ///< operands and results, each once
};
/// One after the other.
KernelRow time_kernels(const Kernels& kernels, const compute::Device& device);

/// One query per row: columns are named as its fields; kRequired must be there, others of the file
/// are not read. Mistakes of all rows, at most 20.
template <class Query>
Result<std::vector<Query>> read_queries(const CsvTable& table);

}  // namespace orrery::study
