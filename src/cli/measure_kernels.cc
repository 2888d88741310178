// SPDX-License-Identifier: Apache-2.0
#include "cli/measure_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/reader.h"
#include "cli/mpi_program.h"

namespace orrery::cli {
namespace {

constexpr Duration kLimit{1800};

/// A row of the answer, and the works whose times it adds up.
struct KernelRow {
  std::string text;
  std::vector<emit::Work> works;
};

struct KernelTable {
  std::string header;
  std::vector<KernelRow> rows;
};

emit::Work product(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.gemm = {batch, m, n, k}};
}

emit::Work stream(std::int64_t bytes) {
  return {.bytes = Bytes(bytes)};
}

KernelTable products() {
  constexpr std::array<std::int64_t, 4> kExtents{32, 96, 256, 768};
  KernelTable table{"m,n,k,batch,dtype,latency_us", {}};
  for (const std::int64_t m : kExtents) {
    for (const std::int64_t n : kExtents) {
      for (const std::int64_t k : kExtents) {
        table.rows.push_back({fmt::format("{},{},{},1,fp32", m, n, k), {product(1, m, n, k)}});
      }
    }
  }
  return table;
}

KernelTable streams() {
  constexpr std::int64_t kLeast = std::int64_t{4} << 10;
  constexpr std::int64_t kMost = std::int64_t{256} << 20;
  KernelTable table{"bytes,latency_us", {}};
  for (std::int64_t bytes = kLeast; bytes <= kMost; bytes *= 2) {
    table.rows.push_back({fmt::format("{}", bytes), {stream(bytes)}});
  }
  return table;
}

KernelTable attentions() {
  KernelTable table{"type,heads,head_dim,queries,causal,cache,latency_us", {}};
  for (const std::int64_t heads : {4, 16}) {
    for (const std::int64_t elements : {64, 128}) {
      for (const std::int64_t queries : {64, 256, 1024}) {
        table.rows.push_back(
            {fmt::format("fp32,{},{},{},false,false", heads, elements, queries),
             {product(heads, queries, queries, elements), stream(heads * queries * queries * 8),
              product(heads, queries, elements, queries)}});
      }
    }
  }
  return table;
}

/// Returns how often a work runs for one reading of the clock: short ones up to 64 times.
std::size_t times_of(const emit::Work& work) {
  constexpr double kLong = 4e7;  // FLOPs or bytes, which take milliseconds
  const double size = graph::flops_of(work.gemm).value() + static_cast<double>(work.bytes.value());
  return static_cast<std::size_t>(std::clamp(kLong / size, 1.0, 64.0));
}

emit::Program program_of(const KernelTable& table) {
  emit::Call call;
  call.name = "kernels";
  for (const KernelRow& row : table.rows) {
    for (const emit::Work& work : row.works) {
      call.works.insert(call.works.end(), times_of(work), work);
    }
  }
  return {.ranks = 1, .groups = {}, .lists = {{std::move(call)}}, .list_of = {0}};
}

/// The cells of a measured row that say what it is.
std::string key_of(const emit::Work& work) {
  return fmt::format("{},{},{},{},{}", work.gemm.batch, work.gemm.m, work.gemm.n, work.gemm.k,
                     work.bytes.value());
}

std::map<std::string, double> seconds_by_key(const CsvTable& measured) {
  std::map<std::string, double> seconds;
  for (const CsvRow& row : measured.rows) {
    std::string key;
    for (const std::string_view name : {"batch", "m", "n", "k", "bytes"}) {
      key += key.empty() ? "" : ",";
      key += row.cells[measured.column(name).value_or(0)];
    }
    seconds[key] = parse_number(row.cells[measured.column("seconds").value_or(0)]).value_or(0);
  }
  return seconds;
}

}  // namespace

Result<std::string> measure_kernels(std::string_view what, const mpi_calls::MpiLibrary& library,
                                    std::int64_t rounds) {
  const KernelTable table = what == "gemm"     ? products()
                            : what == "memory" ? streams()
                                               : attentions();
  MpiProgram program;
  const emit::Description description{.title = "kernels of orrery measure",
                                      .command = "orrery measure " + std::string(what),
                                      .machine = "no machine",
                                      .order = ""};
  if (auto made = program.make(program_of(table), description, library, ""); !made) {
    return fail(std::move(made.error()));
  }
  const auto measured = program.measure(rounds, kLimit);
  if (!measured) {
    return fail(measured.error());
  }
  const std::map<std::string, double> seconds = seconds_by_key(*measured);
  std::string text = table.header + "\n";
  for (const KernelRow& row : table.rows) {
    double sum = 0;
    for (const emit::Work& work : row.works) {
      const auto found = seconds.find(key_of(work));
      if (found == seconds.end()) {
        return fail("the program has not measured " + key_of(work));
      }
      sum += found->second;
    }
    text += fmt::format("{},{:.4f}\n", row.text, 1e6 * sum);
  }
  return text;
}

}  // namespace orrery::cli
