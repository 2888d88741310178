// SPDX-License-Identifier: Apache-2.0
#include "study/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/reader.h"
#include "machine/compute/compute_model.h"
#include "machine/compute/number_format.h"

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
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    return op;
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
    error.add({table.where(row), table.header[*column], row.cells[*column], value.error()});
  }
}

/// Of one head and sequence: the area under min(position, window) over the queries' positions.
double visible_pairs(const AttentionQuery& query, std::int64_t all_keys) {
  const auto queries = static_cast<double>(query.queries);
  const auto keys = static_cast<double>(all_keys);
  if (!query.causal) {
    return queries * keys;
  }
  const double window = query.window > 0 ? std::min(keys, static_cast<double>(query.window)) : keys;
  const double first = keys - queries;
  const double growing = std::max(0.0, window - first);  // queries that see fewer than the window
  return queries * window - growing * growing / 2;
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

Result<Kernels> kernels_of(const AttentionQuery& query, const compute::Device& device,
                           const std::string& where) {
  const std::int64_t keys = query.keys == 0 ? query.queries : query.keys;
  const std::int64_t kv_heads = query.kv_heads == 0 ? query.heads : query.kv_heads;
  QueryCheck check(where);
  graph::Operator op;
  op.name = query.backward ? "attention_backward" : "attention";
  op.kind = graph::OperatorKind::attention;
  op.backward = query.backward;
  check.format(query.type, device, op);
  check.extent("batch", query.batch);
  check.extent("heads", query.heads);
  check.extent("head_dim", query.head_dim);
  check.extent("queries", query.queries);
  check.require(kv_heads >= 1 && query.heads % kv_heads == 0, "kv_heads",
                std::to_string(query.kv_heads),
                fmt::format("a divisor of heads = {}, or 0", query.heads));
  check.require(keys >= query.queries || (!query.causal && keys >= 1), "keys",
                std::to_string(query.keys),
                query.causal ? fmt::format("at least queries = {}, or 0", query.queries)
                             : "a whole number from 1 on, or 0");
  check.require(keys <= kLargestExtent, "keys", std::to_string(query.keys),
                fmt::format("at most {}", kLargestExtent));
  check.require(query.window >= 0 && (query.window == 0 || query.causal), "window",
                std::to_string(query.window), "0, or with causal a whole number above it");
  auto checked = check.finish(op);
  if (!checked) {
    return fail(std::move(checked.error()));
  }
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double rows = number(query.batch) * number(query.heads);
  const double products = query.backward ? 5 : 2;
  checked->flops = Flops(2 * products * visible_pairs(query, keys) * rows * number(query.head_dim));
  const std::int64_t read_keys =
      query.window > 0 ? std::min(keys, query.queries + query.window) : keys;
  const Bytes element = graph::size_of(op.type) * query.batch * query.head_dim;
  const Bytes per_query = element * query.heads * query.queries;  // queries, or the output
  const Bytes read = per_query + 2 * element * kv_heads * read_keys;
  const Bytes sums = Bytes(4) * query.batch * query.heads * query.queries;
  checked->bytes = query.backward ? 2 * read + 2 * per_query + sums : read + per_query + sums;
  checked->gemm = {
      .batch = query.batch * query.heads, .m = query.queries, .n = keys, .k = query.head_dim};
  Kernels kernels;
  if (query.cache && !query.backward) {
    graph::Operator& write = kernels.emplace_back();
    write.name = "cache_write";
    write.kind = graph::OperatorKind::cache_write;
    write.type = checked->type;
    write.bytes = 2 * (2 * element * kv_heads * query.queries);  // read and written
  }
  kernels.push_back(std::move(*checked));
  return kernels;
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
Result<std::vector<Query>> read_queries(const CsvTable& table) {
  Error error;
  for (const std::string_view name : Query::kRequired) {
    if (!table.column(name)) {
      error.add({table.file + ":1", "header", "", fmt::format("column '{}' is missing", name)});
    }
  }
  std::vector<Query> queries;
  for (const CsvRow& row : table.rows) {
    Query query;
    Query::fields([&](std::string_view name, auto member, std::string_view) {
      take(row, table.column(name), table, query.*member, error);
    });
    queries.push_back(std::move(query));
    if (error.mistakes.size() >= kMostMistakes) {
      break;
    }
  }
  if (error.empty() && queries.empty()) {
    error.add({table.file, "", "", "no rows: expected at least one kernel"});
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return queries;
}

template Result<std::vector<GemmQuery>> read_queries<GemmQuery>(const CsvTable&);
template Result<std::vector<AttentionQuery>> read_queries<AttentionQuery>(const CsvTable&);

}  // namespace orrery::study
