// SPDX-License-Identifier: Apache-2.0
/// The statements of a configuration file of BookSim 2: "key = value;" with // comments.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/reader.h"

namespace orrery::flit {

/// Values by key, mistakes and notes with file and line.
class BookSimFile {
 public:
  struct Entry {
    std::string value;
    int line = 0;
  };

  BookSimFile(std::string_view text, std::string file);

  void add(int line, std::string field, std::string found, std::string expected) {
    mistakes_.add({fmt::format("{}:{}", file_, line), std::move(field), std::move(found),
                   std::move(expected)});
  }
  void note(std::string text) { notes_.push_back(std::move(text)); }
  const std::string& file() const { return file_; }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  const Error& mistakes() const { return mistakes_; }
  const std::vector<std::string>& notes() const { return notes_; }

  /// Returns what the file says of a key, which is known from now on; nullptr: nothing.
  const Entry* find(const std::string& key) {
    known_.insert(key);
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
  }
  /// Returns the value of a key, or `other`.
  std::string text(const std::string& key, const std::string& other) {
    const Entry* entry = find(key);
    return entry == nullptr ? other : entry->value;
  }
  const std::set<std::string>& known() const { return known_; }

  /// Returns the text without blanks and quotes around it.
  static std::string trimmed(std::string_view text);
  /// Returns the elements of a list, as BookSim cuts it: "{a,{b,c}}" is a and {b,c}, "{a},{b}" is
  /// a; what has no braces is one.
  static std::vector<std::string> parts(std::string_view text);

  /// True where the file states it. Whole numbers may be written as 200.0 or 2e2.
  template <class T>
  bool take_value(const std::string& key, T& into) {
    const Entry* entry = find(key);
    if (entry == nullptr) {
      return false;
    }
    const std::vector<std::string> texts = parts(entry->value);  // of one class
    take_text(key, *entry, texts.size() == 1 ? texts.front() : entry->value, into);
    return true;
  }

  /// One value for each of `count` classes; the last of a list is that of those after it.
  template <class T>
  std::vector<T> values(const std::string& key, T other, std::size_t count) {
    std::vector<T> list(count, other);
    const Entry* entry = find(key);
    if (entry == nullptr) {
      return list;
    }
    const std::vector<std::string> texts = parts(entry->value);
    for (std::size_t i = 0; i < count; ++i) {
      take_text(key, *entry, texts[std::min(i, texts.size() - 1)], list[i]);
    }
    return list;
  }

  template <class T>
  void take_text(const std::string& key, const Entry& entry, const std::string& text, T& into) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const auto number = parse_number(text);
      if (!number || *number != std::floor(*number) || std::abs(*number) > 9e15 ||
          !std::in_range<T>(static_cast<std::int64_t>(*number))) {
        add(entry.line, key, text, "a whole number");
      } else {
        into = static_cast<T>(*number);
      }
    } else if constexpr (std::is_same_v<T, bool>) {
      if (text != "0" && text != "1") {
        add(entry.line, key, text, "0 or 1");
      }
      into = text == "1";
    } else {
      const auto value = parse_value<T>(text);
      if (!value) {
        add(entry.line, key, text, value.error());
      } else {
        into = *value;
      }
    }
  }

 private:
  void tokenize(std::string_view text);
  void take(const std::string& statement, int line);

  std::string file_;
  std::map<std::string, Entry> entries_;
  std::set<std::string> known_;
  std::vector<std::string> notes_;
  Error mistakes_;
};

}  // namespace orrery::flit
