// SPDX-License-Identifier: Apache-2.0
#include "machine/comments.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/config_node.h"

namespace orrery::machine {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

/// Returns where a comment begins: '#' outside of quotes, first of the line or after a blank.
std::size_t comment_at(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      i += quote == '"' && c == '\\' ? 1 : 0;
      quote = c == quote ? '\0' : quote;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
      return i;
    }
  }
  return std::string_view::npos;
}

/// Paths of the single values, by the line on which they stand, from 0.
void collect(const ConfigNode& node, std::map<std::size_t, std::vector<std::string>>& values) {
  for (const ConfigField& field : node.fields) {
    collect(field.value, values);
  }
  for (const ConfigNode& item : node.items) {
    collect(item, values);
  }
  if (node.fields.empty() && node.items.empty() && node.line > 0) {
    values[static_cast<std::size_t>(node.line - 1)].push_back(node.path);
  }
}

std::map<std::size_t, std::vector<std::string>> values_of(const std::string& text) {
  std::map<std::size_t, std::vector<std::string>> values;
  if (const auto node = parse_config(text, "", ConfigSyntax::yaml)) {
    collect(*node, values);
  }
  return values;
}

/// The lines of `written`, and what goes above and beside each; one more for the end.
class Page {
 public:
  explicit Page(const std::string& text) : lines_(lines_of(text)), above_(lines_.size() + 1) {
    for (const auto& [line, paths] : values_of(text)) {
      for (const std::string& path : paths) {
        line_of_[path] = line;
      }
    }
    beside_.resize(lines_.size());
  }

  /// The line of the first of `paths` that is written; false when none is.
  bool find(const std::vector<std::string>& paths, std::size_t& line) const {
    for (const std::string& path : paths) {
      if (const auto found = line_of_.find(path); found != line_of_.end()) {
        line = found->second;
        return true;
      }
    }
    return false;
  }
  void add_beside(std::size_t line, const std::string& comment) { beside_[line] += "  " + comment; }
  /// Adds comments above the line, or above up to `openers` lines before it that have no value of
  /// their own.
  void add_above(std::size_t line, int openers, const Lines& comments) {
    for (; openers > 0 && line > 0 && lines_[line - 1].ends_with(':'); --openers) {
      --line;
    }
    above_[line].insert(above_[line].end(), comments.begin(), comments.end());
  }
  std::size_t end() const { return lines_.size(); }

  std::string text() const {
    std::string text;
    for (std::size_t i = 0; i <= lines_.size(); ++i) {
      for (const std::string& comment : above_[i]) {
        text += comment + "\n";
      }
      text += i < lines_.size() ? lines_[i] + beside_[i] + "\n" : "";
    }
    return text;
  }

 private:
  Lines lines_;
  std::vector<Lines> above_;
  Lines beside_;
  std::map<std::string, std::size_t> line_of_;
};

}  // namespace

std::string with_comments(const std::string& written, const std::string& source) {
  Page page(written);
  const auto values = values_of(source);
  const Lines lines = lines_of(source);
  Lines waiting;  // comments that stand above what comes next
  int openers = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t at = comment_at(lines[i]);
    const bool alone = at != std::string::npos && lines[i].find_first_not_of(" \t") == at;
    const auto here = values.find(i);
    std::size_t line = 0;
    if (alone) {
      waiting.push_back(lines[i]);
      openers = 0;
    } else if (here != values.end() && page.find(here->second, line)) {
      page.add_above(line, openers, waiting);
      waiting.clear();
      openers = 0;
      if (at != std::string::npos) {
        page.add_beside(line, lines[i].substr(at));
      }
    } else if (at != std::string::npos) {
      waiting.push_back(std::string(lines[i].find_first_not_of(" \t"), ' ') + lines[i].substr(at));
    } else if (!waiting.empty() && lines[i].ends_with(':')) {
      ++openers;
    }
  }
  page.add_above(page.end(), 0, waiting);
  return page.text();
}

}  // namespace orrery::machine
