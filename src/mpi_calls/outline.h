// SPDX-License-Identifier: Apache-2.0
/// An Outline is what completers know of a program without calls: its tokens, identifiers and their
/// roles. Private to mpi_calls.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mpi_calls/c_tokens.h"
#include "mpi_calls/record.h"

namespace orrery::mpi_calls {

/// Returns whether a variable of that name usually holds a rank, or the number of ranks.
bool is_rank_name(std::string_view name);
bool is_size_name(std::string_view name);

/// Main's body.
struct MainOutline {
  std::size_t open = 0;       ///< the token of its brace
  std::size_t close = 0;      ///< and of the one that ends it
  std::int64_t declared = 0;  ///< last line of its declarations, from 1
  std::int64_t finish = 0;    ///< the line before its last return, or its end
  bool arguments = false;     ///< it has argc and argv
};

class Outline {
 public:
  explicit Outline(const Record& record);
  Outline(const Outline&) = delete;
  Outline& operator=(const Outline&) = delete;

  const std::vector<std::string>& lines() const { return lines_; }
  const std::string& code() const { return code_; }
  const std::vector<Token>& tokens() const { return tokens_; }
  const std::optional<MainOutline>& main() const { return main_; }
  /// Returns what an identifier is: "rank", "size", or its declared type with "*" for pointers and
  /// arrays ("int", "double*", "MPI_Status"); "" of what is not declared here.
  std::string role_of(std::string_view identifier) const;
  /// Returns the declared variables in the order of their declarations.
  const std::vector<std::string>& variables() const { return variables_; }
  /// Returns the first token of line `line` (from 1) or of one behind it.
  std::size_t first_token_of(std::int64_t line) const;

 private:
  void declare();
  std::size_t declare_from(std::size_t i);
  void find_main();

  std::vector<std::string> lines_;
  std::string code_;
  std::vector<Token> tokens_;
  std::map<std::string, std::string, std::less<>> types_;
  std::vector<std::string> variables_;
  std::optional<MainOutline> main_;
};

}  // namespace orrery::mpi_calls
