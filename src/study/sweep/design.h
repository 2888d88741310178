// SPDX-License-Identifier: Apache-2.0
/// Says which machine to buy: the best plan on every machine of a study that the budget allows.
///
///   price of a machine   devices * (price_per_hour of its file
///                                   + sum over priced fields of per_unit * (value - file's value))
///   affordable           price <= budget; others are not searched
///   cost per M tokens    price / (3600 tokens_per_s) * 1e6
///
/// Prices are dollars per hour, of renting or written off; what a faster link costs is said by
/// whoever asks. Of each model the affordable point with the most tokens per second is the answer;
/// of equal ones the cheaper, then the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "study/sweep/kind.h"
#include "study/sweep/study.h"

namespace orrery::sweep {

struct PricedField {
  std::string field;  ///< of the study: "machine.network.1.bandwidth"
  std::string unit;   ///< "GB/s", "GiB", "" of a bare number
  Money per_unit{0};  ///< of one device, an hour
};

struct DesignPoint {
  std::vector<Cell> varied;  ///< by axis of the study
  std::string model;
  std::int64_t devices = 0;
  std::optional<Money> price;  ///< of all devices, an hour; nothing: the machine states none
  bool affordable = true;
  Outcome outcome;  ///< kPlanFigures; empty where not affordable
  std::optional<Money> cost_per_million_tokens;

  bool has_plan() const { return affordable && outcome.error.empty() && !outcome.figures.empty(); }
  /// A figure by its name in kPlanFigures. Requires has_plan().
  const Cell& figure(std::string_view name) const;
};

struct Design {
  std::vector<std::string> varied;
  std::vector<DesignPoint> points;
  std::vector<std::size_t> best;  ///< points, one for each model that has any
};

struct DesignOptions {
  std::vector<PricedField> prices;
  std::optional<Money> budget;  ///< of all devices, an hour
  int threads = 0;              ///< 0: one per processor
  std::function<void(double)> progress;
};

/// Requires a study of kind plan. Mistakes: a budget or prices on a machine without a price; priced
/// fields that the machine does not have, or values and prices that are not of one unit.
Result<Design> design(const Study& study, const DesignOptions& options);

}  // namespace orrery::sweep
