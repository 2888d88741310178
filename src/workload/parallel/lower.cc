// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/lower.h"

#include <algorithm>

#include "workload/parallel/passes.h"
#include "workload/plan/model_parts.h"

namespace orrery::parallel {
namespace {

Result<void> check_skipped(const std::set<std::string>& skip) {
  std::vector<std::string> skippable;
  for (const Pass& pass : kPasses) {
    if (!pass.required) {
      skippable.emplace_back(pass.name);
    }
  }
  Error error;
  for (const std::string& name : skip) {
    if (std::find(skippable.begin(), skippable.end(), name) != skippable.end()) {
      continue;
    }
    const bool required = std::any_of(kPasses.begin(), kPasses.end(),
                                      [&](const Pass& pass) { return pass.name == name; });
    error.add({{},
               "skip",
               name,
               required ? "another pass: every later one builds on this"
                        : "the name of a lowering pass" + did_you_mean(name, skippable)});
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return {};
}

Error after(std::string_view pass, Error error) {
  for (Mistake& mistake : error.mistakes) {
    mistake.expected = "after pass " + std::string(pass) + ": " + mistake.expected;
  }
  return error;
}

/// The draft until the first pass over the workload, then the workload.
class Lowering {
 public:
  Lowering(const Context& context, const LowerOptions& options)
      : context_(context), options_(options) {}

  Result<graph::Workload> run() {
    std::string_view last;
    for (const Pass& pass : kPasses) {
      if (options_.skip.contains(std::string(pass.name))) {
        continue;
      }
      last = pass.name;
      apply(pass);
      if (options_.observe) {
        const graph::Workload& now = assembled_ ? workload_ : (workload_ = assemble(draft_));
        if (auto verified = graph::verify(now); !verified) {
          return fail(after(last, std::move(verified.error())));
        }
        options_.observe(std::string(pass.name), now);
      }
    }
    assemble_once();
    if (auto verified = graph::verify(workload_); !verified) {
      return fail(after(last, std::move(verified.error())));
    }
    return std::move(workload_);
  }

 private:
  void apply(const Pass& pass) {
    if (pass.draft != nullptr) {
      pass.draft(draft_, context_);
      return;
    }
    assemble_once();
    workload_ =
        pass.workload(std::move(workload_), {.machine = options_.machine,
                                             .plan = &context_.plan,
                                             .fuse_communication = options_.fuse_communication});
  }

  void assemble_once() {
    if (!assembled_) {
      workload_ = assemble(draft_);
      assembled_ = true;
    }
  }

  const Context& context_;
  const LowerOptions& options_;
  Draft draft_;
  graph::Workload workload_;
  bool assembled_ = false;
};

}  // namespace

graph::Workload transform(graph::Workload workload, const PassSetting& setting) {
  for (const Pass& pass : kPasses) {
    if (pass.workload != nullptr) {
      workload = pass.workload(std::move(workload), setting);
    }
  }
  return workload;
}

std::vector<PassName> lowering_passes() {
  std::vector<PassName> names;
  names.reserve(kPasses.size());
  for (const Pass& pass : kPasses) {
    names.push_back({std::string(pass.name), std::string(pass.meaning)});
  }
  return names;
}

Result<graph::Workload> lower(const zoo::Model& model, const plan::Plan& plan,
                              const LowerOptions& options) {
  if (auto skipped = check_skipped(options.skip); !skipped) {
    return fail(std::move(skipped.error()));
  }
  if (auto checked = plan::check(plan, model); !checked) {
    return fail(std::move(checked.error()));
  }
  auto parts = plan::split_model(model, plan);
  if (!parts) {
    return fail(std::move(parts.error()));
  }
  const Context context{.model = model,
                        .plan = plan,
                        .parts = std::move(*parts),
                        .machine = options.machine,
                        .run_steps = options.steps};
  return Lowering(context, options).run();
}

}  // namespace orrery::parallel
