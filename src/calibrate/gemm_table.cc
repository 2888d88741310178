// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/collect.h"
#include "base/one_of.h"
#include "base/table_reader.h"
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

class GemmReader {
 public:
  GemmReader(const CsvTable& csv, const std::string& default_format, const std::string& only)
      : csv_(csv),
        cells_(csv),
        default_format_(format_of(default_format)),
        only_(format_of(only)) {}

  Result<GemmTable> run() {
    cells_.need_all(kRequired);
    std::vector<std::string> known(kRequired.begin(), kRequired.end());
    known.insert(known.end(), kOptional.begin(), kOptional.end());
    cells_.know(known);
    if (!only_.empty()) {
      check_format("--type", only_);
    }
    for (const CsvRow& row : cells_.rows()) {
      read_row(row);
    }
    if (cells_.ok() && times_.empty()) {
      cells_.add(Mistake{csv_.file, "", "",
                         only_.empty()
                             ? "no rows: expected at least one measurement"
                             : fmt::format("no rows of {}: expected at least one", only_)});
    }
    return or_mistakes(medians(), cells_.finish());
  }

 private:
  using Key = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

  bool check_format(const std::string& where, const std::string& format) {
    const std::vector<std::string> known = formats();
    const bool is_known = std::find(known.begin(), known.end(), format) != known.end();
    if (!is_known) {
      cells_.add(Mistake{where, "dtype", format, one_of(format, known)});
    }
    return is_known;
  }

  void read_row(const CsvRow& row) {
    const std::string format =
        cells_.has("dtype") ? format_of(std::string(cells_.text(row, "dtype"))) : default_format_;
    if (!check_format(csv_.where(row), format) || (!only_.empty() && format != only_)) {
      return;
    }
    const auto extent = [&](const char* column) {
      return cells_.whole(row, column, 1, kLargestExtent);
    };
    const std::int64_t batch = cells_.has("batch") ? extent("batch") : 1;
    const std::int64_t m = extent("m");
    const std::int64_t n = extent("n");
    times_[{format, batch, m, n, extent("k")}].push_back(cells_.number(
        row, "latency_us", kShortestMicroseconds, kLongestMicroseconds, kMicrosecondsExpected));
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
  TableReader cells_;
  std::string default_format_;
  std::string only_;
  std::map<Key, std::vector<double>> times_;
};

}  // namespace

Result<GemmTable> read_gemm_table(const CsvTable& csv, const std::string& default_format,
                                  const std::string& only) {
  return GemmReader(csv, default_format, only).run();
}

}  // namespace orrery::calibrate
