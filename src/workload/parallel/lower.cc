// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/lower.h"

#include <algorithm>

#include "workload/parallel/outline.h"
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

namespace {

void number(std::vector<Step>& steps, int& next) {
  for (Step& step : steps) {
    step.number = next++;
  }
}

void number(ChunkDraft& chunk, int& next) {
  for (std::vector<Step>* steps : {&chunk.forward_begin, &chunk.forward_end, &chunk.backward_begin,
                                   &chunk.backward_end, &chunk.after_weights}) {
    number(*steps, next);
  }
  for (Block& block : chunk.blocks) {
    for (std::vector<Step>* steps :
         {&block.before_forward, &block.before_backward, &block.after_backward}) {
      number(*steps, next);
    }
  }
}

/// Numbers the steps, those of blocks first; every role's from there on.
int number_steps(Draft& draft) {
  int next = 0;
  for (BlockSteps& block : draft.steps) {
    for (std::vector<Step>* steps : {&block.forward, &block.recompute, &block.backward}) {
      number(*steps, next);
    }
  }
  draft.pair_ready.number = next++;
  const int shared = next;
  int most = next;
  for (RoleDraft& role : draft.roles) {
    next = shared;
    number(role.finish, next);
    number(role.drain, next);
    for (ChunkDraft& chunk : role.chunks) {
      number(chunk, next);
    }
    most = std::max(most, next);
  }
  return most;
}

}  // namespace

Result<Outline> outline(const zoo::Model& model, const plan::Plan& plan) {
  auto parts = plan::split_model(model, plan);
  if (!parts) {
    return fail(std::move(parts.error()));
  }
  const Context context{
      .model = model, .plan = plan, .parts = std::move(*parts), .shares_roles = true};
  Outline outline;
  for (const Pass& pass : kPasses) {
    if (pass.draft != nullptr && pass.draft != passes::memory) {
      pass.draft(*outline.draft, context);
    }
  }
  outline.numbers = number_steps(*outline.draft);
  outline.lists = list_steps(*outline.draft);
  return outline;
}

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
