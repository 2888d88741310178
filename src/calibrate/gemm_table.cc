// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/misread.h"
#include "base/one_of.h"
#include "base/reader.h"
#include "calibrate/gemm.h"
#include "calibrate/impossible_times.h"
#include "machine/compute/number_format.h"

namespace orrery::calibrate {
namespace {

constexpr std::array<std::string_view, 4> kRequired{"m", "n", "k", "latency_us"};
constexpr std::array<std::string_view, 7> kOptional{"dtype",   "batch",  "device", "framework",
                                                    "version", "source", "origin"};
constexpr std::int64_t kLargestExtent = std::int64_t{1} << 40;

std::vector<std::string> formats() {
  std::vector<std::string> names = names_of<graph::DataType>();
  names.emplace_back(compute::kBlockScaledFp8);
  return names;
}

std::string format_of(const std::string& text) {
  return std::string(compute::usual_format_name(text));
}

class TableReader {
 public:
  TableReader(const CsvTable& csv, const std::string& default_format, const std::string& only)
      : csv_(csv), default_format_(format_of(default_format)), only_(format_of(only)) {}

  Result<GemmTable> run() {
    check_columns();
    if (!only_.empty()) {
      check_format("--type", only_);
    }
    if (error_.empty()) {
      for (const CsvRow& row : csv_.rows) {
        read_row(row);
      }
      limit_mistakes();
    }
    if (error_.empty() && times_.empty()) {
      error_.add({csv_.file, "", "",
                  only_.empty() ? "no rows: expected at least one measurement"
                                : fmt::format("no rows of {}: expected at least one", only_)});
    }
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    return medians();
  }

 private:
  using Key = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

  void check_columns() {
    for (const std::string_view name : kRequired) {
      if (!csv_.column(name)) {
        error_.add({csv_.file + ":1", "header", "", fmt::format("column '{}' is missing", name)});
      }
    }
    std::vector<std::string> known(kRequired.begin(), kRequired.end());
    known.insert(known.end(), kOptional.begin(), kOptional.end());
    error_.add(unknown_columns(csv_, known));
  }

  const std::string* cell(const CsvRow& row, std::string_view name) const {
    const auto column = csv_.column(name);
    return column ? &row.cells[*column] : nullptr;
  }

  std::int64_t extent(const CsvRow& row, std::string_view name) {
    const std::string& text = *cell(row, name);
    const auto value = parse_integer(text);
    if (!value || *value < 1 || *value > kLargestExtent) {
      error_.add(misread(csv_.where(row), std::string(name), text,
                         fmt::format("a whole number from 1 to {}", kLargestExtent)));
      return 1;
    }
    return *value;
  }

  double microseconds(const CsvRow& row) {
    const std::string& text = *cell(row, "latency_us");
    const auto value = parse_number(text);
    if (!value || *value <= 0 || *value > kLongestMicroseconds) {
      error_.add(misread(csv_.where(row), "latency_us", text, "a time in microseconds above 0"));
      return 1;
    }
    return *value;
  }

  bool check_format(const std::string& where, const std::string& format) {
    const std::vector<std::string> known = formats();
    const bool is_known = std::find(known.begin(), known.end(), format) != known.end();
    if (!is_known) {
      error_.add({where, "dtype", format, one_of(format, known)});
    }
    return is_known;
  }

  void read_row(const CsvRow& row) {
    const std::string* type = cell(row, "dtype");
    const std::string format = type == nullptr ? default_format_ : format_of(*type);
    if (!check_format(csv_.where(row), format) || (!only_.empty() && format != only_)) {
      return;
    }
    const std::int64_t batch = cell(row, "batch") == nullptr ? 1 : extent(row, "batch");
    const Key key{format, batch, extent(row, "m"), extent(row, "n"), extent(row, "k")};
    times_[key].push_back(microseconds(row));
  }

  void limit_mistakes() {
    const std::size_t found = error_.mistakes.size();
    if (found > kMostMistakes) {
      error_.mistakes.resize(kMostMistakes);
      error_.add({csv_.file, "", "", fmt::format("and {} more", found - kMostMistakes)});
    }
  }

  GemmTable medians() {
    GemmTable table;
    for (auto& [key, times] : times_) {
      const auto& [format, batch, m, n, k] = key;
      std::sort(times.begin(), times.end());
      const std::size_t half = times.size() / 2;
      const double median =
          times.size() % 2 == 1 ? times[half] : (times[half - 1] + times[half]) / 2;
      table[format].push_back({{batch, m, n, k}, from_seconds(median * 1e-6)});
    }
    return table;
  }

  const CsvTable& csv_;
  std::string default_format_;
  std::string only_;
  std::map<Key, std::vector<double>> times_;
  Error error_;
};

}  // namespace

Result<GemmTable> read_gemm_table(const CsvTable& csv, const std::string& default_format,
                                  const std::string& only) {
  return TableReader(csv, default_format, only).run();
}

}  // namespace orrery::calibrate
