// SPDX-License-Identifier: Apache-2.0
/// Lists, if, case, loops, groups and functions.
#include <algorithm>

#include "base/split.h"
#include "shell/runner.h"

namespace orrery::shell {
namespace {

constexpr int kMostSteps = 100'000;
constexpr int kMostDepth = 64;  // of statements, functions and texts within each other

/// Counts how deep statements stand within each other.
class Deeper {
 public:
  explicit Deeper(int& depth) : depth_(depth) { ++depth_; }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  int& depth_;
};

}  // namespace

bool Statements::is_word(std::string_view text) const {
  return token() != nullptr && token()->kind == TokenKind::word && token()->text == text;
}
bool Statements::is_sign(std::string_view text) const {
  return token() != nullptr && token()->kind == TokenKind::sign && token()->text == text;
}
bool Statements::take_word(std::string_view text) {
  const bool there = is_word(text);
  at_ += there ? 1 : 0;
  return there;
}
bool Statements::take_sign(std::string_view text) {
  const bool there = is_sign(text);
  at_ += there ? 1 : 0;
  return there;
}
void Statements::newlines() {
  while (take_sign("\n") || take_sign(";")) {
  }
}

void Statements::mistake(const std::string& expected) {
  const int where = token() != nullptr ? line() : tokens_->empty() ? 1 : tokens_->back().line;
  const std::string found = token() == nullptr      ? "the end"
                            : token()->text == "\n" ? "the end of the line"
                                                    : token()->text;
  run_.error.add({run_.file + ":" + std::to_string(where), {}, found, expected});
  at_ = tokens_->size();
}

void Statements::expect(std::string_view word) {
  if (run_.error.empty() && !take_word(word)) {
    mistake("'" + std::string(word) + "'");
  }
}

void Statements::all() {
  list(true, {});
  if (token() != nullptr && run_.error.empty()) {
    mistake("a command");
  }
}

void Statements::body() {
  command(true);
}

Truth Statements::list(bool run, std::initializer_list<std::string_view> ends) {
  Truth last = Truth::yes;
  while (true) {
    while (take_sign("\n") || take_sign(";") || take_sign("&")) {
    }
    const Token* next = token();
    if (next == nullptr || is_sign(")") || is_sign(";;") ||
        std::ranges::any_of(ends, [&](std::string_view end) { return is_word(end); })) {
      return last;
    }
    const std::size_t before = at_;
    last = and_or(run);
    if (at_ == before) {
      return last;
    }
  }
}

Truth Statements::and_or(bool run) {
  Truth status = pipeline(run);
  while (is_sign("&&") || is_sign("||")) {
    const bool wants = token()->text == "&&";
    ++at_;
    newlines();
    const bool next = goes(run) && (wants ? status != Truth::no : status == Truth::no);
    const Truth more = pipeline(next);
    status = next ? more : status;
  }
  return status;
}

Truth Statements::pipeline(bool run) {
  take_word("time");
  const bool turned = take_word("!");
  Truth status = command(run);
  while (take_sign("|") || take_sign("|&")) {
    newlines();
    status = command(run);
  }
  return turned ? negated(status) : status;
}

Truth Statements::command(bool run) {
  const Deeper deeper(run_.depth);
  if (goes(run) && ++run_.steps > kMostSteps) {
    mistake("a script that ends: " + std::to_string(kMostSteps) + " commands were read");
  }
  if (run_.depth > kMostDepth) {
    mistake("at most " + std::to_string(kMostDepth) + " statements within each other");
  }
  const Token* next = token();
  if (next == nullptr) {
    return Truth::unknown;
  }
  if (next->kind == TokenKind::arithmetic) {
    ++at_;
    if (!goes(run)) {
      return Truth::unknown;
    }
    const auto value = arithmetic(run_.scope, quoted_text(run_.scope, next->text, next->line));
    return value ? truth(*value != 0) : Truth::unknown;
  }
  if (take_word("if")) {
    return conditional(run);
  }
  if (is_word("while") || is_word("until")) {
    return loop(run);
  }
  if (take_word("for") || take_word("select")) {
    return for_loop(run);
  }
  if (take_word("case")) {
    return cases(run);
  }
  if (take_word("{")) {
    return group(run, "}");
  }
  if (take_sign("(")) {
    return group(run, ")");
  }
  if (is_word("[[") || is_word("[") || is_word("test")) {
    return brackets(run);
  }
  const bool named = take_word("function");
  const bool parentheses = at_ + 2 < tokens_->size() && (*tokens_)[at_ + 1].text == "(" &&
                           (*tokens_)[at_ + 2].text == ")" && next->kind == TokenKind::word;
  return named || parentheses ? function(run, at_) : simple(run);
}

bool Statements::holds(Truth value, int line) {
  if (value == Truth::unknown) {
    run_.unknowns.push_back(line);
  }
  return value == Truth::yes;
}

Truth Statements::conditional(bool run) {
  int where = line();
  Truth value = list(run, {"then"});
  expect("then");
  bool taken = goes(run) && holds(value, where);
  list(taken, {"elif", "else", "fi"});
  while (is_word("elif")) {
    where = line();
    ++at_;
    const bool asks = goes(run) && !taken;
    value = list(asks, {"then"});
    expect("then");
    const bool now = goes(run) && asks && holds(value, where);
    list(now, {"elif", "else", "fi"});
    taken = taken || now;
  }
  if (take_word("else")) {
    list(goes(run) && !taken, {"fi"});
  }
  expect("fi");
  return Truth::yes;
}

Truth Statements::loop(bool run) {
  const bool until = is_word("until");
  const int where = line();
  const std::size_t begin = ++at_;
  while (run_.error.empty()) {
    at_ = begin;
    const Truth value = list(run, {"do"});
    expect("do");
    const bool on = goes(run) && holds(until ? negated(value) : value, where);
    list(on, {"done"});
    expect("done");
    stop_ = stop_ == Stop::next ? Stop::none : stop_;
    if (!on || stop_ != Stop::none) {
      break;
    }
  }
  stop_ = stop_ == Stop::leave_loop ? Stop::none : stop_;
  return Truth::yes;
}

Truth Statements::for_loop(bool run) {
  if (token() == nullptr) {
    mistake("a name");
    return Truth::unknown;
  }
  const bool counts = token()->kind == TokenKind::arithmetic;  // for ((begin; while; step))
  const std::string name = token()->text;
  const int where = line();
  const auto evaluate = [&](std::size_t part) {
    const auto parts = split_at(std::string_view(name), ';');
    return part < parts.size() ? arithmetic(run_.scope, quoted_text(run_.scope, parts[part], where))
                               : std::nullopt;
  };
  ++at_;
  newlines();
  std::vector<Word> items = run_.scope.arguments;
  if (take_word("in")) {
    items.clear();
    for (; token() != nullptr && token()->kind == TokenKind::word; ++at_) {
      for (Word& word : fields_of(run_.scope, token()->text, token()->line)) {
        items.push_back(std::move(word));
      }
    }
  }
  newlines();
  expect("do");
  const std::size_t begin = at_;
  if (counts && goes(run)) {
    evaluate(0);
  }
  for (std::size_t i = 0; run_.error.empty(); ++i) {
    // A count that nothing tells makes one pass.
    const bool more = counts ? evaluate(1).value_or(i == 0 ? 1 : 0) != 0 : i < items.size();
    const bool passes = goes(run) && more;
    if (!passes && i > 0) {
      break;
    }
    at_ = begin;
    if (passes && !counts) {
      run_.scope.variables[name] = Value{.items = {items[i]}};
    }
    const int steps = run_.steps;
    list(passes, {"done"});
    expect("done");
    stop_ = stop_ == Stop::next ? Stop::none : stop_;
    if (!passes || stop_ != Stop::none || run_.steps == steps) {  // no command would end it
      break;
    }
    if (counts) {
      evaluate(2);
    }
  }
  stop_ = stop_ == Stop::leave_loop ? Stop::none : stop_;
  return Truth::yes;
}

Truth Statements::cases(bool run) {
  const std::string subject =
      token() == nullptr ? "" : without_unset(text_of(run_.scope, token()->text, line()));
  at_ += token() == nullptr ? 0 : 1;
  newlines();
  expect("in");
  bool taken = false;
  newlines();
  while (run_.error.empty() && token() != nullptr && !is_word("esac")) {
    take_sign("(");
    bool matched = false;
    while (token() != nullptr && !is_sign(")")) {
      if (token()->kind == TokenKind::word) {
        matched = matched || matches(text_of(run_.scope, token()->text, line()), subject);
      }
      ++at_;
    }
    take_sign(")");
    const bool now = goes(run) && matched && !taken;
    list(now, {"esac"});
    taken = taken || now;
    take_sign(";;");
    newlines();
  }
  expect("esac");
  return Truth::yes;
}

Truth Statements::group(bool run, std::string_view end) {
  const Truth status = list(run, {"}"});
  if (run_.error.empty() && !take_word(end) && !take_sign(end)) {
    mistake("'" + std::string(end) + "'");
  }
  while (token() != nullptr && token()->kind == TokenKind::sign &&
         token()->text.find_first_of("<>") != std::string::npos) {
    redirection(run);
  }
  return status;
}

Truth Statements::function(bool run, std::size_t name) {
  const std::string text = name < tokens_->size() ? (*tokens_)[name].text : "";
  ++at_;
  take_sign("(");
  take_sign(")");
  newlines();
  const std::size_t begin = at_;
  command(false);
  if (goes(run)) {
    run_.functions[text] = {tokens_, begin};
  }
  return Truth::yes;
}

Truth Statements::brackets(bool run) {
  const std::string open = token()->text;
  const int where = line();
  const std::string close = open == "[[" ? "]]" : open == "[" ? "]" : "";
  std::vector<std::string> words;
  for (++at_; token() != nullptr && !(!close.empty() && is_word(close)); ++at_) {
    const bool ends = token()->kind == TokenKind::sign && open != "[[" && !is_sign("(");
    if (ends && !(is_sign(")") && open == "[")) {
      break;
    }
    if (!is_sign("\n")) {
      words.push_back(token()->kind == TokenKind::word && goes(run)
                          ? text_of(run_.scope, token()->text, line())
                          : token()->text);
    }
  }
  if (!close.empty()) {
    expect(close);
  }
  while (token() != nullptr && token()->kind == TokenKind::sign &&
         token()->text.find_first_of("<>") != std::string::npos) {
    redirection(run);
  }
  if (!goes(run)) {
    return Truth::unknown;
  }
  const Condition condition = condition_of(words, open == "[[");
  if (condition.asks_files) {
    run_.files.push_back(where);
  }
  return condition.truth;
}

}  // namespace orrery::shell
