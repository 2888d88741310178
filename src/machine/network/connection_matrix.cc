// SPDX-License-Identifier: Apache-2.0
#include "machine/network/connection_matrix.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <vector>

#include "base/collect.h"
#include "base/names.h"
#include "base/reader.h"
#include "base/words.h"

namespace orrery::network {
namespace {

constexpr std::string_view kArrow = "->";

class ConnectionReader {
 public:
  explicit ConnectionReader(const std::string& file) : error_(file) {
    table_.file = file;
    table_.header = {"source", "target", "bytes", "start_s"};
  }

  void take(const std::string& text, int line) {
    line_ = line;
    const std::vector<std::string> words = words_of<std::string>(text);
    if (words.empty() || words.front().starts_with('#')) {
      return;
    }
    if (words.front().find(kArrow) != std::string::npos) {
      take_connection(words);
    } else if (words.front() == "Nodes") {
      nodes_ = count(words);
    } else if (words.front() == "Connections") {
      connections_ = count(words);
    } else if (words.front() == "Triggers" || words.front() == "trigger") {
      const bool none = words.front() == "Triggers" && words.size() == 2 && words[1] == "0";
      if (!none) {
        mistake(words.front(), "no triggers: a flow here begins at a time, not when others end");
      }
    } else {
      mistake(words.front(), "Nodes, Connections or a line such as: 0->1 start 0 size 2000000");
    }
  }

  Result<CsvTable> finish() {
    if (!nodes_ && error_.empty()) {
      error_.add({table_.file, {}, {}, "a line with the number of hosts: Nodes N"});
    }
    if (connections_ && error_.empty() &&
        *connections_ != static_cast<std::int64_t>(table_.rows.size())) {
      error_.add({table_.file, "Connections", std::to_string(*connections_),
                  std::to_string(table_.rows.size()) + ", as there are lines"});
    }
    return or_mistakes(std::move(table_), error_.take());
  }

 private:
  void mistake(const std::string& found, const std::string& expected) {
    error_.add({table_.file + ":" + std::to_string(line_), {}, found, expected});
  }

  std::optional<std::int64_t> count(const std::vector<std::string>& words) {
    const auto number = parse_integer(words.size() == 2 ? words[1] : "");
    if (!number || *number < 0) {
      mistake(words.back(), "one whole number after " + words.front());
    }
    return number.value_or(0);
  }

  /// The words come in pairs of a name and a value, in any order.
  void take_connection(const std::vector<std::string>& words) {
    const std::vector<std::string> known_names{"id", "start", "size", "prio"};
    const std::size_t arrow = words.front().find(kArrow);
    std::string size;
    std::string start;
    for (std::size_t i = 1; i < words.size(); i += 2) {
      const std::string& name = words[i];
      const bool known = std::ranges::find(known_names, name) != known_names.end();
      if (name.find("trigger") != std::string::npos) {
        mistake(name, "start: a flow here begins at a time, not when others end");
      } else if (!known || i + 1 == words.size()) {
        mistake(name, known ? name + " and a number"
                            : "one of id, start, size, prio" + did_you_mean(name, known_names));
      } else if (name == "size") {
        size = words[i + 1];
      } else if (name == "start") {
        start = words[i + 1];
      }
    }
    if (size.empty() || start.empty()) {
      mistake(words.front(), size.empty() ? "a size, in bytes: without one a flow never ends"
                                          : "a start, in picoseconds");
      return;
    }
    if (parse_number(size) == 0.0) {
      mistake(size, "a size above 0, in bytes: one of 0 never ends there");
      return;
    }
    const auto picoseconds = parse_number(start);
    if (!picoseconds) {
      mistake(start, "a time in picoseconds");
    }
    table_.rows.push_back(
        {.line = line_,
         .cells = {node(words.front().substr(0, arrow)),
                   node(words.front().substr(arrow + kArrow.size())), size, start + "e-12"}});
  }

  /// Returns the number of a host as it stands.
  std::string node(const std::string& text) {
    const auto number = parse_integer(text);
    if (!number || *number < 0 || (nodes_ && *number >= *nodes_)) {
      mistake(text, nodes_ ? "a host from 0 to " + std::to_string(*nodes_ - 1)
                           : "Nodes N before the connections, and hosts below N");
    }
    return text;
  }

  CsvTable table_;
  FileMistakes error_;
  int line_ = 0;
  std::optional<std::int64_t> nodes_;
  std::optional<std::int64_t> connections_;
};

}  // namespace

Result<CsvTable> parse_connections(std::string_view text, const std::string& file) {
  ConnectionReader reader(file);
  std::istringstream lines{std::string(text)};
  int line = 0;
  for (std::string each; std::getline(lines, each);) {
    reader.take(each, ++line);
  }
  return reader.finish();
}

}  // namespace orrery::network
