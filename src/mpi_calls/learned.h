// SPDX-License-Identifier: Apache-2.0
/// A completer that learns from a folder of programs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "mpi_calls/record.h"
#include "mpi_calls/score.h"

namespace orrery::mpi_calls {

class GapMemory;

/// A Model is what training leaves: the programs, and when a gap is near enough to one of theirs.
struct Model {
  std::vector<Record> programs;
  double threshold = 0.5;
};

/// Completes programs from those of a model.
///
/// A gap is what lies behind a line of code. It is described by the n-grams (n = 1 to 3) of the
/// tokens of two lines before and two behind it, and of the conditions of the blocks around it,
/// identifiers replaced by their roles (a rank, a number of ranks, the declared type). The gap of
/// the model's programs that is most like it by cosine, each n-gram weighted by log(gaps / gaps
/// that have it), says which calls stand there, if the likeness reaches the threshold. Arguments
/// are that gap's, their identifiers replaced by those of the program: of the same role, the
/// nearest before the gap, else behind it.
///
/// MPI_Init, MPI_Finalize, MPI_Comm_rank and MPI_Comm_size come from the rules (rules.h): the model
/// adds all others. No model of language: what no program of the folder does is not found.
class Completer {
 public:
  explicit Completer(const Model& model);
  ~Completer();
  Completer(const Completer&) = delete;
  Completer& operator=(const Completer&) = delete;

  std::vector<Label> complete(const Record& record) const;

 private:
  std::unique_ptr<GapMemory> memory_;
  double threshold_;
};

struct Training {
  Model model;
  /// Predictions for each program from the others, at the threshold that is best for the others.
  std::vector<Record> left_out;
};

/// Takes the threshold, out of twenty between 0 and 1, whose predictions for each program from the
/// others have the highest F1 on sends, receives and collectives together. Requires programs.
Training train_model(std::vector<Record> programs);

/// Returns what the rules alone say of each.
std::vector<Record> predict_by_rules(const std::vector<Record>& programs);

/// Reads what report::model_json writes.
Result<Model> load_model(const std::string& path);

}  // namespace orrery::mpi_calls
