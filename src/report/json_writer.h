// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/units.h"

namespace orrery::report {

/// Writes JSON piece by piece, so that a trace of millions of spans never stands in memory.
///
///   JsonWriter json(sink);
///   json.begin_object();
///   json.key("events").value(3);
///   json.end_object();
///
/// Numbers are the shortest text that reads back equal; infinite and NaN become null. Bytes that
/// are not UTF-8 become U+FFFD. Commas are the writer's business; balanced begin/end the caller's.
class JsonWriter {
 public:
  enum class Layout : std::uint8_t { compact, indented };
  /// `sink` gets pieces of text, in order; the last when the writer is destroyed or flushed.
  using Sink = std::function<void(std::string_view)>;

  explicit JsonWriter(Sink sink, Layout layout = Layout::compact);
  ~JsonWriter();
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(double number);
  template <class Number>
    requires std::is_integral_v<Number>
  JsonWriter& value(Number number) {
    if constexpr (std::is_same_v<Number, bool>) {
      return number_text(number ? "true" : "false");
    } else {
      return number_text(std::to_string(number));
    }
  }
  JsonWriter& null() { return number_text("null"); }
  /// Writes a number, text or quantity, a Time in seconds; null where there is none.
  template <class T>
  JsonWriter& value(const std::optional<T>& there) {
    if constexpr (std::is_same_v<T, Time>) {
      return there ? value(to_seconds(*there)) : null();
    } else if constexpr (requires { there->value(); }) {
      return there ? value(there->value()) : null();
    } else {
      return there ? value(*there) : null();
    }
  }
  /// Writes an array: `write(item)` writes each.
  template <class Items, class Write>
  JsonWriter& array(const Items& items, const Write& write) {
    begin_array();
    for (const auto& item : items) {
      write(item);
    }
    return end_array();
  }
  /// Writes an array of objects: `write(item)` writes the members of each.
  template <class Items, class Write>
  JsonWriter& objects(const Items& items, const Write& write) {
    return array(items, [&](const auto& item) {
      begin_object();
      write(item);
      end_object();
    });
  }
  /// An array of what `of` makes of the items.
  template <class Items, class Of = std::identity>
  JsonWriter& values(const Items& items, const Of& of = {}) {
    return array(items, [&](const auto& item) { value(of(item)); });
  }
  /// Writes a number whose text the caller made.
  JsonWriter& number_text(std::string_view text);

  void flush();

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  void new_line();
  void quote(std::string_view text);

  Sink sink_;
  Layout layout_;
  std::string buffer_;
  std::vector<bool> has_items_;  ///< of every open object and array
  bool after_key_ = false;
};

/// Returns what `write` writes, as one string.
std::string json_text(const std::function<void(JsonWriter&)>& write);

}  // namespace orrery::report
