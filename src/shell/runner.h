// SPDX-License-Identifier: Apache-2.0
/// Walks the statements of a script. Internal to this folder.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "shell/condition.h"
#include "shell/expand.h"
#include "shell/lexer.h"

namespace orrery::shell {

/// Run is what all texts of a script share: the script itself, its functions, what eval and
/// `bash -c` read.
struct Run {
  struct Function {
    std::shared_ptr<const std::vector<Token>> tokens;
    std::size_t body = 0;
  };

  Scope scope;
  std::map<std::string, Function, std::less<>> functions;
  Script script;
  Error error;
  std::string file;
  std::string left_at;        ///< file:line of the exit that was taken
  std::vector<int> files;     ///< lines that test files
  std::vector<int> unknowns;  ///< lines whose conditions depend on commands
  int steps = 0;
  int depth = 0;  ///< of statements within each other
  int texts = 0;  ///< of texts that eval and `bash -c` read within each other
};

/// Runs the statements of a text, which begins at `line` of the file.
void run_text(Run& run, std::string_view text, int line);

/// Statements of a list of tokens: lists, if, case, loops, functions.
class Statements {
 public:
  enum class Stop : std::uint8_t { none, next, leave_loop, leave_function, leave };

  Statements(Run& run, std::shared_ptr<const std::vector<Token>> tokens, std::size_t at = 0)
      : run_(run), tokens_(std::move(tokens)), at_(at) {}

  /// Runs to the end of the text.
  void all();
  /// Runs the statement at the place where this began: the body of a function.
  void body();

 private:
  const Token* token() const { return at_ < tokens_->size() ? &(*tokens_)[at_] : nullptr; }
  bool is_word(std::string_view text) const;
  bool is_sign(std::string_view text) const;
  bool take_word(std::string_view text);
  bool take_sign(std::string_view text);
  void expect(std::string_view word);
  void newlines();
  int line() const { return token() != nullptr ? token()->line : 0; }
  void mistake(const std::string& expected);
  bool goes(bool run) const { return run && stop_ == Stop::none && run_.error.empty(); }

  Truth list(bool run, std::initializer_list<std::string_view> ends);
  Truth and_or(bool run);
  Truth pipeline(bool run);
  Truth command(bool run);
  Truth conditional(bool run);
  Truth loop(bool run);
  Truth for_loop(bool run);
  Truth cases(bool run);
  Truth group(bool run, std::string_view end);
  Truth function(bool run, std::size_t name);
  Truth brackets(bool run);
  Truth simple(bool run);
  bool holds(Truth truth, int line);

  void redirection(bool run);
  bool assignment(bool run, const Token& token);
  Truth builtin(std::vector<Word> words, const std::vector<Token>& raw);
  Truth call(const std::string& name, std::vector<Word> words);
  void declare(const std::vector<Word>& words, const std::vector<Token>& raw);
  void record(std::vector<Word> words);

  Run& run_;
  std::shared_ptr<const std::vector<Token>> tokens_;
  std::size_t at_;
  Stop stop_ = Stop::none;
  std::string document_;  ///< the here-document of the command that is read
};

}  // namespace orrery::shell
