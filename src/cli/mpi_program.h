// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/process.h"
#include "base/result.h"
#include "emit/program.h"
#include "emit/write.h"
#include "mpi_calls/check.h"

namespace orrery::cli {

/// Returns the library that --mpi names, else the first whose mpicxx and launcher are found; null
/// with a mistake where there is none.
const mpi_calls::MpiLibrary* find_mpi(const std::optional<std::string>& name, Error& mistakes);

/// An MpiProgram is an emitted program that is compiled and run here.
class MpiProgram {
 public:
  /// Writes the program into `folder` (empty: a temporary one) and compiles it, optimised for this
  /// processor and with OpenBLAS where it is installed. Mistakes: of the folder; what the compiler
  /// says.
  Result<void> make(const emit::Program& program, const emit::Description& description,
                    const mpi_calls::MpiLibrary& library, const std::string& folder);

  bool blas() const { return blas_; }

  /// Runs it on its ranks, OpenBLAS on one thread each, and returns what it prints. Mistakes: an
  /// exit status other than 0, more time than the limit, each with what it has printed.
  Result<std::string> run(const std::vector<std::string>& flags, Duration limit) const;

  /// Returns the rows of emit/runtime/measure.h, medians of `repeat`.
  Result<CsvTable> measure(std::int64_t repeat, Duration limit) const;

 private:
  const mpi_calls::MpiLibrary* library_ = nullptr;
  std::optional<TemporaryFolder> temporary_;
  std::string folder_;
  std::int64_t ranks_ = 1;
  bool blas_ = false;
};

}  // namespace orrery::cli
