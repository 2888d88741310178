// SPDX-License-Identifier: Apache-2.0
#include "report/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/printable.h"

namespace orrery::report {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16;  // bytes handed to the sink at once

}  // namespace

JsonWriter::JsonWriter(Sink sink, Layout layout) : sink_(std::move(sink)), layout_(layout) {
  buffer_.reserve(2 * kPiece);
}

JsonWriter::~JsonWriter() {
  flush();
}

void JsonWriter::flush() {
  if (!buffer_.empty()) {
    sink_(buffer_);
    buffer_.clear();
  }
}

void JsonWriter::new_line() {
  if (layout_ == Layout::indented) {
    buffer_ += '\n';
    buffer_.append(2 * has_items_.size(), ' ');
  }
}

/// Writes what separates, before a key or a value that has none.
void JsonWriter::separate() {
  if (std::exchange(after_key_, false) || has_items_.empty()) {
    return;
  }
  if (has_items_.back()) {
    buffer_ += ',';
  }
  has_items_.back() = true;
  new_line();
  if (buffer_.size() >= kPiece) {
    flush();
  }
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  buffer_ += bracket;
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  const bool had_items = has_items_.back();
  has_items_.pop_back();
  if (had_items) {
    new_line();
  }
  buffer_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  quote(name);
  buffer_ += layout_ == Layout::indented ? ": " : ":";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  quote(text);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  return number_text(std::isfinite(number) ? fmt::format("{}", number) : "null");
}

JsonWriter& JsonWriter::number_text(std::string_view text) {
  separate();
  buffer_ += text;
  return *this;
}

void JsonWriter::quote(std::string_view text) {
  buffer_ += '"';
  while (!text.empty()) {
    const auto plain = std::ranges::find_if(
        text, [](char c) { return c < 0x20 || c > 0x7E || c == '"' || c == '\\'; });
    if (plain != text.begin()) {
      buffer_.append(text.begin(), plain);
      text.remove_prefix(static_cast<std::size_t>(plain - text.begin()));
      continue;
    }
    const auto byte = static_cast<unsigned char>(text.front());
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      buffer_ += "\\ufffd";
    } else if (byte == '"' || byte == '\\') {
      buffer_ += '\\';
      buffer_ += text.front();
    } else if (byte < 0x20) {
      fmt::format_to(std::back_inserter(buffer_), "\\u{:04x}", byte);
    } else {
      buffer_ += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  buffer_ += '"';
}

std::string json_text(const std::function<void(JsonWriter&)>& write) {
  std::string text;
  {
    JsonWriter json([&](std::string_view piece) { text += piece; }, JsonWriter::Layout::indented);
    write(json);
  }
  return text += '\n';
}

}  // namespace orrery::report
