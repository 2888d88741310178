// SPDX-License-Identifier: Apache-2.0
#include "mpi_calls/c_tokens.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace orrery::mpi_calls {
namespace {

constexpr std::array<std::string_view, 24> kLongMarks{
    "<<=", ">>=", "...", "==", "!=", "<=", ">=", "&&", "||", "++", "--", "+=",
    "-=",  "*=",  "/=",  "%=", "&=", "|=", "^=", "->", "<<", ">>", "##", "::"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

class Lexer {
 public:
  explicit Lexer(std::string_view program) : program_(program) {}

  std::vector<Token> run() {
    while (at_ < program_.size()) {
      const char c = program_[at_];
      if (c == '\n') {
        ++line_;
        ++at_;
        line_begins_ = true;
      } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        ++at_;
      } else if (c == '#' && line_begins_) {
        skip_directive();
      } else if (!skip_comment()) {
        take(c);
        line_begins_ = false;
      }
    }
    return std::move(tokens_);
  }

 private:
  bool starts(std::string_view word) const { return program_.substr(at_).starts_with(word); }

  void count_lines(std::size_t end) {
    line_ += static_cast<std::size_t>(
        std::count(program_.begin() + static_cast<std::ptrdiff_t>(at_),
                   program_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end;
  }

  /// Skips a directive up to the end of its line, and of those that a backslash joins to it.
  void skip_directive() {
    std::size_t end = program_.find('\n', at_);
    while (end != std::string_view::npos && end > 0 && program_[end - 1] == '\\') {
      end = program_.find('\n', end + 1);
    }
    count_lines(std::min(end, program_.size()));
  }

  bool skip_comment() {
    if (starts("//")) {
      count_lines(std::min(program_.find('\n', at_), program_.size()));
      return true;
    }
    if (starts("/*")) {
      const std::size_t end = program_.find("*/", at_ + 2);
      count_lines(end == std::string_view::npos ? program_.size() : end + 2);
      return true;
    }
    return false;
  }

  void take(char c) {
    Token token{.begin = at_, .line = line_};
    std::size_t end = at_ + 1;
    if (c == '"' || c == '\'') {
      token.kind = Token::Kind::text;
      while (end < program_.size() && program_[end] != c && program_[end] != '\n') {
        end += program_[end] == '\\' ? 2 : 1;
      }
      end = std::min(end, program_.size());
      end += end < program_.size() && program_[end] == c ? 1 : 0;
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      token.kind = Token::Kind::number;
      while (end < program_.size() &&
             (is_word(program_[end]) || program_[end] == '.' ||
              ((program_[end] == '-' || program_[end] == '+') &&
               std::tolower(static_cast<unsigned char>(program_[end - 1])) == 'e'))) {
        ++end;
      }
    } else if (is_word(c)) {
      token.kind = Token::Kind::identifier;
      while (end < program_.size() && is_word(program_[end])) {
        ++end;
      }
    } else {
      const auto* const mark =
          std::ranges::find_if(kLongMarks, [&](std::string_view word) { return starts(word); });
      end = mark == kLongMarks.end() ? end : at_ + mark->size();
    }
    token.text = program_.substr(at_, end - at_);
    tokens_.push_back(token);
    count_lines(end);
  }

  std::string_view program_;
  std::size_t at_ = 0;
  std::size_t line_ = 0;
  bool line_begins_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view program) {
  return Lexer(program).run();
}

std::size_t closing(const std::vector<Token>& tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    if (tokens[i].is("(") || tokens[i].is("[") || tokens[i].is("{")) {
      ++depth;
    } else if (tokens[i].is(")") || tokens[i].is("]") || tokens[i].is("}")) {
      if (--depth == 0) {
        return i;
      }
    }
  }
  return tokens.size();
}

bool is_mpi_call(const std::vector<Token>& tokens, std::size_t i) {
  return i + 1 < tokens.size() && tokens[i].kind == Token::Kind::identifier &&
         tokens[i].text.starts_with("MPI_") && tokens[i + 1].is("(");
}

Call call_at(std::string_view program, const std::vector<Token>& tokens, std::size_t i) {
  Call call{std::string(tokens[i].text), {}};
  const std::size_t end = closing(tokens, i + 1);
  const std::size_t stop = end < tokens.size() ? tokens[end].begin : program.size();
  std::size_t begin = tokens[i + 1].end();
  for (std::size_t k = i + 2; k < end; ++k) {
    if (tokens[k].is("(") || tokens[k].is("[") || tokens[k].is("{")) {
      k = std::min(closing(tokens, k), end);
    } else if (tokens[k].is(",")) {
      call.arguments.push_back(on_one_line(program.substr(begin, tokens[k].begin - begin)));
      begin = tokens[k].end();
    }
  }
  const std::string last = on_one_line(program.substr(begin, stop - begin));
  if (!last.empty() || !call.arguments.empty()) {
    call.arguments.push_back(last);
  }
  return call;
}

std::string on_one_line(std::string_view text) {
  std::string line;
  bool blank = false;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      blank = !line.empty();
      continue;
    }
    if (blank) {
      line += ' ';
      blank = false;
    }
    line += c;
  }
  return line;
}

}  // namespace orrery::mpi_calls
