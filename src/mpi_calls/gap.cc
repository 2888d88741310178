// SPDX-License-Identifier: Apache-2.0
#include "mpi_calls/gap.h"

#include <algorithm>

namespace orrery::mpi_calls {
namespace {

constexpr std::int64_t kLinesAround = 2;
constexpr std::size_t kLongest = 3;  // n-gram

/// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  return hash;
}

/// The n-grams of words, each marked with where they are from.
void add_grams(const std::vector<std::string>& words, const std::string& mark, Features& into) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string gram = mark;
    for (std::size_t n = 0; n < kLongest && i + n < words.size(); ++n) {
      gram += ' ' + words[i + n];
      into.push_back(hash_of(gram));
    }
  }
}

std::vector<std::string> words_of(const Outline& outline, std::int64_t line) {
  std::vector<std::string> words;
  if (line < 1 || line > static_cast<std::int64_t>(outline.lines().size())) {
    words.emplace_back("<end>");
    return words;
  }
  const std::size_t end = outline.first_token_of(line + 1);
  for (std::size_t i = outline.first_token_of(line); i < end; ++i) {
    words.push_back(shape_of(outline, outline.tokens()[i]));
  }
  return words;
}

/// Lines with tokens from `line` on in direction `step`, the nearest first.
std::vector<std::int64_t> lines_with_tokens(const Outline& outline, std::int64_t line,
                                            std::int64_t step) {
  std::vector<std::int64_t> lines;
  const auto last = static_cast<std::int64_t>(outline.lines().size());
  for (; line >= 1 && line <= last && static_cast<std::int64_t>(lines.size()) < kLinesAround;
       line += step) {
    if (outline.first_token_of(line) != outline.first_token_of(line + 1)) {
      lines.push_back(line);
    }
  }
  lines.resize(kLinesAround, 0);
  return lines;
}

/// Returns the heads (if, else, for, while with their conditions) of the blocks that are open at
/// token `at`, outermost first: the words between the statement before and the brace.
std::vector<std::vector<std::string>> heads_at(const Outline& outline, std::size_t at) {
  const std::vector<Token>& tokens = outline.tokens();
  std::vector<std::vector<std::string>> heads;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < std::min(at, tokens.size()); ++i) {
    if (tokens[i].is("{")) {
      std::vector<std::string> head;
      for (std::size_t k = begin; k < i; ++k) {
        head.push_back(shape_of(outline, tokens[k]));
      }
      heads.push_back(std::move(head));
      begin = i + 1;
    } else if (tokens[i].is("}")) {
      if (!heads.empty()) {
        heads.pop_back();
      }
      begin = i + 1;
    } else if (tokens[i].is(";")) {
      const bool in_for = begin < i && tokens[begin].is("for") && closing(tokens, begin + 1) > i;
      begin = in_for ? begin : i + 1;
    }
  }
  return heads;
}

}  // namespace

std::string shape_of(const Outline& outline, const Token& token) {
  if (token.kind == Token::Kind::text) {
    return "text";
  }
  if (token.kind == Token::Kind::identifier) {
    std::string role = outline.role_of(token.text);
    return role.empty() ? std::string(token.text) : "<" + role + ">";
  }
  return std::string(token.text);
}

Features features_of(const Outline& outline, std::int64_t line) {
  Features features;
  std::int64_t distance = 0;
  for (const std::int64_t before : lines_with_tokens(outline, line, -1)) {
    add_grams(words_of(outline, before), "before" + std::to_string(distance++), features);
  }
  distance = 0;
  for (const std::int64_t behind : lines_with_tokens(outline, line + 1, 1)) {
    add_grams(words_of(outline, behind), "behind" + std::to_string(distance++), features);
  }
  const auto heads = heads_at(outline, outline.first_token_of(line + 1));
  for (std::size_t depth = 0; depth < heads.size(); ++depth) {
    add_grams(heads[heads.size() - 1 - depth],
              "in" + std::to_string(std::min<std::size_t>(depth, 2)), features);
  }
  features.push_back(hash_of("depth " + std::to_string(heads.size())));
  std::sort(features.begin(), features.end());
  features.erase(std::unique(features.begin(), features.end()), features.end());
  return features;
}

}  // namespace orrery::mpi_calls
