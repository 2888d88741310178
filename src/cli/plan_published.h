// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "planner/full/search.h"

namespace orrery::cli {

/// `orrery plan --table`: every row of a table of published runs beside the planner's answer, each
/// printed as soon as it is known.
class PublishedFlags {
 public:
  void declare(Options& options);
  bool given() const { return table_.has_value(); }
  /// Adds what does not go without a table.
  void check(Error& mistakes) const;
  /// Returns the text after the rows. Requires a table.
  Result<std::string> run(const full::Options& options, bool json) const;

 private:
  std::optional<std::string> table_;
  bool suspects_ = false;  ///< PublishedPlans simulates them again
};

}  // namespace orrery::cli
