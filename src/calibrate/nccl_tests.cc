// SPDX-License-Identifier: Apache-2.0
/// Measured collectives from nccl-tests' output and from CSV.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "base/collect.h"
#include "base/file.h"
#include "base/one_of.h"
#include "base/reader.h"
#include "base/table_reader.h"
#include "base/words.h"
#include "calibrate/collectives.h"
#include "calibrate/impossible_times.h"
#include "collective/sweep.h"

namespace orrery::calibrate {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr std::array<std::string_view, 3> kTimeColumns{"time_us", "latency_us", "time_us_median"};
constexpr const char* kNoRows = "no rows: expected at least one measurement";

/// The name of a collective inside a text such as "out/all_reduce_perf.8gpus.txt".
std::optional<graph::CollectiveKind> kind_within(const std::string& text) {
  const auto end = text.find("_perf");
  if (end == std::string::npos) {
    return std::nullopt;
  }
  const auto before = text.find_last_not_of("abcdefghijklmnopqrstuvwxyz_", end - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return end == 0 ? std::nullopt : collective::collective_named(text.substr(begin, end - begin));
}

/// Output of nccl-tests, run after run.
class NcclTestsReader {
 public:
  NcclTestsReader(const std::string& text, const std::string& file)
      : text_(text), file_(file), mistakes_(file) {
    kind_ = kind_within(std::filesystem::path(file).filename().string());
  }

  Result<std::vector<CollectiveMeasurement>> run() {
    std::istringstream stream(text_);
    for (std::string line; std::getline(stream, line);) {
      ++line_;
      if (line.find('#') != std::string::npos && words_of(line).front().starts_with("#")) {
        read_comment(line);
      } else if (const std::vector<std::string> words = words_of<std::string>(line);
                 !words.empty()) {
        read_row(words);
      }
    }
    if (mistakes_.empty() && read_.empty()) {
      mistakes_.add(Mistake{file_, {}, {}, kNoRows});
    }
    return or_mistakes(std::move(read_), mistakes_.take());
  }

 private:
  std::string where() const { return fmt::format("{}:{}", file_, line_); }

  /// "# nThread 1 nGpus 8 ..." begins a run; "#  Rank  0 Group  0 Pid  1 on  host device ..." is a
  /// rank; "# Collective test starting: all_reduce_perf" names it.
  void read_comment(const std::string& line) {
    const std::vector<std::string> words = words_of<std::string>(line);
    if (line.find("test starting") != std::string::npos) {
      kind_ = kind_within(line);
    }
    if (line.find("nThread") != std::string::npos) {
      ranks_ = 0;
      hosts_.clear();
    }
    const auto on = std::find(words.begin(), words.end(), "on");
    if (words.size() > 2 && words[1] == "Rank" && on != words.end() && on + 1 != words.end()) {
      ++ranks_;
      hosts_.insert(*(on + 1));
    }
  }

  void read_row(const std::vector<std::string>& words) {
    if (!parse_integer(words.front())) {
      return;  // what a launcher prints between the tables
    }
    constexpr std::size_t kTimeColumn = 5;   // size, count, type, redop, root, time
    constexpr std::size_t kWrongColumn = 8;  // algbw, busbw, #wrong; a difference in old versions
    if (words.size() <= kTimeColumn) {
      mistakes_.add(Mistake{where(), {}, words.front(), "size, count, type, redop, root and time"});
      return;
    }
    if (!kind_) {
      mistakes_.add(
          Mistake{where(),
                  "collective",
                  {},
                  "unknown: neither a line 'Collective test starting: all_reduce_perf' nor the "
                  "file's name tells it"});
      kind_ = graph::CollectiveKind::all_reduce;  // said once
    }
    if (ranks_ < 2) {
      mistakes_.add(
          Mistake{where(), "ranks", std::to_string(ranks_), "at least two '# Rank' lines before"});
      ranks_ = 2;
    }
    const std::int64_t bytes = *parse_integer(words.front());
    const auto time = parse_number(words[kTimeColumn]);
    if (!time || *time < kShortestMicroseconds || *time > kLongestMicroseconds || bytes < 0 ||
        bytes > kMostBytes) {
      mistakes_.add(Mistake{where(), "time", words[kTimeColumn], kMicrosecondsExpected});
    } else if (words.size() > kWrongColumn && parse_integer(words[kWrongColumn]).value_or(0) > 0) {
      mistakes_.add(
          Mistake{where(), "#wrong", words[kWrongColumn], "0: these results are not right"});
    } else if (bytes > 0) {
      const auto hosts = static_cast<std::int64_t>(hosts_.size());
      read_.push_back({.kind = *kind_,
                       .members = ranks_,
                       .per_node = hosts > 1 && ranks_ % hosts == 0 ? ranks_ / hosts : 0,
                       .bytes = Bytes(bytes),
                       .time = from_seconds(*time / 1e6)});
    }
  }

  const std::string& text_;
  const std::string& file_;
  int line_ = 0;
  std::optional<graph::CollectiveKind> kind_;
  std::int64_t ranks_ = 0;
  std::set<std::string> hosts_;
  std::vector<CollectiveMeasurement> read_;
  FileMistakes mistakes_;
};

Result<std::vector<CollectiveMeasurement>> read_table(const CsvTable& csv) {
  TableReader read(csv);
  read.need_all(std::array{"collective", "n_gpus", "bytes"});
  const auto* const time =
      std::ranges::find_if(kTimeColumns, [&](std::string_view name) { return read.has(name); });
  if (time == kTimeColumns.end()) {
    read.need(kTimeColumns.front());
  }
  std::vector<std::string> known{"collective", "n_gpus",   "bytes",  "gpus_per_node",
                                 "dtype",      "platform", "device", "framework",
                                 "version",    "algbw",    "busbw"};
  known.insert(known.end(), kTimeColumns.begin(), kTimeColumns.end());
  read.know(known);
  std::vector<CollectiveMeasurement> rows;
  for (const CsvRow& row : read.rows()) {
    const std::string name(read.text(row, "collective"));
    const auto kind = collective::collective_named(name);
    if (!kind) {
      read.mistake(row, "collective", one_of<graph::CollectiveKind>(name));
    }
    const double microseconds =
        read.number(row, *time, kShortestMicroseconds, kLongestMicroseconds, kMicrosecondsExpected);
    const std::int64_t members = read.whole(row, "n_gpus", 2, machine::kMostDevices);
    rows.push_back(
        {.kind = kind.value_or(graph::CollectiveKind::all_reduce),
         .members = members,
         .per_node = read.has("gpus_per_node") ? read.whole(row, "gpus_per_node", 1, members) : 0,
         .bytes = Bytes(read.whole(row, "bytes", 1, kMostBytes)),
         .time = from_seconds(microseconds / 1e6)});
  }
  return or_mistakes(std::move(rows), read.finish(kNoRows));
}

}  // namespace

Result<std::vector<CollectiveMeasurement>> read_collectives(const std::string& text,
                                                            const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const std::string line = first == std::string::npos
                               ? std::string()
                               : text.substr(first, text.find('\n', first) - first);
  const bool cells = line.find(',') != std::string::npos ||
                     (line.find(';') != std::string::npos && line.find(' ') == std::string::npos);
  if (!cells || line.starts_with("#")) {
    return NcclTestsReader(text, file).run();
  }
  return read_csv(text, file, read_table);
}

Result<std::vector<CollectiveMeasurement>> load_collectives(const std::string& file) {
  auto text = read_file(file);
  return text ? read_collectives(*text, file) : fail(std::move(text.error()));
}

}  // namespace orrery::calibrate
