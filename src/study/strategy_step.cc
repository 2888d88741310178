// SPDX-License-Identifier: Apache-2.0
#include "study/strategy_step.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "machine/device_groups.h"
#include "planner/spmd/decoder.h"
#include "planner/spmd/machine_prices.h"
#include "planner/spmd/saved.h"
#include "workload/memory/state_memory.h"

namespace orrery::study {
namespace {

constexpr std::array<std::string_view, 6> kBeside{"strategy", "dp",     "global_batch",
                                                  "sequence", "clocks", "compute_type"};

footprint::StageMemory memory_of(const spmd::Holdings& holdings, Bytes framework,
                                 const machine::Machine& machine) {
  footprint::StageMemory memory;
  memory[plan::MemoryCategory::parameters] = holdings.parameters;
  memory[plan::MemoryCategory::gradients] = holdings.gradients;
  memory[plan::MemoryCategory::optimizer] = holdings.optimizer;
  memory[plan::MemoryCategory::activations] = holdings.activations;
  memory[plan::MemoryCategory::framework] = framework;
  memory.highest = memory.bytes;
  memory.moment.work = footprint::MemoryMoment::Work::backward;
  memory.microbatches_in_flight = 1;
  memory.capacity =
      machine.device.memory.empty() ? Bytes(0) : machine.device.memory.front().capacity;
  return memory;
}

}  // namespace

Error strategy_mistakes(const plan::Plan& plan) {
  Error mistakes;
  const plan::Plan open;
  plan::Plan::fields([&](std::string_view name, auto member, std::string_view) {
    if (std::ranges::find(kBeside, name) == kBeside.end() && plan.*member != open.*member) {
      mistakes.add({{},
                    std::string(name),
                    plan::field_text(plan, name),
                    plan::field_text(open, name) + ", as it is beside a strategy"});
    }
  });
  if (plan.dp < 1 || plan.dp > machine::kMostDevices) {
    mistakes.add({{}, "dp", std::to_string(plan.dp), "the devices of the strategy"});
  }
  return mistakes;
}

Result<StrategyStep> strategy_step(const zoo::Model& model, const plan::Plan& plan,
                                   const machine::Machine& machine) {
  const auto strategy = spmd::load_saved(plan.strategy);
  const bool mesh = strategy && spmd::is_of_mesh(*strategy);
  if (!mesh && plan.global_batch < 2) {
    return fail(Error(Mistake{{},
                              "global_batch",
                              std::to_string(plan.global_batch),
                              "at least 2 sequences: the strategy's two halves"}));
  }
  const auto graph = spmd::decoder_graph(
      model,
      {.devices = plan.dp, .batch = plan.global_batch, .sequence = plan.sequence, .mesh = mesh});
  const auto alike = machine::check_alike(machine, "a plan's strategy");
  if (!strategy || !graph || !alike) {
    Error mistakes;
    mistakes.add(strategy ? Error() : strategy.error());
    mistakes.add(graph ? Error() : graph.error());
    mistakes.add(alike ? Error() : alike.error());
    return fail(std::move(mistakes));
  }
  const auto prices =
      spmd::MachinePrices::make(machine, plan.dp, spmd::Overlap::both, graph->element);
  if (!prices) {
    return fail(prices.error());
  }
  if (prices->type() != plan.compute_type) {
    return fail(Error(Mistake{{},
                              "compute_type",
                              std::string(name_of(plan.compute_type)),
                              std::string(name_of(prices->type())) + ", in which it computes"}));
  }
  auto program = spmd::program_of(*graph, *strategy, machine, plan.dp, spmd::Overlap::both);
  if (!program) {
    Error mistakes(Mistake{{}, "strategy", plan.strategy, "one for the graph of " + model.name});
    mistakes.add(program.error());
    return fail(std::move(mistakes));
  }
  return StrategyStep{
      std::move(program->workload),
      memory_of(program->holdings, footprint::framework_bytes(model, plan, machine), machine)};
}

}  // namespace orrery::study
