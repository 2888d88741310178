// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/message_file.h"

#include <array>
#include <map>
#include <span>

#include "base/collect.h"
#include "base/table_reader.h"
#include "base/words.h"

namespace orrery::flit {
namespace {

constexpr std::array<std::string_view, 6> kColumns{"name",  "source", "target",
                                                   "bytes", "work",   "after"};
constexpr std::size_t kNeeded = 4;
constexpr std::size_t kRowBytes = 500;  // about, of a message, its name and its way
constexpr std::int64_t kMostWork = std::int64_t{1} << 40;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 36;

class MessageReader {
 public:
  MessageReader(const CsvTable& table, std::size_t nodes)
      : table_(table), cells_(table), nodes_(static_cast<std::int64_t>(nodes)) {}

  Result<NamedSchedule> read() {
    cells_.know(std::vector<std::string>(kColumns.begin(), kColumns.end()));
    cells_.need_all(std::span(kColumns).first(kNeeded));
    cells_.limit(kRowBytes);
    for (const CsvRow& row : cells_.rows()) {
      read_row(row);
    }
    return or_mistakes(std::move(schedule_),
                       cells_.finish("no rows: expected a message on each line after the header"));
  }

 private:
  void read_row(const CsvRow& row) {
    LoopEvent event;
    event.source = static_cast<std::uint32_t>(cells_.whole(row, "source", 0, nodes_ - 1));
    if (!cells_.text(row, "work").empty()) {
      event.work = cells_.whole(row, "work", 0, kMostWork - 1);
      if (!cells_.text(row, "target").empty() || !cells_.text(row, "bytes").empty()) {
        cells_.mistake(row, "work", "no target and no bytes beside work");
      }
    } else {
      event.target = static_cast<std::uint32_t>(cells_.whole(row, "target", 0, nodes_ - 1));
      event.bytes = Bytes(cells_.whole(row, "bytes", 0, kMostBytes - 1));
    }
    for (const std::string_view name : words_of(cells_.text(row, "after"), " ")) {
      if (const auto before = numbers_.find(name); before != numbers_.end()) {
        event.after.push_back(before->second);
      } else {
        cells_.add(Mistake{table_.where(row), "after", std::string(name), "names of rows above"});
      }
    }
    const std::string name(cells_.text(row, "name"));
    const auto number = static_cast<std::uint32_t>(schedule_.events.size());
    if (name.empty() || !numbers_.emplace(name, number).second) {
      cells_.mistake(row, "name", "a name that no row above has");
    }
    schedule_.names.push_back(name);
    schedule_.events.push_back(std::move(event));
  }

  const CsvTable& table_;
  TableReader cells_;
  std::int64_t nodes_;
  NamedSchedule schedule_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
};

}  // namespace

Result<NamedSchedule> read_messages(const CsvTable& table, std::size_t nodes) {
  return MessageReader(table, nodes).read();
}

}  // namespace orrery::flit
