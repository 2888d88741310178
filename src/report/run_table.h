// SPDX-License-Identifier: Apache-2.0
/// RunTable writes what the table of every run has: a training step's (table.cc) and that of a run
/// from no plan.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "report/lines.h"
#include "report/report.h"

namespace orrery::report {

inline constexpr std::size_t kListed = 16;  ///< more stages or ranks are shown by some of them

std::string grouped(std::int64_t number);  ///< 1536 -> "1,536"
std::string scaled(double number);         ///< "8.31 M": 3 significant digits, a decimal prefix
std::string gib(Bytes bytes);              ///< in GiB with 2 decimals; "-" for none

class RunTable : protected Lines {
 public:
  explicit RunTable(const study::WorkloadRun& run) : run_(run) {}

  std::string write(const TableOptions& options);

 protected:
  void machine();
  void step_time();
  /// Lists the steps of a run of several: when each ended, and what it took.
  void steps();
  void breakdown();
  void hidden();
  void peaks();
  void simulator(const TableOptions& options);
  std::string take() { return std::move(text_); }

 private:
  /// Returns the width of the longest name that is printed.
  int name_width() const;

  const study::WorkloadRun& run_;
};

}  // namespace orrery::report
