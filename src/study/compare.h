// SPDX-License-Identifier: Apache-2.0
/// Two or more runs side by side, figure by figure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"
#include "study/trust.h"

namespace orrery::study {

struct Figure {
  std::string name;
  double value = 0;
};

struct FigureGroup {
  std::string name;  ///< the key in the JSON report: "breakdown_s"
  std::vector<Figure> figures;
};

/// RunFigures are what a JSON report of `orrery simulate` says, by its keys: a report of another
/// version may have other categories.
struct RunFigures {
  std::string source;  ///< file or plan that it comes from
  std::string model;
  std::string machine;
  std::int64_t devices = 0;
  std::string network;  ///< "ports" where the report does not say
  std::vector<FigureGroup> groups;
  /// Field, text: of the plan, and under "orrery." the version and inputs that made the report.
  std::vector<std::pair<std::string, std::string>> plan;
  std::string hypothetical{};      ///< of "overlap_tensor": what unsold hardware it rests on
  std::optional<Causes> causes{};  ///< where the report has "trust"
  Sigma sigma{};
};

/// Returns whether the document claims to be a run's report (it has a step time or a breakdown).
bool is_run(const ConfigNode& node);

/// Parses the figures of a run. Groups: "step" (step_time_s, tokens_per_s, FLOP rates, mfu, hfu),
/// breakdown_s, hidden_s, memory_bytes (of the fullest stage), energy, cost; the last four if
/// there.
/// Mistakes: fields that every report has and this one lacks; numbers that are none.
Result<RunFigures> parse_run(const ConfigNode& node);

/// One figure of all runs; nothing where a run does not have it. Against the first run:
///   difference = value - first,  ratio = value / first (nothing for first = 0)
struct ComparedFigure {
  std::string name;
  std::vector<std::optional<double>> values;

  std::optional<double> difference(std::size_t run) const;
  std::optional<double> ratio(std::size_t run) const;
};

struct ComparedGroup {
  std::string name;
  std::vector<ComparedFigure> figures;  ///< in the order in which the runs first have them
};

struct PlanDifference {
  std::string field;
  std::vector<std::string> values;  ///< "-" where a run does not have the field
};

struct Comparison {
  std::vector<RunFigures> runs;
  /// Fields in which not all runs agree; those of version and inputs only where all runs say them.
  std::vector<PlanDifference> plan;
  std::vector<ComparedGroup> groups;
};

/// StepRanking says how sure it is which of two runs takes less time (trust.h): what they have in
/// common cancels.
///   interval  exp(+-1.2816 joint_sigma), around the ratio of their times
///   open      1 lies in it
struct StepRanking {
  double ratio = 1;  ///< of the run's time over the first one's
  Range interval80;
  bool open = false;
};
/// Ranks a run beside the others by step time; nothing where one of them does not say how far it
/// can be trusted. Requires run < runs.size().
std::optional<StepRanking> ranking(const Comparison& comparison, std::size_t run);

/// Requires at least two runs.
Comparison compare(std::vector<RunFigures> runs);

}  // namespace orrery::study
