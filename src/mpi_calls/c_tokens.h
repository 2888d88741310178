// SPDX-License-Identifier: Apache-2.0
/// Tokens of a C program: enough to find calls and what they are given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::mpi_calls {

struct Token {
  enum class Kind : std::uint8_t {
    identifier,
    number,
    text,  ///< a string or character literal
    mark,  ///< an operator or punctuation, the longest there is
  };
  Kind kind = Kind::mark;
  std::string_view text{};
  std::size_t begin = 0;  ///< offset in the program
  std::size_t line = 0;   ///< from 0

  std::size_t end() const { return begin + text.size(); }
  bool is(std::string_view word) const { return text == word; }
};

/// Returns the tokens outside comments and preprocessor lines. Any bytes are accepted: what is no
/// token is a mark of one byte, and literals end with their line. `program` must outlive them.
std::vector<Token> tokens_of(std::string_view program);

/// Returns the index of the bracket that closes the one at `open`, or tokens.size().
std::size_t closing(const std::vector<Token>& tokens, std::size_t open);

/// Returns whether MPI_ begins the identifier and ( follows: a call.
bool is_mpi_call(const std::vector<Token>& tokens, std::size_t i);

/// A call as text: its name and its arguments, trimmed, inner white space as one blank.
struct Call {
  std::string name;
  std::vector<std::string> arguments;
};
/// Returns the call at token `i`. An argument list that does not end has what there is.
Call call_at(std::string_view program, const std::vector<Token>& tokens, std::size_t i);

/// Returns the text with white space between words as one blank, none at either end.
std::string on_one_line(std::string_view text);

}  // namespace orrery::mpi_calls
