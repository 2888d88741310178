// SPDX-License-Identifier: Apache-2.0
/// Says how near predicted MPI calls are to those of the program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "mpi_calls/record.h"

namespace orrery::mpi_calls {

enum class ScoreMode : std::uint8_t { strict, mpirigen };
constexpr auto named_values(ScoreMode) {
  return std::to_array<Named<ScoreMode>>({
      {ScoreMode::strict, "strict", "one to one: each prediction answers one call"},
      {ScoreMode::mpirigen, "mpirigen", "as MPIrigen's own evaluator counts"},
  });
}

struct ScoreOptions {
  ScoreMode mode = ScoreMode::strict;
  std::int64_t tolerance = 2;  ///< lines
  std::int64_t calls = 0;      ///< only programs with at most so many calls; 0: all
  bool common_core = false;    ///< only Init, Finalize, Comm_rank, Comm_size, Send, Recv, Reduce,
                               ///< Bcast
};

/// Calls of one sort over all programs: matched ones have a prediction of their name near enough.
struct Tally {
  std::string name;  ///< "MPI_Send"; or sends, receives, collectives, all
  std::int64_t truth = 0;
  std::int64_t predicted = 0;
  std::int64_t matched = 0;

  double precision() const;  ///< matched / predicted; 1 without predictions and calls
  double recall() const;     ///< matched / truth, likewise
  double f1() const;
};

/// Means over programs of
///
///   location   calls with a prediction within the tolerance / calls
///   function   of those, the share with the same name
///   args       of those with the same name, the mean share of arguments that are equal one by one
///
/// and over all programs together precision, recall and F1 of located calls of the right name.
/// A program of which a share is 0 / 0 does not count in that mean.
///
/// strict: predictions and calls are matched one to one. First those of one name in the order of
/// the program, then the others by location; distances are of lines, and with tolerance 0 a
/// statement answers only a statement, an expression an expression. Arguments beyond the shorter
/// list differ.
///
/// mpirigen: several calls may be answered by one prediction; of calls at one place the last
/// counts; a place is the decimal LINE.SUB, so that 11 10 is 11 1; a prediction also answers its
/// own line's places up to tolerance / 10 away; arguments are cut at every comma and not trimmed;
/// with common_core location is still over all calls.
/// Source: Schneider et al., arXiv 2402.09126, and the published evaluator.
struct Score {
  std::int64_t programs = 0;
  double location = 0;
  double function = 0;
  double args = 0;
  double precision = 0;
  double recall = 0;
  double f1 = 0;
  std::vector<Tally> groups{};     ///< sends, receives, collectives, other
  std::vector<Tally> functions{};  ///< by name
};

/// Records are paired by `program` where all names of both sides differ and are the same, else by
/// order. Mistakes: numbers of records that differ, programs without a pair.
Result<Score> score_records(const std::vector<Record>& truth, const std::vector<Record>& predicted,
                            const ScoreOptions& options);

/// "sends", "receives", "collectives" or "other".
std::string group_of(const std::string& function);

}  // namespace orrery::mpi_calls
