// SPDX-License-Identifier: Apache-2.0
/// The commands of a launch script, as a shell would expand them; nothing is run.
///
///   read     quotes, `\` lines, comments, here-documents; $X, ${X:-d} and the other forms of
///            parameters, arrays, $(( )), ${#X}, ${X%p}; [ ], [[ ]], (( )); &&, ||, if, case, for,
///            while, functions, eval and `bash -c`; #SBATCH lines, which set SLURM's variables
///   unknown  what a command prints. A condition on it is false, a file that is tested is there;
///            both are remarks. A variable that nothing sets stands in the words as `$NAME`, which
///            readers of flags drop beside a switch and refuse as a value.
///
/// Source: POSIX.1-2017, Shell Command Language; bash's manual, 3.5, for arrays and [[ ]].
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace orrery::shell {

struct Word {
  std::string text;
  int line = 0;  ///< from 1

  friend bool operator==(const Word&, const Word&) = default;
};

using Command = std::vector<Word>;

struct Script {
  std::vector<Command> commands;  ///< without assignments, redirections and builtins
  std::vector<std::string> remarks;
  std::map<std::string, std::string> documents;  ///< here-documents by the file they are written to
  /// NPROC_PER_NODE, NNODES and SLURM_NTASKS, where they are set.
  std::map<std::string, std::string> processes;
};

/// Reads a script. `given`: NAME=value is a variable's value whatever the script sets it to; other
/// words are $1, $2 ... Mistakes, each with file:line: open quotes and braces; words of grammar
/// without their end; a script that leaves by `exit` before it runs a command *.py or `megatron`;
/// more than 100,000 steps.
Result<Script> read_script(std::string_view text, const std::string& file,
                           const std::vector<std::string>& given = {});

/// Says whether the shell could not know the word: `$NAME` or `$(command...)`.
bool unresolved(std::string_view word);

}  // namespace orrery::shell
