// SPDX-License-Identifier: Apache-2.0
/// Words and operators of a script. Internal to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace orrery::shell {

enum class TokenKind : std::uint8_t { word, sign, arithmetic };

struct Token {
  TokenKind kind = TokenKind::word;
  std::string text;  ///< a word as written, with its quotes; of (( )) what is inside
  int line = 0;
  std::string document{};  ///< of << the lines that follow
};

Result<std::vector<Token>> tokens_of(std::string_view text, const std::string& file,
                                     int first_line);

/// Returns the place after the bracket that closes the one at `at`, with quotes and nested brackets
/// skipped; npos when there is none, or more than 64 within each other. `text[at]` is '(' or '{'.
std::size_t after_bracket(std::string_view text, std::size_t at, int depth = 0);
/// Returns the place after the quote that closes the one at `at`; npos when there is none.
std::size_t after_quote(std::string_view text, std::size_t at, int depth = 0);

}  // namespace orrery::shell
