// SPDX-License-Identifier: Apache-2.0
// Runs the rooms that compute once each on small inputs: simulate, estimate, serve, astra. Meant
// for a build without optimisation and with sanitizers that has no command; smoke_test.sh does the
// same with it.
//
//   rooms_smoke SOURCE_FOLDER        with ORRERY_CONFIGS set
#include <cstdio>
#include <string>

#include "base/config_node.h"
#include "base/names.h"
#include "compat/astra/load.h"
#include "estimate/estimate.h"
#include "machine/machine.h"
#include "serving/requests/generate.h"
#include "serving/serve.h"
#include "simulate/simulate.h"
#include "workload/parallel/lower.h"
#include "workload/plan/machine_check.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery {
namespace {

struct Step {
  const char* model;
  const char* machine;
  const char* plan;
};
constexpr Step kSteps[] = {
    {"gpt2", "dgx-a100-80g", "{tp: 2, global_batch: 2}"},
    {"gpt2", "dgx-a100-80g", "{tp: 2, pp: 2, dp: 2, global_batch: 16, zero: 1}"},
    {"mixtral-8x7b", "dgx-h100",
     "{tp: 2, pp: 2, dp: 4, ep: 4, cp: 2, sequence_parallel: true, schedule: zb-v, chunks: 2, "
     "microbatch: 1, global_batch: 16, zero: 1, sequence: 4096, attention: flash}"},
    {"llama-3-8b", "zero-infinity",
     "{dp: 4, global_batch: 4, zero: 3, offload_optimizer: remote, offload_params: remote, "
     "recompute: full}"},
};

/// Prints the error of a failed `what`.
template <class T>
bool came(const Result<T>& result, const std::string& what) {
  if (!result) {
    std::fprintf(stderr, "rooms_smoke: %s: %s\n", what.c_str(), result.error().to_string().c_str());
  }
  return result.has_value();
}

/// Returns whether a step takes as long with symmetric ranks folded as without, and no less than
/// the bound.
bool simulates(const Step& step) {
  const auto model = zoo::load_model(step.model);
  const auto plan = parse_config(step.plan, "plan", ConfigSyntax::yaml).and_then(plan::parse_plan);
  if (!came(model, step.model) || !came(plan, step.plan)) {
    return false;
  }
  const auto machine = machine::load_machine(step.machine).and_then([&](const auto& whole) {
    return machine::with_devices(whole, plan->devices());
  });
  if (!came(machine, step.machine) || !came(plan::check(*plan, *model), step.plan) ||
      !came(plan::check_machine(*plan, *machine), step.plan)) {
    return false;
  }
  const auto workload = parallel::lower(*model, *plan, {.machine = &*machine});
  if (!came(workload, step.plan)) {
    return false;
  }
  const auto folded = simulate::simulate(*workload, *machine);
  const auto whole = simulate::simulate(*workload, *machine, {.fold = false, .shortcuts = false});
  const auto bound = estimate::Estimator(*model, *machine).interval(*plan);
  return came(folded, "folded") && came(whole, "not folded") && came(bound, "estimate") &&
         folded->step_time == whole->step_time && bound->least <= folded->step_time;
}

bool serves() {
  const auto model = zoo::load_model("llama-3-8b");
  const auto machine = machine::load_machine("dgx-h100");
  const auto engine = serving::load_engine("vllm");
  if (!came(model, "model") || !came(machine, "machine") || !came(engine, "engine")) {
    return false;
  }
  const auto run = serving::serve(
      *model, *machine, *engine,
      requests::generate(
          {.rate = 5, .input = {.first = 500}, .output = {.first = 50}, .count = 20}));
  return came(run, "serve") && run->requests.size() == 20;
}

/// Returns whether traces run with each back-end but `aware`, which has one dimension: the example
/// has two.
bool runs_traces(const std::string& folder) {
  const auto files = astra::load_files({.workload = folder + "/trace",
                                        .system = folder + "/system.json",
                                        .network = folder + "/network.yml",
                                        .memory = folder + "/memory.json",
                                        .groups = std::nullopt},
                                       astra::Quirks::all());
  if (!came(files, folder)) {
    return false;
  }
  for (const Named<astra::Backend>& row : kNames<astra::Backend>) {
    if (row.value == astra::Backend::aware) {
      continue;
    }
    const auto result = astra::run(files->input, {.backend = row.value});
    if (!came(result, std::string(row.name)) || result->classes.empty()) {
      return false;
    }
  }
  return true;
}

bool all(const std::string& source) {
  for (const Step& step : kSteps) {
    if (!simulates(step)) {
      std::fprintf(stderr, "rooms_smoke: failed: %s on %s with %s\n", step.model, step.machine,
                   step.plan);
      return false;
    }
  }
  return serves() && runs_traces(source + "/examples/astra_quickstart");
}

}  // namespace
}  // namespace orrery

int main(int count, char** words) {
  if (count != 2 || !orrery::all(words[1])) {
    return 1;
  }
  std::puts("rooms_smoke: the rooms run");
}
