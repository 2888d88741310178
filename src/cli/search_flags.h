// SPDX-License-Identifier: Apache-2.0
/// The flags of `orrery serve` that search for rates, plans and devices, and what they cost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/html_flag.h"
#include "cli/request_flags.h"
#include "serving/plan_search.h"
#include "serving/search.h"

namespace orrery::cli {

/// Returns the parts of a list by commas; none without a text.
std::vector<std::string> listed(const std::optional<std::string>& text);

class SearchFlags {
 public:
  void declare(Options& options);
  bool any() const { return search_.has_value(); }
  bool is(const char* what) const { return search_ == what; }
  /// Returns "" without --slo.
  std::string slo() const { return slo_.value_or(""); }
  /// Returns the limits of --slo and --attainment.
  serving::RateSearch limits(Error& mistakes) const;
  /// Mistakes of flags without a search, or of a search without --slo.
  void check_alone(Error& mistakes) const;
  /// --price of a machine by its name: one for all, or "NAME=USD,NAME=USD".
  void take_price(machine::Machine& machine, const std::string& name, Error& mistakes) const;

  // Of --search plan and gpus:
  void read(serving::PlanSearch& search, const std::optional<std::string>& devices,
            Error& mistakes) const;
  /// Reads the requests of a trace or rate, where they are given or needed.
  void read_load(serving::PlanSearch& search, const RequestFlags& requests, Error& mistakes) const;
  struct Form {
    bool json = false;
    bool csv = false;
    const HtmlFlag& html;
  };
  Result<std::string> run(const zoo::Model& model, const serving::Engine& engine,
                          const serving::PlanSearch& search, const Form& form) const;

 private:
  std::optional<std::string> search_;
  std::optional<std::string> formats_;
  std::optional<std::string> plot_;
  std::optional<std::string> slo_;
  std::optional<std::string> attainment_;
  std::optional<std::string> price_;
};

}  // namespace orrery::cli
