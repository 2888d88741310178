// SPDX-License-Identifier: Apache-2.0
#include "shell/parameter.h"

#include <algorithm>
#include <cctype>

#include "base/reader.h"

namespace orrery::shell {
namespace {

/// Parameter says what it is called, which item is meant and what is done to it: "X", "@", ":-d".
struct Parameter {
  std::string name;
  std::string index;
  std::string_view action;
  bool length = false;
  bool indirect = false;
};

bool part_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

Parameter parse(std::string_view inner) {
  Parameter parsed;
  if (inner.size() > 1 && (inner[0] == '#' || inner[0] == '!')) {
    (inner[0] == '#' ? parsed.length : parsed.indirect) = true;
    inner.remove_prefix(1);
  }
  std::size_t end = 0;
  while (end < inner.size() && part_of_name(inner[end])) {
    ++end;
  }
  end = end == 0 && !inner.empty() ? 1 : end;  // @ * # ? $ ! -
  parsed.name = inner.substr(0, end);
  inner.remove_prefix(end);
  if (inner.starts_with('[') && inner.find(']') != inner.npos) {
    parsed.index = inner.substr(1, inner.find(']') - 1);
    inner.remove_prefix(inner.find(']') + 1);
  }
  parsed.action = inner;
  return parsed;
}

std::optional<Value> argument(const Scope& scope, const std::string& name) {
  if (name == "@" || name == "*") {
    return Value{.items = scope.arguments, .is_array = true};
  }
  if (name == "#") {
    return Value{.items = {{std::to_string(scope.arguments.size()), 0}}};
  }
  if (name == "?") {
    return Value{.items = {{"0", 0}}};
  }
  const auto number = parse_integer(name);
  if (number && *number >= 1 && *number <= std::ssize(scope.arguments)) {
    return Value{.items = {scope.arguments[static_cast<std::size_t>(*number - 1)]}};
  }
  return std::nullopt;
}

std::optional<Value> value_of(Scope& scope, const Parameter& parsed) {
  if (parsed.name.empty() ||
      (std::isalpha(static_cast<unsigned char>(parsed.name[0])) == 0 && parsed.name[0] != '_')) {
    return argument(scope, parsed.name);
  }
  const Value* value = scope.find(parsed.name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (parsed.index == "@" || parsed.index == "*") {
    return Value{.items = value->items, .is_array = true};
  }
  const auto index =
      parsed.index.empty() ? std::optional<std::int64_t>(0) : arithmetic(scope, parsed.index);
  if (!index || *index < -std::ssize(value->items) || *index >= std::ssize(value->items)) {
    return std::nullopt;
  }
  const std::int64_t at = *index < 0 ? *index + std::ssize(value->items) : *index;
  return Value{.items = {value->items[static_cast<std::size_t>(at)]}};
}

/// Removes the shortest or longest match of the pattern at one end.
std::string trimmed(const std::string& text, std::string_view pattern, bool front, bool longest) {
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const std::size_t taken = longest ? text.size() - i : i;
    const std::string_view piece = front ? std::string_view(text).substr(0, taken)
                                         : std::string_view(text).substr(text.size() - taken);
    if (matches(pattern, piece)) {
      return front ? text.substr(taken) : text.substr(0, text.size() - taken);
    }
  }
  return text;
}

/// Replaces the first match, or all; a pattern of plain letters only.
std::string replaced(std::string text, std::string_view what, std::string_view with, bool all) {
  std::size_t at = what.empty() ? std::string::npos : text.find(what);
  while (at != std::string::npos) {
    text.replace(at, what.size(), with);
    at = all && text.size() < kMostText ? text.find(what, at + with.size()) : std::string::npos;
  }
  return text;
}

std::string substring(Scope& scope, const std::string& text, std::string_view range) {
  const std::size_t colon = std::min(range.find(':'), range.size());
  const auto from = arithmetic(scope, quoted_text(scope, range.substr(0, colon), 0));
  const auto length = colon < range.size()
                          ? arithmetic(scope, quoted_text(scope, range.substr(colon + 1), 0))
                          : std::optional<std::int64_t>(std::ssize(text));
  if (!from || !length) {
    return text;
  }
  const std::int64_t size = std::ssize(text);
  const std::int64_t begin = std::clamp<std::int64_t>(*from < 0 ? size + *from : *from, 0, size);
  const std::int64_t end = *length < 0 ? std::max(begin, size + *length)
                                       : std::min(size, begin + std::min(*length, size));
  return text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

/// ${X%p} and the other forms that change a text.
std::string changed(Scope& scope, const std::string& text, std::string_view action, int line) {
  const char sign = action[0];
  const bool twice = action.size() > 1 && action[1] == sign;
  const std::string_view rest = action.substr(twice ? 2 : 1);
  if (sign == '%' || sign == '#') {
    return trimmed(text, text_of(scope, rest, line), sign == '#', twice);
  }
  if (sign == '/') {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const std::string_view with = slash < rest.size() ? rest.substr(slash + 1) : "";
    return replaced(text, text_of(scope, rest.substr(0, slash), line), text_of(scope, with, line),
                    twice);
  }
  if (sign == ':') {
    return substring(scope, text, action.substr(1));
  }
  std::string result = text;
  for (char& c : result) {
    c = static_cast<char>(sign == '^'   ? std::toupper(static_cast<unsigned char>(c))
                          : sign == ',' ? std::tolower(static_cast<unsigned char>(c))
                                        : c);
    if (!twice) {
      break;
    }
  }
  return result;
}

Expanded unset(const Parameter& parsed) {
  return {.items = {{kUnset + parsed.name + kEnd, 0}}};
}

/// Returns the word of ${X:-word}: in quotes it is not split.
Expanded alternative(Scope& scope, std::string_view word, int line, bool quoted) {
  return {.items = {{quoted ? quoted_text(scope, word, line) : text_of(scope, word, line), line}}};
}

}  // namespace

Expanded expand_parameter(Scope& scope, std::string_view inner, int line, bool quoted) {
  Parameter parsed = parse(inner);
  std::optional<Value> value = value_of(scope, parsed);
  if (parsed.indirect && value && !value->items.empty()) {
    parsed.name = without_unset(value->items.front().text);
    parsed.index.clear();
    value = value_of(scope, parsed);
  }
  if (parsed.length) {
    const bool list = value && value->is_array;
    const std::size_t size = !value || value->items.empty() ? 0
                             : list                         ? value->items.size()
                                    : without_unset(value->items.front().text).size();
    return {.items = {{std::to_string(size), line}}};
  }
  std::string_view action = parsed.action;
  const bool colon = action.size() > 1 && action[0] == ':' &&
                     std::string_view("-=+?").find(action[1]) != std::string_view::npos;
  action.remove_prefix(colon ? 1 : 0);
  const bool is_empty =
      value && (value->items.empty() ||
                (!value->is_array && without_unset(value->items.front().text).empty()));
  const bool there = value && !(colon && is_empty);
  const char sign = action.empty() ? ' ' : action[0];
  if (sign == '+') {
    return there ? alternative(scope, action.substr(1), line, quoted) : Expanded{};
  }
  if (!there && (sign == '-' || sign == '=')) {
    Expanded found = alternative(scope, action.substr(1), line, quoted);
    if (sign == '=') {
      scope.set(parsed.name, found.items.front().text, line);
    }
    return found;
  }
  if (!there && sign == '?') {
    scope.missing.insert(parsed.name);
  }
  if (!value) {
    const bool arguments = parsed.name == "@" || parsed.name == "*" || !parsed.index.empty();
    return arguments ? Expanded{} : unset(parsed);
  }
  Expanded found{.items = value->items, .list = value->is_array};
  if (!action.empty() && sign != '-' && sign != '=' && sign != '?') {
    for (Word& item : found.items) {
      item.text = changed(scope, item.text, colon ? parsed.action : action, line);
    }
  }
  return found;
}

}  // namespace orrery::shell
