// SPDX-License-Identifier: Apache-2.0
/// Kernels as they were measured on a card: what a step takes instead of the device's formulas
/// where they cover it. Tables are told apart by their columns; times are microseconds, further
/// columns are not read:
///
///   layer, tokens, time_us       kernels of the model's layers over T tokens
///   layer, sequences, time_us    the same over S sampled rows (lm_head, sampler)
///   prefill_chunk, kv_prefill, n_decode, kv_decode, time_us
///                                one launch of attention with its cache write: a prompt's chunk
///                                behind kv_prefill tokens, beside n decodes of kv_decode keys each
///   m, n, k, latency_us          products C[m, n] = A[m, k] B[k, n]; `dtype` or `type` if not bf16
///
/// The first three are a profile of LLMServingSim (casys-kaist, profiler/perf/CARD/MODEL/TYPE/tpN):
/// of one model and tensor parallel degree, so their user states the same ones. Layers by name:
/// embedding, layernorm, qkv_proj, qk_norm, rotary_emb, o_proj, gate_up_proj, act_fn, down_proj,
/// final_layernorm, lm_head, sampler.
///
/// Between two sizes linear, below the least its time, above the greatest on the line through the
/// last two (not below the last). Several prompts: the largest beside the decodes, of the others
/// what each takes alone over the least time of the table; so, too, decodes beside a prompt where
/// no row has both.
///
/// Mistakes: files that cannot be read, other columns, no rows, numbers out of range, one size
/// twice, layers of which none is known, attention without prompts or without decodes alone.
/// Ignores:  unequal contexts of decodes (the profile's skew.csv); savings of graphs (step.csv).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/csv.h"
#include "base/result.h"
#include "base/units.h"
#include "graph/operator.h"

namespace orrery::step {

/// An AttentionShape is that of one launch: a chunk of `queries` tokens behind `context`, `decodes`
/// requests of `keys` keys.
struct AttentionShape {
  double queries = 0;
  double context = 0;
  double decodes = 0;
  double keys = 0;
};

class MeasuredKernels {
 public:
  /// Files separated by commas.
  static Result<MeasuredKernels> load(const std::string& files);
  static Result<MeasuredKernels> of(const std::vector<CsvTable>& tables);

  /// Returns the time of the kernel that zoo::layer_operators and head_operators call `op`, or
  /// "sampling".
  std::optional<Time> layer(std::string_view op, std::int64_t rows) const;
  std::optional<Time> product(graph::DataType type, std::int64_t m, std::int64_t n,
                              std::int64_t k) const;
  bool has_attention() const { return !attention_.empty(); }
  /// Requires has_attention(), and queries or decodes > 0.
  Time attention(const AttentionShape& shape) const;
  /// Returns the time of another prompt in a launch: beside what a launch takes in any case.
  Time further_prompt(double queries, double context) const;

 private:
  using Line = std::map<double, double>;  ///< microseconds by size
  using Product = std::tuple<graph::DataType, std::int64_t, std::int64_t>;  ///< n, k

  void read(const CsvTable& table, Error& error);
  void read_layers(const CsvTable& table, std::string_view size, Error& error);
  void read_attention(const CsvTable& table, Error& error);
  void read_products(const CsvTable& table, Error& error);
  /// Returns the time in microseconds.
  double attention_time(const AttentionShape& shape) const;

  std::map<std::string, Line, std::less<>> layers_;
  std::map<Product, Line> products_;
  /// Holds measured attention by queries, context, decodes and keys; no prompt and no decode are 0.
  std::map<double, std::map<double, std::map<double, Line>>> attention_;
  double least_attention_ = 0;
};

}  // namespace orrery::step
