// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "report/fields.h"
#include "report/report.h"

namespace orrery::report {
namespace {

/// Declares what the command puts in front of what --json prints (cli/stamp.h).
void declare_stamp(Fields& fields) {
  fields.object("orrery", "what made this", [&] {
    fields.field("version", "of orrery", std::string());
    fields.list("inputs", {"files that arguments name, shipped configurations too", "one of them"},
                std::vector<std::string>(), [&](const std::string& none) {  // of a schema alone
                  fields.field("flag", "that names it", none);
                  fields.field("name", "of the file or configuration", none);
                  fields.field("hash", "of its bytes", none);
                });
  });
}

}  // namespace

std::string run_schema() {
  SchemaFields fields(
      "orrery simulate --json",
      "One training step. --csv has the same fields as columns, names of nested ones joined with "
      "dots (plan.tp); memory_bytes.* are of the fullest stage, named by memory_stage and "
      "memory_moment.");
  declare_stamp(fields);
  declare(study::Run{}, fields);
  declare(std::optional<study::RunPlan>(), fields);
  return fields.schema();
}

}  // namespace orrery::report
