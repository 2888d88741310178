// SPDX-License-Identifier: Apache-2.0
/// The gaps of many programs, and which of them is most like another. Private to mpi_calls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "mpi_calls/gap.h"
#include "mpi_calls/record.h"

namespace orrery::mpi_calls {

/// Labels that the most alike gap proposes for a gap of a program, with the program's identifiers.
struct Proposal {
  double likeness = 0;
  std::vector<Label> labels;
};

class GapMemory {
 public:
  explicit GapMemory(const std::vector<Record>& programs);

  /// Returns proposals for every gap that has some. `left_out`: a program that proposes nothing, or
  /// kNone.
  std::vector<Proposal> propose(const Record& record, std::size_t left_out) const;

  static constexpr std::size_t kNone = SIZE_MAX;

 private:
  double weight_of(std::uint64_t feature) const;
  double length_of(const Features& features) const;
  std::pair<std::size_t, double> nearest_of(const Features& features, std::size_t left_out) const;

  std::vector<std::unique_ptr<Outline>> outlines_;
  std::vector<Gap> gaps_;
  std::vector<double> lengths_;  ///< of each gap's features
  std::map<std::uint64_t, std::vector<std::size_t>> owners_;
};

/// Returns `labels`, which the rules say, and what is proposed with at least that likeness, in the
/// order of lines.
std::vector<Label> assemble(std::vector<Label> labels, const std::vector<Proposal>& proposals,
                            double threshold);

}  // namespace orrery::mpi_calls
