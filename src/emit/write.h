// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "emit/program.h"

namespace orrery::emit {

struct File {
  std::string name;
  std::string text;
};

/// A Description is for the texts around a program.
struct Description {
  std::string title;    ///< "gpt2, tp 2, pp 2", one line
  std::string command;  ///< that emitted it
  std::string machine;  ///< whose simulated times give the order
  std::string order;    ///< simulated_order()
};

/// Returns the files of a folder that builds and runs by itself: plan.cc (the tables), main.cc,
/// trace.cc, headers, order.txt, listing.c (listing.h), CMakeLists.txt with a test, a job script of
/// Slurm, README.
std::vector<File> files_of(const Program& program, const Description& description);

/// Writes them into the folder, which is made; files of the same names are replaced.
Result<void> write_files(const std::vector<File>& files, const std::string& folder);

}  // namespace orrery::emit
