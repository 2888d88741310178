// SPDX-License-Identifier: Apache-2.0
/// Runs other programs.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace orrery {

struct ProcessOptions {
  std::string input{};                     ///< on its standard input
  std::string folder{};                    ///< its working folder; "": this one's
  std::vector<std::string> environment{};  ///< "NAME=value", beside what is there
  Duration limit{20};
  std::size_t most_output = std::size_t{1} << 20;  ///< bytes kept of each of its outputs
  /// Called when the limit has passed, before the first signal.
  std::function<void()> on_limit{};
};

struct ProcessRun {
  int status = 0;        ///< exit status; 128 + signal
  bool stopped = false;  ///< at the limit
  Duration wall{0};
  std::string output;  ///< standard output and standard error, the first most_output of each
  std::string errors;
};

/// Runs a program (looked for in $PATH) to its end. It has a session of its own: at the limit all
/// processes of that session get SIGTERM, and SIGKILL two seconds later, so that none is left.
/// Mistakes: a program that cannot be started.
Result<ProcessRun> run_process(const std::vector<std::string>& command,
                               const ProcessOptions& options);

/// A TemporaryFolder is gone, with what is in it, when it is destroyed.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  bool made() const { return made_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool made_ = false;
};

/// Returns where $PATH has the program; "" where it has not.
std::string find_program(const std::string& name);

}  // namespace orrery
