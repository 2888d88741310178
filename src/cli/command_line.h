// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace orrery::cli {

/// An Answer is what a command prints, and its exit status where it has a text: not 0 where the
/// text says that there is none to give.
struct Answer {
  std::string text{};
  int status = 0;
  Error late{};  ///< side outputs that could not be written: the status is then 1
};

/// Returns what the command prints that `arguments` name ("simulate", "--model", ...). Nothing is
/// written to standard output; notes and remarks on long work go to standard error. Option names
/// may have underscores. Mistakes: all of the input. Exceptions are the caller's.
Result<Answer> answer(std::vector<std::string> arguments);

/// DeclaredOption is one option of a command as its help text has it.
struct DeclaredOption {
  std::string name{};      ///< "global_batch"; of words without a dash "kind", in their order
  std::string kind{};      ///< "INT", "NAME|FILE", "{a,b}", "[BOOL]"; "" of a flag
  std::string sentence{};  ///< what it is, and its default
  std::string group{};     ///< heading in the help text; "" of the command's own options
  bool positional = false;
  bool flag = false;      ///< takes no value
  bool repeated = false;  ///< may be given many times
  bool output = false;    ///< names a file that is written
};

/// Returns the options of a command, in the order of its help text, without --help. Empty: there is
/// no such command.
std::vector<DeclaredOption> declared_options(const std::string& command);

/// Returns the arguments of a command from names and texts, "--name=text" for each: a text is never
/// taken for an option. A flag is there when its text is "true". Mistakes: names that the command
/// does not have are left to answer(); words that begin with a dash.
struct NamedText {
  std::string name;
  std::string text;
};
Result<std::vector<std::string>> arguments_of(const std::string& command,
                                              const std::vector<NamedText>& given);

/// Runs the command that the arguments name. Exit status: 0 success; 2 the input was wrong, every
/// mistake on standard error and nothing on standard output. Exceptions are the caller's.
int run_command_line(int argc, const char* const* argv);

}  // namespace orrery::cli
