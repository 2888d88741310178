// SPDX-License-Identifier: Apache-2.0
/// Words of a script with their quotes, variables and arithmetic expanded. Internal to this folder.
///
/// Three signs stand in texts until a command is recorded: kUnset + name + kEnd for a variable that
/// nothing sets, kUnknown + command + kEnd for what a command prints, and kContinued for a line
/// that `\` continues in double quotes, so that the words of a text know their lines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "shell/shell.h"

namespace orrery::shell {

inline constexpr char kUnset = '\x01';
inline constexpr char kEnd = '\x02';
inline constexpr char kUnknown = '\x03';
inline constexpr char kContinued = '\x04';
inline constexpr std::size_t kMostText = std::size_t{1} << 22;  ///< bytes of one value

struct Value {
  std::vector<Word> items;  ///< one of a scalar
  bool is_array = false;
};

/// Variables and arguments; all of a script's are global, but for the arguments of a function.
struct Scope {
  std::map<std::string, Value, std::less<>> variables;
  std::map<std::string, std::string, std::less<>> given;  ///< by the user
  std::vector<Word> arguments;                            ///< $1, $2 ...
  std::set<std::string> missing;  ///< that ${X:?...} asks for and nothing sets

  void set(const std::string& name, std::string text, int line);
  const Value* find(std::string_view name) const;
};

/// Returns the fields of a word: unquoted variables are split at blanks, arrays in quotes give a
/// field an item.
std::vector<Word> fields_of(Scope& scope, std::string_view raw, int line);
/// Returns the text of a word, which is not split.
std::string text_of(Scope& scope, std::string_view raw, int line);
/// Returns what is in double quotes, expanded.
std::string quoted_text(Scope& scope, std::string_view inner, int line);

/// Returns the lines of a here-document, whose quotes are letters.
std::string document_text(Scope& scope, std::string_view lines, int line);

/// Returns integer arithmetic as in $(( )): + - * / % ** comparisons && || ! ?: parentheses, names,
/// = and +=; nothing where an operand is unknown or the text is none; 64 bits, which wrap as bash's
/// do.
std::optional<std::int64_t> arithmetic(Scope& scope, std::string_view text);

/// Says whether `text` matches the pattern of * ? [...].
bool matches(std::string_view pattern, std::string_view text);
/// Returns the text without the signs of variables that nothing sets.
std::string without_unset(std::string_view text);
/// Returns the text with the signs as `$NAME` and `$(command...)`.
std::string shown(std::string_view text);

}  // namespace orrery::shell
