// SPDX-License-Identifier: Apache-2.0
#include "serving/step/measured_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "base/collect.h"
#include "base/misread.h"
#include "base/reader.h"
#include "base/split.h"
#include "machine/compute/number_format.h"

namespace orrery::step {
namespace {

constexpr double kMostMicroseconds = 1e9;
constexpr double kMostSize = 1e9;
constexpr std::array<std::string_view, 4> kAttentionSizes{"prefill_chunk", "kv_prefill", "n_decode",
                                                          "kv_decode"};

/// Layers of the tables, and what they are here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kLayers{
    {{"embedding", "token_embedding"},
     {"layernorm", "input_norm"},
     {"layernorm", "mlp_norm"},
     {"qkv_proj", "qkv_gemm"},
     {"qk_norm", "query_key_norm"},
     {"rotary_emb", "rotary"},
     {"o_proj", "proj_gemm"},
     {"gate_up_proj", "fc1_gemm"},
     {"act_fn", "silu_mul"},
     {"act_fn", "gelu_mul"},
     {"act_fn", "gelu"},
     {"down_proj", "fc2_gemm"},
     {"final_layernorm", "final_norm"},
     {"lm_head", "logits_gemm"},
     {"sampler", "sampling"}}};

/// A row's number, or 0 and a mistake; the table has the column.
double number_of(const CsvTable& table, const CsvRow& row, std::string_view column, double least,
                 double most, FileMistakes& error) {
  const std::string_view text = row.cells[table.column(column).value_or(0)];
  const auto value = parse_number(text);
  if (value && *value >= least && *value <= most) {
    return *value;
  }
  error.add(misread(table.where(row), std::string(column), text,
                    fmt::format("a number from {} to {:.0e}", least, most)));
  return 0;
}

double time_of(const CsvTable& table, const CsvRow& row, std::string_view column,
               FileMistakes& error) {
  constexpr double kLeast = 1e-3;
  return number_of(table, row, column, kLeast, kMostMicroseconds, error);
}

/// The value at x of what `at` makes of the entries from `first` on of a table by size, linear
/// between two.
template <class Table, class At>
double between(const Table& table, typename Table::const_iterator first, double x, const At& at) {
  assert(first != table.end());
  const auto above = table.lower_bound(x);
  if (x <= first->first || (above != table.end() && above->first == x)) {
    return at(x <= first->first ? first->second : above->second);
  }
  const auto high = above == table.end() ? std::prev(above) : above;
  if (high == first) {
    return at(high->second);
  }
  const auto low = std::prev(high);
  const double from = at(low->second);
  const double to = at(high->second);
  const double value = from + (to - from) * (x - low->first) / (high->first - low->first);
  return above == table.end() ? std::max(to, value) : value;
}

double on_line(const std::map<double, double>& line, double x) {
  return between(line, line.begin(), x, [](double value) { return value; });
}

Time microseconds(double value) {
  return from_seconds(1e-6 * value);
}

}  // namespace

Result<MeasuredKernels> MeasuredKernels::load(const std::string& files) {
  Error error;
  std::vector<CsvTable> tables;
  for (const std::string_view file : split_at(files, ',')) {
    if (auto table = load_csv(std::string(file))) {
      tables.push_back(std::move(*table));
    } else {
      error.add(std::move(table.error()));
    }
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return of(tables);
}

Result<MeasuredKernels> MeasuredKernels::of(const std::vector<CsvTable>& tables) {
  MeasuredKernels kernels;
  Error error;
  for (const CsvTable& table : tables) {
    kernels.read(table, error);
  }
  const auto& attention = kernels.attention_;
  const bool decodes = attention.contains(0);
  const bool prompts = std::all_of(attention.begin(), attention.end(), [](const auto& chunk) {
    return chunk.first == 0 ||
           std::all_of(chunk.second.begin(), chunk.second.end(),
                       [](const auto& context) { return context.second.contains(0); });
  });
  if (error.empty() && kernels.has_attention() &&
      !(decodes && prompts && attention.rbegin()->first > 0)) {
    error.add({"", "attention", "",
               "decodes alone (prefill_chunk 0), and every chunk and kv_prefill without decodes"});
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return kernels;
}

void MeasuredKernels::read(const CsvTable& table, Error& error) {
  const auto has = [&](std::string_view column) { return table.column(column).has_value(); };
  if (table.rows.empty()) {
    error.add({table.file, "", "", "no rows: expected at least one kernel"});
  } else if (has("layer") && has("tokens") && has("time_us")) {
    read_layers(table, "tokens", error);
  } else if (has("layer") && has("sequences") && has("time_us")) {
    read_layers(table, "sequences", error);
  } else if (std::all_of(kAttentionSizes.begin(), kAttentionSizes.end(), has) && has("time_us")) {
    read_attention(table, error);
  } else if (has("m") && has("n") && has("k") && has("latency_us")) {
    read_products(table, error);
  } else {
    error.add({table.file + ":1", "header", fmt::format("{}", fmt::join(table.header, ",")),
               "layer, tokens or sequences, time_us; prefill_chunk, kv_prefill, n_decode, "
               "kv_decode, time_us; or m, n, k, latency_us"});
  }
}

void MeasuredKernels::read_layers(const CsvTable& table, std::string_view size, Error& error) {
  FileMistakes mistakes(table.file);
  bool known = false;
  for (const CsvRow& row : table.rows) {
    const std::string name(row.cells[*table.column("layer")]);
    known = known || std::any_of(kLayers.begin(), kLayers.end(),
                                 [&](const auto& pair) { return pair.first == name; });
    const double rows = number_of(table, row, size, 1, kMostSize, mistakes);
    if (!layers_[name].emplace(rows, time_of(table, row, "time_us", mistakes)).second) {
      mistakes.add(
          {table.where(row), "layer", name, fmt::format("every size once: {} again", rows)});
    }
  }
  if (!known) {
    std::vector<std::string_view> names;
    for (const auto& [name, op] : kLayers) {
      if (names.empty() || names.back() != name) {
        names.push_back(name);
      }
    }
    mistakes.add({table.file, "layer",
                  std::string(table.rows.front().cells[*table.column("layer")]),
                  fmt::format("some of {}", fmt::join(names, ", "))});
  }
  error.add(mistakes.take());
}

void MeasuredKernels::read_attention(const CsvTable& table, Error& error) {
  FileMistakes mistakes(table.file);
  for (const CsvRow& row : table.rows) {
    std::array<double, kAttentionSizes.size()> sizes{};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sizes[i] = number_of(table, row, kAttentionSizes[i], 0, kMostSize, mistakes);
    }
    const auto& [queries, context, decodes, keys] = sizes;
    if (queries == 0 && decodes == 0) {
      mistakes.add({table.where(row), "n_decode", "0", "above 0 where prefill_chunk is 0"});
    } else if ((queries == 0 && context > 0) || ((decodes == 0) != (keys == 0))) {
      mistakes.add({table.where(row), "kv_decode", fmt::format("{}", keys),
                    "tokens of a chunk and of decodes that there are"});
    }
    const double time = time_of(table, row, "time_us", mistakes);
    if (!attention_[queries][context][decodes].emplace(keys, time).second) {
      mistakes.add({table.where(row), "time_us", fmt::format("{}", time), "every shape once"});
    }
    least_attention_ = least_attention_ == 0 ? time : std::min(least_attention_, time);
  }
  error.add(mistakes.take());
}

void MeasuredKernels::read_products(const CsvTable& table, Error& error) {
  FileMistakes mistakes(table.file);
  const auto format = table.column("dtype") ? table.column("dtype") : table.column("type");
  for (const CsvRow& row : table.rows) {
    const std::string name(format ? row.cells[*format] : "bf16");
    const auto type = compute::number_format(name);
    if (!type) {
      mistakes.add({table.where(row), format ? table.header[*format] : "type", name,
                    "a number format such as bf16"});
    }
    const double m = number_of(table, row, "m", 1, kMostSize, mistakes);
    const double n = number_of(table, row, "n", 1, kMostSize, mistakes);
    const double k = number_of(table, row, "k", 1, kMostSize, mistakes);
    const double time = time_of(table, row, "latency_us", mistakes);
    if (type && !type->block_scaled) {
      // The same shape from several versions of a framework: the fastest.
      const auto [found, fresh] =
          products_[{type->type, static_cast<std::int64_t>(n), static_cast<std::int64_t>(k)}]
              .emplace(m, time);
      found->second = std::min(found->second, time);
    }
  }
  error.add(mistakes.take());
}

std::optional<Time> MeasuredKernels::layer(std::string_view op, std::int64_t rows) const {
  for (const auto& [name, ours] : kLayers) {
    if (ours == op) {
      const auto found = layers_.find(name);
      return found == layers_.end()
                 ? std::nullopt
                 : std::optional(microseconds(on_line(found->second, static_cast<double>(rows))));
    }
  }
  return std::nullopt;
}

std::optional<Time> MeasuredKernels::product(graph::DataType type, std::int64_t m, std::int64_t n,
                                             std::int64_t k) const {
  const auto found = products_.find({type, n, k});
  return found == products_.end()
             ? std::nullopt
             : std::optional(microseconds(on_line(found->second, static_cast<double>(m))));
}

double MeasuredKernels::attention_time(const AttentionShape& shape) const {
  const auto decodes_of = [&](const std::map<double, Line>& by_decodes) {
    const auto first = by_decodes.upper_bound(0.0);
    if (shape.decodes == 0) {
      return on_line(by_decodes.begin()->second, 0);
    }
    if (first == by_decodes.end()) {
      const AttentionShape alone{.decodes = shape.decodes, .keys = shape.keys};
      return on_line(by_decodes.begin()->second, 0) + attention_time(alone) - least_attention_;
    }
    return between(by_decodes, first, shape.decodes,
                   [&](const Line& by_keys) { return on_line(by_keys, shape.keys); });
  };
  const auto contexts_of = [&](const std::map<double, std::map<double, Line>>& by_context) {
    return between(by_context, by_context.begin(), shape.context, decodes_of);
  };
  // From no prompt to the least is another kernel, not a line.
  return shape.queries == 0
             ? contexts_of(attention_.begin()->second)
             : between(attention_, attention_.upper_bound(0.0), shape.queries, contexts_of);
}

Time MeasuredKernels::attention(const AttentionShape& shape) const {
  assert(has_attention() && shape.queries + shape.decodes > 0);
  return microseconds(attention_time(shape));
}

Time MeasuredKernels::further_prompt(double queries, double context) const {
  const AttentionShape alone{.queries = queries, .context = context};
  return microseconds(std::max(attention_time(alone) - least_attention_, 0.0));
}

}  // namespace orrery::step
