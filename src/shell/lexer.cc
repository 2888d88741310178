// SPDX-License-Identifier: Apache-2.0
#include "shell/lexer.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace orrery::shell {
namespace {

constexpr int kMostNesting = 64;  // of brackets and quotes within each other

constexpr std::array<std::string_view, 19> kSigns{"&>>", "<<<", "<<-", "&&", "||", "|&", ";;",
                                                  "<<",  ">>",  ">&",  "<&", "&>", ">|", ";",
                                                  "&",   "|",   "(",   ")",  "\n"};

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

/// Returns the length of "<PATH TO CHECKPOINTS>", what a published script leaves to its reader; 0
/// where `<` redirects. A placeholder has no blank before its `>` and no word behind it.
std::size_t placeholder_size(std::string_view rest) {
  const std::size_t end = rest.find_first_of("<>|&;$\"'`\\\n", 1);
  const bool named = rest.size() > 1 && std::isalpha(static_cast<unsigned char>(rest[1])) != 0;
  if (!named || end == rest.npos || rest[end] != '>' || is_blank(rest[end - 1])) {
    return 0;
  }
  const char next = end + 1 < rest.size() ? rest[end + 1] : '\n';
  const bool alone = is_blank(next) || next == '\n' || next == '\\' || next == ')';
  return alone ? end + 1 : 0;
}

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& file, int line)
      : text_(text), file_(file), line_(line) {}

  Result<std::vector<Token>> run() {
    while (at_ < text_.size() && error_.empty()) {
      step();
    }
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    return std::move(tokens_);
  }

 private:
  void step() {
    const std::string_view rest = text_.substr(at_);
    if (is_blank(rest[0])) {
      ++at_;
    } else if (rest.starts_with("\\\n") || rest.starts_with("\\\r\n")) {
      at_ += rest[1] == '\n' ? 2 : 3;
      ++line_;
    } else if (rest[0] == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (rest.starts_with("((")) {
      arithmetic();
    } else if (rest[0] == '<' && placeholder_size(rest) > 0) {
      const std::size_t size = placeholder_size(rest);
      tokens_.push_back({TokenKind::word, "'" + std::string(rest.substr(0, size)) + "'", line_});
      at_ += size;
    } else if (std::string_view("<>&|;()\n").find(rest[0]) != std::string_view::npos) {
      sign(rest);
    } else {
      word();
    }
  }

  void arithmetic() {
    const std::size_t end = after_bracket(text_, at_);
    const std::string_view whole = text_.substr(at_, end == text_.npos ? 0 : end - at_);
    if (!whole.ends_with("))")) {  // a subshell in a subshell
      tokens_.push_back({TokenKind::sign, "(", line_});
      ++at_;
      return;
    }
    tokens_.push_back(
        {TokenKind::arithmetic, std::string(whole.substr(2, whole.size() - 4)), line_});
    line_ += static_cast<int>(std::count(whole.begin(), whole.end(), '\n'));
    at_ = end;
  }

  void sign(std::string_view rest) {
    const auto* const known =
        std::ranges::find_if(kSigns, [&](std::string_view s) { return rest.starts_with(s); });
    const std::string_view text = known == kSigns.end() ? rest.substr(0, 1) : *known;
    tokens_.push_back({TokenKind::sign, std::string(text), line_});
    at_ += text.size();
    if (text == "<<" || text == "<<-") {
      waiting_.push_back(tokens_.size() - 1);
    } else if (text == "\n") {
      ++line_;
      documents();
    }
  }

  /// The lines of the here-documents whose operators the line before had.
  void documents() {
    for (const std::size_t sign : waiting_) {
      std::string end = sign + 1 < tokens_.size() ? tokens_[sign + 1].text : "";
      std::erase_if(end, [](char c) { return c == '\'' || c == '"' || c == '\\'; });
      const bool indented = tokens_[sign].text == "<<-";
      while (at_ < text_.size()) {
        const std::size_t stop = std::min(text_.find('\n', at_), text_.size());
        std::string_view line = text_.substr(at_, stop - at_);
        at_ = std::min(stop + 1, text_.size());
        ++line_;
        while (indented && line.starts_with('\t')) {
          line.remove_prefix(1);
        }
        if (line == end) {
          break;
        }
        tokens_[sign].document += std::string(line) + "\n";
      }
    }
    waiting_.clear();
  }

  void word() {
    const std::size_t begin = at_;
    const int line = line_;
    while (at_ < text_.size() && error_.empty() && part(begin)) {
    }
    std::string text(text_.substr(begin, at_ - begin));
    const bool is_number = !text.empty() && std::ranges::all_of(text, [](char c) {
      return std::isdigit(static_cast<unsigned char>(c)) != 0;
    });
    const bool redirects = at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>');
    if (!(is_number && redirects)) {  // 2>&1: the number is the operator's
      tokens_.push_back({TokenKind::word, std::move(text), line});
    }
  }

  /// Takes a piece of the word that began at `begin`; false at its end.
  bool part(std::size_t begin) {
    const char c = text_[at_];
    if (c == '\'' || c == '"' || c == '`') {
      return take(after_quote(text_, at_), c);
    }
    if (c == '$' && at_ + 1 < text_.size() && (text_[at_ + 1] == '(' || text_[at_ + 1] == '{')) {
      return take(after_bracket(text_, at_ + 1), text_[at_ + 1]);
    }
    const std::string_view before = text_.substr(begin, at_ - begin);
    if (c == '(' && !before.empty() &&
        (before.back() == '=' || std::string_view("@?*+!").find(before.back()) != before.npos)) {
      return take(after_bracket(text_, at_), c);  // an array, or an extended pattern
    }
    if (c == '\\' && at_ + 1 < text_.size()) {
      return take(at_ + 2, c);
    }
    if (is_blank(c) || std::string_view("<>&|;()\n").find(c) != std::string_view::npos) {
      return false;
    }
    ++at_;
    return true;
  }

  bool take(std::size_t end, char open) {
    if (end == text_.npos) {
      error_.add({file_ + ":" + std::to_string(line_),
                  {},
                  std::string(1, open),
                  open == '(' || open == '{' ? "its closing bracket" : "a closing quote"});
      at_ = text_.size();
      return false;
    }
    const std::string_view taken = text_.substr(at_, end - at_);
    line_ += static_cast<int>(std::count(taken.begin(), taken.end(), '\n'));
    at_ = std::min(end, text_.size());
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  int line_;
  std::size_t at_ = 0;
  std::vector<Token> tokens_;
  std::vector<std::size_t> waiting_;  ///< operators << whose lines have not come
  Error error_;
};

}  // namespace

std::size_t after_quote(std::string_view text, std::size_t at, int depth) {
  if (depth > kMostNesting) {
    return text.npos;
  }
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == quote) {
      return i + 1;
    }
    if (quote == '\'') {
      continue;
    }
    if (text[i] == '\\') {
      ++i;
    } else if (quote == '"' && text[i] == '$' && i + 1 < text.size() &&
               (text[i + 1] == '(' || text[i + 1] == '{')) {
      const std::size_t end = after_bracket(text, i + 1, depth + 1);
      if (end == text.npos) {
        return text.npos;
      }
      i = end - 1;
    }
  }
  return text.npos;
}

std::size_t after_bracket(std::string_view text, std::size_t at, int depth) {
  const char open = text[at];
  const char close = open == '(' ? ')' : '}';
  int open_brackets = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\') {
      ++i;
    } else if (c == '\'' || c == '"' || c == '`') {
      const std::size_t end = after_quote(text, i, depth + 1);
      if (end == text.npos) {
        return text.npos;
      }
      i = end - 1;
    } else if (c == '#' && open == '(' && i > 0 && std::isspace(text[i - 1]) != 0) {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == open) {
      if (++open_brackets > kMostNesting) {
        return text.npos;
      }
    } else if (c == close && --open_brackets == 0) {
      return i + 1;
    }
  }
  return text.npos;
}

Result<std::vector<Token>> tokens_of(std::string_view text, const std::string& file,
                                     int first_line) {
  return Lexer(text, file, first_line).run();
}

}  // namespace orrery::shell
