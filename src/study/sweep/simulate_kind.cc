// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cassert>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/reader.h"
#include "machine/device_groups.h"
#include "machine/machine.h"
#include "study/energy.h"
#include "study/run.h"
#include "study/sweep/config_path.h"
#include "study/sweep/kind.h"
#include "study/sweep/step.h"
#include "study/sweep/study.h"
#include "workload/memory/footprint.h"
#include "workload/plan/defaults.h"

namespace orrery::sweep {
namespace {

Result<Step> read_simulation(const ConfigNode& description) {
  Reader read(description);
  Step step = read_step(read);
  step.options.network = read.optional("network", simulate::NetworkModel::ports);
  step.options.fuse = read.optional("fuse", false);
  step.options.allow_oom = read.optional("allow_oom", false);
  return read.finish(std::move(step));
}

Bytes fullest(const std::vector<footprint::StageMemory>& stages) {
  Bytes most{0};
  for (const footprint::StageMemory& stage : stages) {
    most = std::max(most, stage.total());
  }
  return most;
}

/// Cells by the names of kSimulateFigures.
class Figures {
 public:
  explicit Figures(std::vector<Cell>& cells) : cells_(cells) {
    cells_.resize(kSimulateFigures.size());
  }

  template <class T>
  void set(std::string_view name, T value) {
    const auto* const found = std::find(kSimulateFigures.begin(), kSimulateFigures.end(), name);
    assert(found != kSimulateFigures.end() && "a name of kSimulateFigures");
    cells_[static_cast<std::size_t>(found - kSimulateFigures.begin())].emplace<T>(value);
  }
  void set_memory(Bytes used, Bytes capacity, bool fits) {
    set("memory_bytes", used.value());
    set("capacity_bytes", capacity.value());
    set("fits", std::int64_t{fits ? 1 : 0});
  }

 private:
  std::vector<Cell>& cells_;
};

/// Memory of a plan that was refused because it does not fit; nothing of one refused for another
/// reason.
Outcome without_run(const Step& step, const Error& why) {
  Outcome outcome = refused(kSimulateFigures.size(), step.plan.placed(why));
  const plan::Plan& plan = step.plan.plan;
  if (!study::plan_mistakes(step.model, step.machine, plan, step.devices).empty() ||
      step.machine.device.memory.empty()) {
    return outcome;
  }
  const std::int64_t devices = step.devices == 0 ? plan.devices() : step.devices;
  const auto machine =
      machine::arranged(step.machine, plan.parts).and_then([&](const machine::Machine& arranged) {
        return machine::with_devices(arranged, devices);
      });
  const auto memory = machine ? footprint::memory_footprint(step.model, plan, &*machine)
                              : Result<std::vector<footprint::StageMemory>>(fail(Error(why)));
  if (memory && !footprint::check_fits(*memory, *machine)) {
    Figures figures(outcome.figures);
    figures.set("total_devices", devices);
    figures.set_memory(fullest(*memory), machine->device.memory.front().capacity, false);
  }
  return outcome;
}

Outcome figures_of(const study::Run& run) {
  Outcome outcome;
  Figures figures(outcome.figures);
  figures.set("total_devices", run.devices);
  figures.set("step_time_s", to_seconds(run.timeline.step_time));
  figures.set("tokens_per_s", run.tokens_per_s);
  figures.set("mfu", run.mfu);
  figures.set("hfu", run.hfu);
  figures.set("model_flops_per_device", run.model_flops_per_device.value());
  figures.set_memory(fullest(run.memory), run.capacity, run.fits);
  if (const std::optional<study::StepEnergy> energy = study::energy_of(run)) {
    figures.set("energy_per_step_j", energy->total().value());
  }
  if (const std::optional<study::StepCost> cost = study::cost_of(run)) {
    figures.set("cost_per_million_tokens", cost->per_million_tokens.value());
  }
  return outcome;
}

/// Returns what a plan's strategy says, not only where; what cannot be read has its own mistake
/// later.
std::string strategy_of(const plan::Plan& plan) {
  return plan.strategy.empty() ? "" : "\nstrategy " + read_file(plan.strategy).value_or("");
}

std::string inputs_of(const Step& step, const ConfigNode& description) {
  const ConfigNode* model = description.find("model");
  return "model " + canonical_text(*model) + "\nmachine " + machine::to_yaml(step.machine) +
         "\nplan " + plan::to_yaml(step.plan.plan) + strategy_of(step.plan.plan) + "\ndevices " +
         std::to_string(step.devices) + "\nnetwork " + std::string(name_of(step.options.network)) +
         (step.options.fuse ? "\nfuse true" : "") + "\nallow_oom " +
         (step.options.allow_oom ? "true" : "false");
}

}  // namespace

Prepared prepare_simulate(const ConfigNode& description) {
  auto read = read_simulation(description);
  if (!read) {
    return {.inputs = "unread " + canonical_text(description), .mistakes = read.error(), .run = {}};
  }
  const auto step = std::make_shared<Step>(std::move(*read));
  step->plan.plan = plan::complete(step->plan, &step->model, &step->machine, step->devices);
  return {.inputs = inputs_of(*step, description), .mistakes = {}, .run = [step](Shared&) {
            const auto run = study::run_step(step->model, step->machine, step->plan.plan,
                                             step->devices, step->options);
            return run ? figures_of(*run) : without_run(*step, run.error());
          }};
}

}  // namespace orrery::sweep
