// SPDX-License-Identifier: Apache-2.0
#include "workload/interop/layer_pattern.h"

#include <optional>

#include "base/reader.h"

namespace orrery::interop {
namespace {

using Pattern = std::vector<bool>;
constexpr std::size_t kMostLayers = std::size_t{1} << 16;
constexpr int kDeepestNesting = 32;

/// sum := product ('+' product)*;  product := factor ('*' number)*;  factor := list | '(' sum ')'
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::optional<Pattern> run() {
    auto pattern = sum(0);
    return at_ == text_.size() ? pattern : std::nullopt;
  }

 private:
  bool take(char c) {
    if (at_ < text_.size() && text_[at_] == c) {
      ++at_;
      return true;
    }
    return false;
  }

  std::optional<Pattern> sum(int depth) {
    auto result = product(depth);
    while (result && take('+')) {
      const auto more = product(depth);
      if (!more || result->size() + more->size() > kMostLayers) {
        return std::nullopt;
      }
      result->insert(result->end(), more->begin(), more->end());
    }
    return result;
  }

  std::optional<Pattern> product(int depth) {
    auto result = factor(depth);
    while (result && take('*')) {
      const auto times = number();
      if (!times || *times < 0 || static_cast<std::size_t>(*times) * result->size() > kMostLayers) {
        return std::nullopt;
      }
      Pattern repeated;
      for (std::int64_t i = 0; i < *times; ++i) {
        repeated.insert(repeated.end(), result->begin(), result->end());
      }
      result = std::move(repeated);
    }
    return result;
  }

  std::optional<Pattern> factor(int depth) {
    if (depth > kDeepestNesting) {
      return std::nullopt;
    }
    if (take('(')) {
      auto inner = sum(depth + 1);
      return take(')') ? inner : std::nullopt;
    }
    if (!take('[')) {
      return std::nullopt;
    }
    Pattern items;
    do {
      const auto value = number();
      if (!value || *value < 0 || *value > 1) {
        return std::nullopt;
      }
      items.push_back(*value == 1);
    } while (take(','));
    return take(']') ? std::optional(items) : std::nullopt;
  }

  std::optional<std::int64_t> number() {
    const std::size_t end = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
    const auto value = parse_integer(text_.substr(at_, end - at_));
    at_ = end;
    constexpr std::int64_t kMost = std::int64_t{1} << 16;
    return value && *value <= kMost ? std::optional(*value) : std::nullopt;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<Pattern> parse_layer_pattern(const std::string& text, std::int64_t layers) {
  if (const auto step = parse_integer(text); step && *step >= 1) {
    Pattern pattern;
    for (std::int64_t i = 0; i < layers; ++i) {
      pattern.push_back(i % *step == 0);
    }
    return pattern;
  }
  auto pattern = Parser(text).run();
  if (!pattern || std::ssize(*pattern) != layers) {
    return fail("a number, or a list of 0 and 1 for each of the " + std::to_string(layers) +
                " layers such as '([0]*3+[1]*58)'");
  }
  return std::move(*pattern);
}

std::string layer_pattern_text(const Pattern& pattern) {
  std::string text;
  for (std::size_t i = 0; i < pattern.size();) {
    std::size_t end = i;
    while (end < pattern.size() && pattern[end] == pattern[i]) {
      ++end;
    }
    text += (text.empty() ? "[" : "+[") + std::string(pattern[i] ? "1" : "0") + "]*" +
            std::to_string(end - i);
    i = end;
  }
  return "(" + text + ")";
}

}  // namespace orrery::interop
