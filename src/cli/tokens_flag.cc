// SPDX-License-Identifier: Apache-2.0
#include "cli/tokens_flag.h"

#include <utility>

#include "report/goodput.h"
#include "study/run.h"

namespace orrery::cli {

double TokensFlag::read(Error& mistakes) {
  if (text_) {
    const auto tokens = study::parse_tokens(*text_);
    if (!tokens) {
      mistakes.add(wrong_value("--tokens", *text_, tokens.error()));
    }
    tokens_ = tokens.value_or(1);
  }
  return tokens_;
}

Result<TokensFlag::WholeRun> TokensFlag::whole_run(const full::Task& task,
                                                   const plan::Plan& found) const {
  if (!text_) {
    return WholeRun();
  }
  const auto run = study::run_step(task.model, task.machine, found, task.devices, {});
  if (!run) {
    return fail(task.fixed.placed(run.error()));
  }
  auto plan = study::plan_run(*run, tokens_, {}, 1, 1);
  if (!plan) {
    return fail(placed(plan.error()));
  }
  std::string table = "\n" + report::run_plan_table(*run, *plan, {}, 1);
  return WholeRun{.plan = std::move(*plan), .table = std::move(table)};
}

Error TokensFlag::placed(Error error) {
  for (Mistake& mistake : error.mistakes) {
    if (mistake.field == "tokens") {
      mistake.where = "--tokens";
      mistake.field.clear();
    }
  }
  return error;
}

}  // namespace orrery::cli
