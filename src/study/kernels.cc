// SPDX-License-Identifier: Apache-2.0
#include "study/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "base/collect.h"
#include "base/misread.h"
#include "base/reader.h"
#include "machine/compute/compute_model.h"
#include "machine/compute/number_format.h"
#include "machine/compute/packed_heads.h"

namespace orrery::study {
namespace {

constexpr std::int64_t kLargestExtent = std::int64_t{1} << 40;
constexpr double kLargestProduct = 1e18;  // of all extents
constexpr std::size_t kMostMistakes = 20;

bool runs_on(const compute::NumberFormat& format, const compute::Device& device) {
  return device.peak[static_cast<std::size_t>(format.type)] > FlopRate(0) &&
         (!format.microscaling || device.microscaling);
}

std::vector<std::string> formats_of(const compute::Device& device) {
  std::vector<std::string> names;
  for (const std::string& name : names_of<graph::DataType>()) {
    if (runs_on(*compute::number_format(name), device)) {
      names.push_back(name);
    }
  }
  for (const compute::NumberFormat& format : compute::kScaledFormats) {
    if (runs_on(format, device)) {
      names.emplace_back(format.name);
    }
  }
  return names;
}

/// Collects what is wrong with a query.
class QueryCheck {
 public:
  explicit QueryCheck(const std::string& where) : where_(where) {}

  void extent(std::string_view field, std::int64_t value) {
    if (value < 1 || value > kLargestExtent) {
      error_.add({where_, std::string(field), std::to_string(value),
                  fmt::format("a whole number from 1 to {}", kLargestExtent)});
    }
    product_ *= static_cast<double>(value);
  }
  void require(bool ok, std::string_view field, const std::string& found, std::string expected) {
    if (!ok) {
      error_.add({where_, std::string(field), found, std::move(expected)});
    }
  }
  void format(const std::string& name, const compute::Device& device, graph::Operator& op) {
    const std::optional<compute::NumberFormat> format = compute::number_format(name);
    if (!format || !runs_on(*format, device)) {
      const std::vector<std::string> known = formats_of(device);
      error_.add({where_, "type", name,
                  fmt::format("one of {}, in which {} computes{}", fmt::join(known, ", "),
                              device.name, format ? "" : did_you_mean(name, known))});
      return;
    }
    op.type = format->type;
    op.block_scaled = format->block_scaled;
  }
  Result<graph::Operator> finish(graph::Operator op) {
    require(!error_.empty() || product_ <= kLargestProduct, "", fmt::format("{:.3g}", product_),
            fmt::format("extents whose product is at most {:.0e}", kLargestProduct));
    return or_mistakes(std::move(op), std::move(error_));
  }

 private:
  const std::string& where_;
  Error error_;
  double product_ = 1;
};

template <class T>
void take(const CsvRow& row, std::optional<std::size_t> column, const CsvTable& table, T& into,
          Error& error) {
  if (!column) {
    return;
  }
  if (auto value = parse_value<T>(row.cells[*column])) {
    into = std::move(*value);
  } else {
    error.add(misread(table.where(row), table.header[*column], row.cells[*column], value.error()));
  }
}

/// Returns the pairs of one head and sequence: the area under min(position, window) over the
/// queries' positions.
double visible_pairs(const AttentionQuery& query) {
  const auto queries = static_cast<double>(query.queries);
  const auto keys = static_cast<double>(query.keys);
  if (!query.causal) {
    return queries * keys;
  }
  const double window = query.window > 0 ? std::min(keys, static_cast<double>(query.window)) : keys;
  const double first = keys - queries;
  const double growing = std::max(0.0, window - first);  // queries that see fewer than the window
  return queries * window - growing * growing / 2;
}

/// Checks a query that names its keys and key-value heads.
void check_attention(const AttentionQuery& query, QueryCheck& check) {
  constexpr std::array<std::string_view, 5> kFrameworks{"", "trtllm", "vllm", "sglang", "pytorch"};
  check.require(
      std::find(kFrameworks.begin(), kFrameworks.end(), query.framework) != kFrameworks.end(),
      "framework", query.framework, "trtllm, vllm, sglang or pytorch");
  check.extent("batch", query.batch);
  check.extent("heads", query.heads);
  check.extent("head_dim", query.head_dim);
  check.extent("queries", query.queries);
  const bool divides = query.kv_heads >= 1 && query.heads % query.kv_heads == 0;
  check.require(divides || query.heads < 1, "kv_heads", std::to_string(query.kv_heads),
                fmt::format("a divisor of heads = {}, or 0", query.heads));
  check.require(query.keys >= query.queries || (!query.causal && query.keys >= 1), "keys",
                std::to_string(query.keys),
                query.causal ? fmt::format("at least queries = {}, or 0", query.queries)
                             : "a whole number from 1 on, or 0");
  check.require(query.keys <= kLargestExtent, "keys", std::to_string(query.keys),
                fmt::format("at most {}", kLargestExtent));
  check.require(query.window >= 0 && (query.window == 0 || query.causal), "window",
                std::to_string(query.window), "0, or with causal a whole number above it");
}

/// An element of every head of key-value pairs.
Bytes key_element(const AttentionQuery& query, graph::DataType type) {
  return graph::size_of(type) * query.batch * query.head_dim * query.kv_heads;
}

graph::Operator cache_write(const AttentionQuery& query, graph::Operator op) {
  op.name = "cache_write";
  op.kind = graph::OperatorKind::cache_write;
  op.bytes = 2 * (2 * key_element(query, op.type) * query.queries);  // read and written
  return op;
}

graph::Operator attention_kernel(const AttentionQuery& query, graph::Operator op) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  op.name = query.backward ? "attention_backward" : "attention";
  op.kind = graph::OperatorKind::attention;
  op.backward = query.backward;
  const double rows = number(query.batch) * number(query.heads);
  const double products = query.backward ? 5 : 2;
  op.flops = Flops(2 * products * visible_pairs(query) * rows * number(query.head_dim));
  const std::int64_t read_keys =
      query.window > 0 ? std::min(query.keys, query.queries + query.window) : query.keys;
  const Bytes per_query =  // queries, or the output
      graph::size_of(op.type) * query.batch * query.head_dim * query.heads * query.queries;
  const Bytes read = per_query + 2 * key_element(query, op.type) * read_keys;
  const Bytes sums = Bytes(4) * query.batch * query.heads * query.queries;
  op.bytes = query.backward ? 2 * read + 2 * per_query + sums : read + per_query + sums;
  // Backward and prompts without keys before them have tiles of each head.
  const bool packs = !query.backward && query.keys > query.queries;
  const std::int64_t packed =
      packs ? compute::packed_heads(query.heads / query.kv_heads, query.queries) : 1;
  op.key_heads = query.batch * query.kv_heads;
  op.gemm = {.batch = query.batch * query.heads / packed,
             .m = query.queries * packed,
             .n = query.keys,
             .k = query.head_dim};
  return op;
}

/// 16-bit elements, beside GEMMs of a format.
graph::Operator moving(graph::Operator op, std::string name, graph::OperatorKind kind,
                       double elements) {
  op.name = std::move(name);
  op.kind = kind;
  op.bytes = Bytes(static_cast<std::int64_t>(2 * elements));
  return op;
}

Kernels expert_kernels(const MoeQuery& query, const graph::Operator& format) {
  const auto tokens = static_cast<double>(query.num_tokens);
  const std::int64_t local = query.num_experts / query.moe_ep_size;
  const auto chosen = static_cast<double>(std::min(query.topk, local));
  const double load = query.distribution == Routing::power_law
                          ? greatest_load(query.num_tokens, query.num_experts, query.moe_ep_size)
                          : 1;
  const double share = static_cast<double>(query.topk) / static_cast<double>(query.moe_ep_size);
  const double rows = std::max(1.0, std::min(tokens * share * load, tokens * chosen));
  const auto busy = std::min(local, static_cast<std::int64_t>(std::ceil(rows)));
  const auto each = static_cast<std::int64_t>(std::ceil(rows / static_cast<double>(busy)));
  const auto hidden = static_cast<double>(query.hidden_size);
  const std::int64_t inner = query.inter_size / query.moe_tp_size;
  const std::int64_t first = (query.gated ? 2 : 1) * inner;
  const auto product = [&](std::string name, std::int64_t n, std::int64_t k) {
    graph::Operator op = format;
    op.name = std::move(name);
    op.kind = graph::OperatorKind::grouped_gemm;
    op.gemm = {.batch = busy, .m = each, .n = n, .k = k};
    op.flops = flops_of(op.gemm);
    op.bytes = busy * (graph::bytes_of(op.type, each * k + k * n) + Bytes(2) * each * n);
    return op;
  };
  const double moved = (tokens + rows) * hidden;
  return {moving(format, "permute", graph::OperatorKind::permute, moved),
          product("expert_fc1", first, query.hidden_size),
          moving(format, "activation", graph::OperatorKind::elementwise,
                 rows * static_cast<double>(first + inner)),
          product("expert_fc2", query.hidden_size, inner),
          moving(format, "unpermute", graph::OperatorKind::permute, moved)};
}

}  // namespace

Result<Kernels> kernels_of(const GemmQuery& query, const compute::Device& device,
                           const std::string& where) {
  QueryCheck check(where);
  graph::Operator op;
  op.name = "gemm";
  op.kind = graph::OperatorKind::gemm;
  check.format(query.type, device, op);
  check.extent("m", query.m);
  check.extent("n", query.n);
  check.extent("k", query.k);
  check.extent("batch", query.batch);
  auto checked = check.finish(op);
  if (checked) {
    checked->gemm = {.batch = query.batch, .m = query.m, .n = query.n, .k = query.k};
    checked->flops = flops_of(checked->gemm);
    // fp8 and fp4 GEMMs write 16 bits.
    const std::int64_t result_bits = std::max<std::int64_t>(16, graph::bits_of(op.type));
    checked->bytes =
        query.batch * (graph::bytes_of(op.type, query.m * query.k + query.k * query.n) +
                       Bytes(query.m) * query.n * (result_bits / 8));
    return Kernels{std::move(*checked)};
  }
  return fail(std::move(checked.error()));
}

Result<Kernels> kernels_of(const AttentionQuery& given, const compute::Device& device,
                           const std::string& where) {
  AttentionQuery query = given;
  query.keys = given.keys == 0 ? given.queries : given.keys;
  query.kv_heads = given.kv_heads == 0 ? given.heads : given.kv_heads;
  QueryCheck check(where);
  graph::Operator format;
  check.format(query.type, device, format);
  check_attention(query, check);
  auto checked = check.finish(format);
  if (!checked) {
    return fail(std::move(checked.error()));
  }
  checked->library = query.library != graph::AttentionLibrary::any ? query.library
                     : query.framework == "trtllm"                 ? graph::AttentionLibrary::trtllm
                                                                   : graph::AttentionLibrary::any;
  Kernels kernels;
  if (query.cache && !query.backward) {
    kernels.push_back(cache_write(query, *checked));
  }
  kernels.push_back(attention_kernel(query, *checked));
  return kernels;
}

double greatest_load(std::int64_t tokens, std::int64_t experts, std::int64_t ep) {
  const auto ranks = static_cast<double>(ep);
  const double greatest = std::max(1.0, std::log(std::max(2.0, 0.8 * static_cast<double>(tokens))));
  const double spread = std::sqrt(std::max(0.0, greatest / 2 - 1));
  const double load =
      1 + spread * std::sqrt(2 * std::log(ranks) * ranks / static_cast<double>(experts));
  return std::min({load, greatest, ranks});
}

Result<Kernels> kernels_of(const MoeQuery& query, const compute::Device& device,
                           const std::string& where) {
  QueryCheck check(where);
  graph::Operator op;
  check.format(query.type, device, op);
  check.extent("num_tokens", query.num_tokens);
  check.extent("hidden_size", query.hidden_size);
  check.extent("inter_size", query.inter_size);
  check.extent("topk", query.topk);
  check.extent("num_experts", query.num_experts);
  const auto divides = [&](std::string_view field, std::int64_t parts, std::int64_t whole) {
    check.require(parts >= 1 && whole % parts == 0, field, std::to_string(parts),
                  fmt::format("a divisor of {}", whole));
  };
  divides("moe_tp_size", query.moe_tp_size, query.inter_size);
  divides("moe_ep_size", query.moe_ep_size, query.num_experts);
  check.require(query.topk <= query.num_experts, "topk", std::to_string(query.topk),
                fmt::format("at most num_experts = {}", query.num_experts));
  auto checked = check.finish(op);
  if (!checked) {
    return fail(std::move(checked.error()));
  }
  return expert_kernels(query, *checked);
}

KernelRow time_kernels(const Kernels& kernels, const compute::Device& in_a_job) {
  const compute::Device device = compute::at_boost(in_a_job);
  std::array<Time, kBoundCount> parts{};
  KernelRow row;
  for (const graph::Operator& op : kernels) {
    const auto bounds = bounds_of(op, device);
    std::transform(bounds.begin(), bounds.end(), parts.begin(), parts.begin(), std::plus<>());
    row.time += compute::kernel_time(op, device).alone;
    row.flops_per_s += op.flops.value();
    row.bytes_per_s += static_cast<double>(op.bytes.value());
  }
  row.bound = static_cast<Bound>(std::max_element(parts.begin(), parts.end()) - parts.begin());
  row.flops_per_s /= to_seconds(row.time);
  row.bytes_per_s /= to_seconds(row.time);
  return row;
}

template <class Query>
Result<std::vector<Query>> read_queries(const CsvTable& table, std::size_t beside) {
  if (auto mistake = too_many_rows(table, sizeof(Query) + beside)) {
    return fail(Error(std::move(*mistake)));
  }
  Error error;
  for (const std::string_view name : Query::kRequired) {
    if (!table.column(name)) {
      error.add({table.file + ":1", "header", "", fmt::format("column '{}' is missing", name)});
    }
  }
  std::vector<std::string> known{"dtype"};  // as calibrate reads `type`
  Query::fields([&](std::string_view name, auto, std::string_view) { known.emplace_back(name); });
  // Of tables of measured kernels: where they come from, and what is to be predicted.
  known.insert(known.end(), {"device", "framework", "library", "version", "op_name",
                             "kernel_source", "latency", "latency_us", "time_us"});
  error.add(unknown_columns(table, known));
  std::vector<Query> queries;
  queries.reserve(table.rows.size());
  for (const CsvRow& row : table.rows) {
    Query query;
    Query::fields([&](std::string_view name, auto member, std::string_view) {
      const bool other_name = name == "type" && !table.column(name);
      take(row, table.column(other_name ? "dtype" : name), table, query.*member, error);
    });
    queries.push_back(std::move(query));
    if (error.mistakes.size() >= kMostMistakes) {
      break;
    }
  }
  if (error.empty() && queries.empty()) {
    error.add({table.file, "", "", "no rows: expected at least one kernel"});
  }
  return or_mistakes(std::move(queries), std::move(error));
}

template Result<std::vector<GemmQuery>> read_queries<GemmQuery>(const CsvTable&, std::size_t);
template Result<std::vector<MoeQuery>> read_queries<MoeQuery>(const CsvTable&, std::size_t);
template Result<std::vector<AttentionQuery>> read_queries<AttentionQuery>(const CsvTable&,
                                                                          std::size_t);

}  // namespace orrery::study
