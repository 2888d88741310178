// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery::cli {

/// Runs the command that the arguments name. Exit status: 0 success; 2 the input was wrong, every
/// mistake on standard error and nothing on standard output. Exceptions are the caller's.
int run_command_line(int argc, const char* const* argv);

}  // namespace orrery::cli
