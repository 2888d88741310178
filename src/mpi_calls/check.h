// SPDX-License-Identifier: Apache-2.0
/// Says whether a program with MPI calls compiles and runs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "base/process.h"
#include "base/result.h"
#include "base/units.h"

namespace orrery::mpi_calls {

/// An MPI as Debian installs it beside others.
struct MpiLibrary {
  std::string_view name;
  std::string_view compiler;
  std::string_view launcher;
  std::string_view package;
};
inline constexpr std::array kMpiLibraries{
    MpiLibrary{"openmpi", "mpicc.openmpi", "mpirun.openmpi", "libopenmpi-dev openmpi-bin"},
    MpiLibrary{"mpich", "mpicc.mpich", "mpirun.mpich", "libmpich-dev mpich"},
};

enum class CheckResult : std::uint8_t { passed, failed, hung, not_compiled, no_library };
constexpr auto named_values(CheckResult) {
  return std::to_array<Named<CheckResult>>({
      {CheckResult::passed, "passed", "ended with status 0"},
      {CheckResult::failed, "failed", "ended with another status"},
      {CheckResult::hung, "hung", "did not end in time and was killed"},
      {CheckResult::not_compiled, "not_compiled", "the compiler refused it"},
      {CheckResult::no_library, "no_library", "this MPI is not installed"},
  });
}

/// Says where a rank was when the program was killed.
struct Whereabouts {
  std::int64_t rank = 0;
  std::string function;  ///< the last MPI call that it entered; "": none
  std::int64_t line = 0;
  bool inside = false;  ///< it had not returned from it
};

struct CheckRow {
  std::string library;
  std::int64_t ranks = 0;
  CheckResult result = CheckResult::passed;
  int status = 0;
  Duration wall{0};
  std::string output{};  ///< what it printed, or what the compiler or the shell said
  std::vector<Whereabouts> whereabouts{};  ///< of what hung
};

struct CheckOptions {
  std::vector<std::string> libraries;  ///< names of kMpiLibraries; empty: all
  std::vector<std::int64_t> ranks{2, 4};
  Duration limit{20};
};

/// Compiles the program with each library (-O1 -lm) and runs it on each number of ranks, all on
/// this host, in a folder that is gone afterwards. What does not end within the limit is killed
/// with all its processes. Every call of MPI that returns an int and is no macro's is compiled with
/// a note of its line and rank before and after it, in a shared file of the folder, so that a
/// program that hangs says where; lines of messages are those of the program.
/// Mistakes: a folder that cannot be made; unknown libraries.
Result<std::vector<CheckRow>> check_program(const std::string& program,
                                            const CheckOptions& options);

/// Runs a program and its arguments on that many ranks of this host, more than it has cores if need
/// be. Mistakes: a launcher that cannot be started.
Result<ProcessRun> run_ranks(const MpiLibrary& library, std::int64_t ranks,
                             const std::vector<std::string>& program, ProcessOptions options);

/// Returns the program with those notes.
std::string with_notes(const std::string& program, const std::string& name);

}  // namespace orrery::mpi_calls
