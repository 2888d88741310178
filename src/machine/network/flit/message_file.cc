// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/message_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/misread.h"
#include "base/reader.h"
#include "base/words.h"

namespace orrery::flit {
namespace {

constexpr std::array<std::string_view, 6> kColumns{"name",  "source", "target",
                                                   "bytes", "work",   "after"};
constexpr std::size_t kNeeded = 4;
constexpr std::int64_t kMostWork = std::int64_t{1} << 40;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 36;

class MessageReader {
 public:
  MessageReader(const CsvTable& table, std::size_t nodes)
      : table_(table), nodes_(static_cast<std::int64_t>(nodes)) {}

  Result<NamedSchedule> read() {
    check_header();
    for (const CsvRow& row : table_.rows) {
      if (mistakes_.empty() || columns_good_) {
        read_row(row);
      }
    }
    if (table_.rows.empty()) {
      mistakes_.add({table_.file, {}, "no rows", "a message on each line after the header"});
    }
    if (!mistakes_.empty()) {
      return fail(std::move(mistakes_));
    }
    return std::move(schedule_);
  }

 private:
  void check_header() {
    const std::vector<std::string> known(kColumns.begin(), kColumns.end());
    mistakes_.add(unknown_columns(table_, known));
    for (std::size_t i = 0; i < kNeeded; ++i) {
      if (!table_.column(kColumns[i])) {
        mistakes_.add({table_.file + ":1", known[i], {}, "missing column"});
      }
    }
    columns_good_ = mistakes_.empty();
  }

  std::string text(const CsvRow& row, std::string_view column) const {
    const auto at = table_.column(column);
    return at ? row.cells[*at] : std::string();
  }

  std::int64_t number(const CsvRow& row, std::string_view column, std::int64_t below) {
    const std::string cell = text(row, column);
    const auto value = parse_integer(cell);
    if (!value || *value < 0 || *value >= below) {
      mistakes_.add(misread(table_.where(row), std::string(column), cell,
                            fmt::format("a whole number from 0 to {}", below - 1)));
      return 0;
    }
    return *value;
  }

  void read_row(const CsvRow& row) {
    if (!columns_good_) {
      return;
    }
    LoopEvent event;
    event.source = static_cast<std::uint32_t>(number(row, "source", nodes_));
    if (!text(row, "work").empty()) {
      event.work = number(row, "work", kMostWork);
      if (!text(row, "target").empty() || !text(row, "bytes").empty()) {
        mistakes_.add(
            {table_.where(row), "work", text(row, "work"), "no target and no bytes beside work"});
      }
    } else {
      event.target = static_cast<std::uint32_t>(number(row, "target", nodes_));
      event.bytes = Bytes(number(row, "bytes", kMostBytes));
    }
    const std::string after = text(row, "after");
    for (const std::string_view name : words_of(after, " ")) {
      if (const auto before = numbers_.find(name); before != numbers_.end()) {
        event.after.push_back(before->second);
      } else {
        mistakes_.add({table_.where(row), "after", std::string(name), "names of rows above"});
      }
    }
    const std::string name = text(row, "name");
    const auto number = static_cast<std::uint32_t>(schedule_.events.size());
    if (name.empty() || !numbers_.emplace(name, number).second) {
      mistakes_.add(misread(table_.where(row), "name", name, "a name that no row above has"));
    }
    schedule_.names.push_back(name);
    schedule_.events.push_back(std::move(event));
  }

  const CsvTable& table_;
  std::int64_t nodes_;
  bool columns_good_ = false;
  NamedSchedule schedule_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  Error mistakes_;
};

}  // namespace

Result<NamedSchedule> read_messages(const CsvTable& table, std::size_t nodes) {
  return MessageReader(table, nodes).read();
}

}  // namespace orrery::flit
