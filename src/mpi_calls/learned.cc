// SPDX-License-Identifier: Apache-2.0
#include "mpi_calls/learned.h"

#include <algorithm>
#include <cassert>

#include "base/config_node.h"
#include "base/reader.h"
#include "mpi_calls/gap_memory.h"
#include "mpi_calls/rules.h"

namespace orrery::mpi_calls {

Completer::Completer(const Model& model)
    : memory_(std::make_unique<GapMemory>(model.programs)), threshold_(model.threshold) {}
Completer::~Completer() = default;

std::vector<Label> Completer::complete(const Record& record) const {
  return assemble(complete_by_rules(record), memory_->propose(record, GapMemory::kNone),
                  threshold_);
}

namespace {

constexpr int kThresholds = 20;

/// Sends, receives and collectives of one program, matched strictly.
Tally messages_of(const Record& truth, const Record& predicted) {
  Tally all{"messages"};
  const auto score = score_records({truth}, {predicted}, {});
  assert(score && "a program and its own prediction are a pair");
  for (const Tally& group : score->groups) {
    if (group.name != "other") {
      all.truth += group.truth;
      all.predicted += group.predicted;
      all.matched += group.matched;
    }
  }
  return all;
}

/// Each program from the others, at one threshold.
struct Trial {
  double threshold = 0;
  std::vector<Record> predictions;
  std::vector<Tally> tallies;  ///< by program
};

std::vector<Trial> trials_of(const std::vector<Record>& programs) {
  const GapMemory memory(programs);
  std::vector<std::vector<Proposal>> proposals;
  std::vector<std::vector<Label>> by_rules;
  for (std::size_t k = 0; k < programs.size(); ++k) {
    proposals.push_back(memory.propose(programs[k], k));
    by_rules.push_back(complete_by_rules(programs[k]));
  }
  std::vector<Trial> trials;
  for (int i = 0; i < kThresholds; ++i) {
    Trial trial{static_cast<double>(i) / kThresholds, {}, {}};
    for (std::size_t k = 0; k < programs.size(); ++k) {
      trial.predictions.push_back(
          {programs[k].program,
           programs[k].code,
           labels_text(assemble(by_rules[k], proposals[k], trial.threshold)),
           {}});
      trial.tallies.push_back(messages_of(programs[k], trial.predictions.back()));
    }
    trials.push_back(std::move(trial));
  }
  return trials;
}

/// Returns the trial with the highest F1 over all programs but one, the first of equals.
const Trial& best_without(const std::vector<Trial>& trials, std::size_t left_out) {
  const auto f1_of = [&](const Trial& trial) {
    Tally all{"messages"};
    for (std::size_t k = 0; k < trial.tallies.size(); ++k) {
      if (k != left_out) {
        all.truth += trial.tallies[k].truth;
        all.predicted += trial.tallies[k].predicted;
        all.matched += trial.tallies[k].matched;
      }
    }
    return all.f1();
  };
  return *std::ranges::max_element(trials, {}, f1_of);
}

}  // namespace

Training train_model(std::vector<Record> programs) {
  Training training{{std::move(programs)}, {}};
  const std::vector<Trial> trials = trials_of(training.model.programs);
  training.model.threshold = best_without(trials, GapMemory::kNone).threshold;
  for (std::size_t k = 0; k < training.model.programs.size(); ++k) {
    training.left_out.push_back(best_without(trials, k).predictions[k]);
  }
  return training;
}

std::vector<Record> predict_by_rules(const std::vector<Record>& programs) {
  std::vector<Record> predictions;
  predictions.reserve(programs.size());
  for (const Record& record : programs) {
    predictions.push_back(
        {record.program, record.code, labels_text(complete_by_rules(record)), {}});
  }
  return predictions;
}

Result<Model> load_model(const std::string& path) {
  const auto node = load_config(path);
  if (!node) {
    return fail(node.error());
  }
  Reader read(*node);
  Model model;
  const auto kind = read.required<std::string>("kind");
  read.require(kind == "orrery mpi model", "kind",
               "orrery mpi model, as orrery mpi train writes it");
  model.threshold = read.required<double>("threshold");
  Error mistakes;
  for (const ConfigNode* item : read.take_items("programs", true)) {
    if (auto record = read_record(*item, RecordUse::code)) {
      model.programs.push_back(std::move(*record));
    } else {
      mistakes.add(std::move(record.error()));
    }
  }
  auto well = read.finish(0);
  if (!well || !mistakes.empty()) {
    Error all;
    all.add(well ? Error() : std::move(well.error()));
    all.add(std::move(mistakes));
    return fail(std::move(all));
  }
  return model;
}

}  // namespace orrery::mpi_calls
