// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/booksim_file.h"

#include <algorithm>

#include "base/words.h"

namespace orrery::flit {

BookSimFile::BookSimFile(std::string_view text, std::string file) : file_(std::move(file)) {
  tokenize(text);
}

std::string BookSimFile::trimmed(std::string_view text) {
  text = orrery::trimmed(text);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  return std::string(text);
}

std::vector<std::string> BookSimFile::parts(std::string_view text) {
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') {
    return {std::string(text)};
  }
  std::vector<std::string> list;
  int depth = 0;
  std::size_t begin = 1;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const bool closes = text[i] == '}' || text[i] == ')';
    if (depth == 0 && (closes || text[i] == ',')) {
      if (i > begin) {
        list.push_back(trimmed(text.substr(begin, i - begin)));
      }
      begin = i + 1;
    } else {
      depth += closes ? -1 : text[i] == '{' || text[i] == '(' ? 1 : 0;
    }
  }
  return list.empty() ? std::vector<std::string>{""} : list;
}

/// Statements "key = value;" without comments, each with the line of its first character.
void BookSimFile::tokenize(std::string_view text) {
  std::string statement;
  int line = 1;
  int begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '/' && i + 1 < text.size() && text[i + 1] == '/') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '/' && i + 1 < text.size() && text[i + 1] == '*') {
      const std::size_t end = text.find("*/", i + 2);
      if (end == std::string_view::npos) {
        add(line, {}, {}, "the comment does not end");
        return;
      }
      line += static_cast<int>(std::count(text.begin() + static_cast<std::ptrdiff_t>(i),
                                          text.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
      i = end + 1;
    } else if (c == ';') {
      take(statement, begin > 0 ? begin : line);
      statement.clear();
      begin = 0;
    } else {
      begin = begin == 0 && kBlanks.find(c) == std::string_view::npos ? line : begin;
      statement += begin > 0 ? std::string(1, c) : std::string();
      line += c == '\n' ? 1 : 0;
    }
  }
  if (begin > 0) {
    add(begin, {}, trimmed(statement), "a semicolon at its end");
  }
}

void BookSimFile::take(const std::string& statement, int line) {
  if (statement.empty()) {
    return;
  }
  const std::size_t equals = statement.find('=');
  if (equals == std::string::npos) {
    add(line, {}, trimmed(statement), "key = value;");
    return;
  }
  const std::string key = trimmed(statement.substr(0, equals));
  if (const auto again = entries_.find(key); again != entries_.end()) {
    notes_.push_back(
        fmt::format("{}:{}: {} is stated again; the last one holds", file_, line, key));
  }
  entries_[key] = {trimmed(statement.substr(equals + 1)), line};  // the last one holds, as there
}

}  // namespace orrery::flit
