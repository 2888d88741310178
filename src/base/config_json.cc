// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_tree.h"

namespace orrery {
namespace {

/// Says where the lexer is. It reads one character beyond a number and none beyond anything else.
struct Progress {
  char last = ' ';
  int line = 1;
};

/// Characters of the text; advancing any copy advances the shared progress.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, Progress* progress) : at_(at), progress_(progress) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    progress_->last = *at_++;
    progress_->line += progress_->last == '\n' ? 1 : 0;
    return *this;
  }
  CountingIterator operator++(int) {
    const CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_;
  Progress* progress_;
};

/// Words that Python's json writes for numbers that are not finite.
constexpr auto kNotFinite = std::to_array<std::string_view>({"Infinity", "-Infinity", "NaN"});
constexpr char kBare = '\x01';  // begins a string that stands for one of them

/// Returns the text with these words, outside strings, as strings that begin with kBare.
std::string with_quoted_words(std::string_view text) {
  std::string quoted;
  quoted.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto word = std::ranges::find_if(kNotFinite, [&](std::string_view each) {
      return !in_string && text.substr(i).starts_with(each);
    });
    if (word != kNotFinite.end()) {
      quoted += "\"\\u0001" + std::string(*word) + "\"";
      i += word->size() - 1;
      continue;
    }
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      quoted += text[i++];
    } else if (text[i] == '"') {
      in_string = !in_string;
    }
    quoted += text[i];
  }
  return quoted;
}

/// Returns how many values each object and array of a JSON text has, in the order in which they
/// open.
/// The numbers mean nothing where the text is no JSON.
std::vector<std::uint32_t> sizes_of(std::string_view text) {
  std::vector<std::uint32_t> sizes;
  std::vector<std::size_t> open;
  bool empty = false;  // nothing stands in the innermost one yet
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
      continue;
    }
    const bool opens = c == '{' || c == '[';
    const bool closes = c == '}' || c == ']';
    if (!open.empty() && ((empty && !closes) || c == ',')) {
      ++sizes[open.back()];
    }
    empty = opens;
    if (opens) {
      open.push_back(sizes.size());
      sizes.push_back(0);
    } else if (closes && !open.empty()) {
      open.pop_back();
    } else if (c == '"') {
      while (++i < text.size() && text[i] != '"') {
        i += text[i] == '\\' ? 1 : 0;
      }
    }
  }
  return sizes;
}

/// Hands nlohmann's events to the tree.
class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonEvents(ConfigTree& tree, std::string_view text, std::string file, const Progress& progress)
      : tree_(tree),
        text_(text),
        file_(std::move(file)),
        progress_(progress),
        sizes_(sizes_of(text)) {}

  std::optional<Mistake> mistake() const { return mistake_; }

  bool null() override { return value(ConfigNode::Kind::null, ""); }
  bool boolean(bool is) override { return value(ConfigNode::Kind::scalar, is ? "true" : "false"); }
  bool number_integer(number_integer_t number) override {
    return add_number(std::to_string(number));
  }
  bool number_unsigned(number_unsigned_t number) override {
    return add_number(std::to_string(number));
  }
  bool number_float(number_float_t, const string_t& text) override { return add_number(text); }
  bool string(string_t& text) override {
    const auto bare = [&](std::string_view word) {
      return text.size() == word.size() + 1 && text[0] == kBare && text.ends_with(word);
    };
    if (std::ranges::any_of(kNotFinite, bare)) {
      return value(ConfigNode::Kind::scalar, text.substr(1));
    }
    return add(ConfigNode::Kind::scalar, std::move(text), true, progress_.line);
  }
  bool binary(binary_t&) override { return false; }  // is in no JSON text
  bool start_object(std::size_t) override { return open(ConfigNode::Kind::map); }
  bool key(string_t& name) override {
    tree_.key(std::move(name), progress_.line);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(ConfigNode::Kind::sequence); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& problem) override {
    const std::size_t at = std::min(position == 0 ? 0 : position - 1, text_.size());
    const auto lines =
        std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    mistake_ = Mistake{file_ + ":" + std::to_string(1 + lines),
                       {},
                       found_at(at),
                       "JSON (" + reason_of(problem.what()) + ")"};
    return false;
  }

 private:
  bool value(ConfigNode::Kind kind, std::string text) {
    return add(kind, std::move(text), false, progress_.line);
  }
  bool add_number(std::string text) {
    const int line = progress_.line - (progress_.last == '\n' ? 1 : 0);
    return add(ConfigNode::Kind::scalar, std::move(text), false, line);
  }
  bool add(ConfigNode::Kind kind, std::string text, bool quoted, int line) {
    if (!tree_.value(kind, std::move(text), quoted, line)) {
      mistake_ = tree_.too_large(line);
      return false;
    }
    return true;
  }
  bool open(ConfigNode::Kind kind) {
    if (!tree_.open(kind, progress_.line, sizes_[opened_++])) {
      mistake_ = tree_.too_large(progress_.line);
      return false;
    }
    return true;
  }
  bool close() {
    tree_.close();
    return true;
  }

  /// Returns the rest of the line, shortened.
  std::string found_at(std::size_t at) const {
    constexpr std::size_t kShown = 24;
    if (at >= text_.size()) {
      return "the end of the file";
    }
    const std::string_view rest = text_.substr(at, text_.substr(at).find('\n'));
    if (rest.empty()) {
      return "the end of the line";
    }
    std::size_t length = std::min(rest.size(), kShown);
    while (length < rest.size() && (static_cast<unsigned char>(rest[length]) & 0xC0U) == 0x80U) {
      ++length;  // not in the middle of a character
    }
    return std::string(rest.substr(0, length));
  }
  /// "[json.exception.parse_error.101] parse error at line 1, column 2: WHY; last read: 'x'" ->
  /// WHY.
  static std::string reason_of(std::string_view message) {
    for (const std::string_view before : {"] ", "parse error at ", ": ", "syntax error while "}) {
      const auto at = message.find(before);
      message.remove_prefix(at == std::string_view::npos ? 0 : at + before.size());
    }
    if (const auto read = message.find("; last read: "); read != std::string_view::npos) {
      const auto then = message.find("'; expected", read);  // the rest says what would be right
      return std::string(message.substr(0, read)) +
             std::string(then == std::string_view::npos ? "" : message.substr(then + 1));
    }
    return std::string(message);
  }

  ConfigTree& tree_;
  std::string_view text_;
  std::string file_;
  const Progress& progress_;
  std::vector<std::uint32_t> sizes_;  ///< of all objects and arrays
  std::size_t opened_ = 0;
  std::optional<Mistake> mistake_;
};

}  // namespace

Result<ConfigNode> parse_json(std::string_view text, const std::string& file) {
  std::string quoted;
  if (text.find("Infinity") != std::string_view::npos ||
      text.find("NaN") != std::string_view::npos) {
    quoted = with_quoted_words(text);
    text = quoted;
  }
  ConfigTree tree(file, text.size());
  Progress progress;
  JsonEvents events(tree, text, file, progress);
  const CountingIterator first(text.data(), &progress);
  const CountingIterator last(text.data() + text.size(), &progress);
  if (!nlohmann::json::sax_parse(first, last, &events)) {
    return fail(Error(events.mistake().value_or(Mistake{file, {}, {}, "JSON"})));
  }
  return tree.take();
}

}  // namespace orrery
