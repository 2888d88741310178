// SPDX-License-Identifier: Apache-2.0
#include "mpi_calls/record.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

namespace orrery::mpi_calls {
namespace {

/// A call of the program: bytes [begin, end), those of a statement with its semicolon.
struct Found {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool statement = false;  ///< nothing else is in its lines
  std::string text;        ///< on one line, with the indentation of a statement
};

std::size_t line_begin(std::string_view program, std::size_t at) {
  const std::size_t before = at == 0 ? std::string_view::npos : program.rfind('\n', at - 1);
  return before == std::string_view::npos ? 0 : before + 1;
}

/// Returns the place behind the newline.
std::size_t line_end(std::string_view program, std::size_t at) {
  const std::size_t end = program.find('\n', at);
  return end == std::string_view::npos ? program.size() : end + 1;
}

/// Finds the calls of a program and which of them have lines to themselves.
class Finder {
 public:
  explicit Finder(std::string_view program) : program_(program), tokens_(tokens_of(program)) {}

  std::vector<Found> run() {
    for (std::size_t i = 0; i < tokens_.size();) {
      const std::size_t next = statements_from(i);
      if (next > i) {
        i = next;
      } else if (is_mpi_call(tokens_, i)) {
        i = expression(i);
      } else {
        ++i;
      }
    }
    return std::move(found_);
  }

 private:
  bool begins_line(std::size_t i) const { return i == 0 || tokens_[i - 1].line != tokens_[i].line; }
  /// Returns the token behind the statement that is a call at `i`, or i.
  std::size_t behind_statement(std::size_t i) const {
    if (!is_mpi_call(tokens_, i)) {
      return i;
    }
    const std::size_t close = closing(tokens_, i + 1);
    return close + 1 < tokens_.size() && tokens_[close + 1].is(";") ? close + 2 : i;
  }

  /// Calls one after the other from a line's first token to a line's last. Returns the token behind
  /// them, or i where there is something else in their lines.
  std::size_t statements_from(std::size_t i) {
    if (!begins_line(i)) {
      return i;
    }
    std::vector<std::size_t> starts;
    std::size_t at = i;
    do {
      const std::size_t next = behind_statement(at);
      if (next == at) {
        return i;
      }
      starts.push_back(at);
      at = next;
    } while (at < tokens_.size() && tokens_[at].line == tokens_[at - 1].line);
    const std::size_t first = line_begin(program_, tokens_[i].begin);
    const std::size_t last = line_end(program_, tokens_[at - 1].begin);
    if (!is_plain(first, tokens_[i].begin) || opens_comment(tokens_[at - 1].end(), last)) {
      return i;
    }
    for (std::size_t k = 0; k < starts.size(); ++k) {
      const std::size_t begin = k == 0 ? first : tokens_[starts[k]].begin;
      const std::size_t end = k + 1 < starts.size() ? tokens_[starts[k + 1]].begin : last;
      const std::size_t stop = tokens_[closing(tokens_, starts[k] + 1) + 1].end();
      const std::string indent(program_.substr(first, tokens_[i].begin - first));
      const std::size_t start = tokens_[starts[k]].begin;
      found_.push_back(
          {begin, end, true, indent + on_one_line(program_.substr(start, stop - start))});
    }
    return at;
  }

  std::size_t expression(std::size_t i) {
    const std::size_t close = closing(tokens_, i + 1);
    if (close == tokens_.size()) {
      return i + 1;
    }
    const std::size_t begin = tokens_[i].begin;
    const std::size_t end = tokens_[close].end();
    found_.push_back({begin, end, false, on_one_line(program_.substr(begin, end - begin)) + ";"});
    return close + 1;
  }

  bool is_plain(std::size_t begin, std::size_t end) const {
    return program_.substr(begin, end - begin).find_first_not_of(" \t") == std::string_view::npos;
  }
  /// A comment that begins there and goes on in the next line.
  bool opens_comment(std::size_t begin, std::size_t end) const {
    const std::string_view rest = program_.substr(begin, end - begin);
    const std::size_t open = rest.find("/*");
    return open != std::string_view::npos && rest.find("*/", open + 2) == std::string_view::npos;
  }

  std::string_view program_;
  std::vector<Token> tokens_;
  std::vector<Found> found_;
};

std::string numbered(std::string_view code) {
  std::string text;
  std::int64_t number = 0;
  for (std::size_t at = 0; at < code.size();) {
    const std::size_t end = line_end(code, at);
    text += std::to_string(++number) + " ";
    text += code.substr(at, end - at);
    at = end;
  }
  return text;
}

/// Lines with their ends, without numbers.
std::vector<std::string> unnumbered(const std::string& code) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < code.size();) {
    const std::size_t end = line_end(code, at);
    std::string line = code.substr(at, end - at);
    const std::string number = std::to_string(lines.size() + 1);
    if (line.starts_with(number) && line.size() > number.size() &&
        (line[number.size()] == ' ' || line[number.size()] == '\n')) {
      line.erase(0, number.size() + (line[number.size()] == ' ' ? 1 : 0));
    }
    lines.push_back(std::move(line));
    at = end;
  }
  return lines;
}

/// The bytes of places go back to where they were: of one line from the right, so that columns
/// hold; then what stood between the lines.
std::string restore_places(std::vector<std::string> lines, const std::vector<Place>& places) {
  if (std::ranges::any_of(places, [&](const Place& place) {
        return !place.whole && place.line == static_cast<std::int64_t>(lines.size()) + 1;
      })) {
    lines.emplace_back();  // all that it had was a call
  }
  std::vector<std::string> between(lines.size() + 1);
  for (const Place& place : places) {
    if (place.whole) {
      between[std::min(static_cast<std::size_t>(place.line), lines.size())] += place.text;
    }
  }
  for (std::size_t i = places.size(); i-- > 0;) {
    const Place& place = places[i];
    const auto line = static_cast<std::size_t>(place.line);
    if (!place.whole && line >= 1 && line <= lines.size()) {
      std::string& text = lines[line - 1];
      text.insert(std::min(static_cast<std::size_t>(place.column), text.size()), place.text);
    }
  }
  std::string program = between.front();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    program += lines[i] + between[i + 1];
  }
  return program;
}

/// Returns where in a line an expression is missing.
std::size_t hole_of(const std::string& line) {
  const std::vector<Token> tokens = tokens_of(line);
  static constexpr std::array<std::string_view, 8> kBefore{"=",  "return", ",",  "(",
                                                           "+=", "-=",     "==", "!="};
  const auto lacks = [&](std::size_t i) {
    const bool call = tokens[i].is("(") && i > 0 && tokens[i - 1].kind == Token::Kind::identifier &&
                      !tokens[i - 1].is("if") && !tokens[i - 1].is("while");
    return !call && std::ranges::find(kBefore, tokens[i].text) != kBefore.end();
  };
  static constexpr std::array<std::string_view, 9> kBehind{";",  ")",  ",", "-", "+",
                                                           "!=", "==", "<", ">"};
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (lacks(i) && std::ranges::find(kBehind, tokens[i + 1].text) != kBehind.end()) {
      return tokens[i].end() + (line.compare(tokens[i].end(), 1, " ") == 0 ? 1 : 0);
    }
  }
  if (!tokens.empty() && tokens.back().is(";")) {
    return tokens.back().begin;
  }
  return tokens.empty() ? 0 : tokens.back().end();
}

std::string restore_labels(std::vector<std::string> lines, const std::vector<Label>& labels) {
  std::vector<std::string> between(lines.size() + 1);
  for (const Label& label : labels) {
    const auto line = std::min(static_cast<std::size_t>(label.line), lines.size());
    if (label.sub > 0 || line == 0) {
      between[line] += label.statement + "\n";
      continue;
    }
    std::string expression = on_one_line(label.statement);
    std::string& text = lines[line - 1];
    const std::size_t hole = hole_of(text);
    const bool ends = expression.ends_with(";");
    if (ends && text.find(';', hole) != std::string::npos) {
      expression.pop_back();
    }
    text.insert(hole, expression);
  }
  std::string program = between.front();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!between[i + 1].empty() && !lines[i].ends_with('\n')) {
      lines[i] += "\n";
    }
    program += lines[i] + between[i + 1];
  }
  return program;
}

}  // namespace

Record strip(const std::string& name, std::string_view program) {
  Record record{.program = name, .code = {}, .mpi_labels = {}};
  std::vector<Label> labels;
  std::string code;
  std::size_t at = 0;
  std::int64_t lines = 0;  // that the code has: complete ones
  std::map<std::int64_t, std::int64_t> subs;
  for (Found& found : Finder(program).run()) {
    const std::string_view before = program.substr(at, found.begin - at);
    code += before;
    lines += std::count(before.begin(), before.end(), '\n');
    const std::int64_t line = found.statement ? lines : lines + 1;
    labels.push_back({line, found.statement ? ++subs[line] : 0, std::move(found.text)});
    record.places.push_back(
        {line,
         found.statement ? 0
                         : static_cast<std::int64_t>(code.size() - line_begin(code, code.size())),
         found.statement, std::string(program.substr(found.begin, found.end - found.begin))});
    at = found.end;
  }
  code += program.substr(at);
  record.code = numbered(code);
  record.mpi_labels = labels_text(labels);
  if (restore_labels(unnumbered(record.code), labels) == program) {
    record.places.clear();
  }
  return record;
}

std::string restore(const Record& record) {
  const std::vector<Label> labels = parse_labels(record.mpi_labels);
  if (!record.places.empty() && record.places.size() == labels.size()) {
    return restore_places(unnumbered(record.code), record.places);
  }
  return restore_labels(unnumbered(record.code), labels);
}

std::string labels_text(const std::vector<Label>& labels) {
  std::string text;
  for (const Label& label : labels) {
    text += " (" + std::to_string(label.line) + " " + std::to_string(label.sub) + ", " +
            label.statement + ")";
  }
  return text;
}

std::vector<Label> parse_labels(std::string_view text) {
  constexpr std::int64_t kMostLine = 100'000'000;
  const std::vector<Token> tokens = tokens_of(text);
  std::vector<Label> labels;
  const auto number = [&](std::size_t i) {
    std::int64_t value = 0;
    for (const char c : tokens[i].text) {
      const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
      value = digit && value >= 0 && value < kMostLine ? 10 * value + (c - '0') : -1;
    }
    return tokens[i].kind == Token::Kind::number ? value : -1;
  };
  for (std::size_t i = 0; i + 4 < tokens.size(); ++i) {
    if (number(i) < 0 || number(i + 1) < 0 || !tokens[i + 2].is(",") ||
        !is_mpi_call(tokens, i + 3)) {
      continue;
    }
    const std::size_t close = closing(tokens, i + 4);
    const std::size_t end = close < tokens.size() ? tokens[close].end() : text.size();
    std::size_t begin = tokens[i + 2].end();
    begin += text.substr(begin).starts_with(' ') ? 1 : 0;
    labels.push_back(
        {number(i), number(i + 1), std::string(text.substr(begin, end - begin)) + ";"});
    i = std::min(close, tokens.size() - 1);
  }
  return labels;
}

Call call_of(const Label& label) {
  const std::vector<Token> tokens = tokens_of(label.statement);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (is_mpi_call(tokens, i)) {
      return call_at(label.statement, tokens, i);
    }
  }
  return {};
}

std::vector<std::string> lines_of(const Record& record) {
  std::vector<std::string> lines = unnumbered(record.code);
  for (std::string& line : lines) {
    while (line.ends_with('\n') || line.ends_with('\r')) {
      line.pop_back();
    }
  }
  return lines;
}

}  // namespace orrery::mpi_calls
