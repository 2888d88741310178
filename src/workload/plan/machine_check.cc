// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/machine_check.h"

#include <fmt/format.h>

#include "base/collect.h"
#include "base/lists.h"
#include "collective/group_extents.h"
#include "workload/plan/axes.h"
#include "workload/plan/layout.h"
#include "workload/plan/quantize.h"

namespace orrery::plan {
namespace {

class MachineChecker {
 public:
  MachineChecker(const Plan& plan, const machine::Machine& machine)
      : plan_(plan), machine_(machine), device_(machine.device) {}

  Result<void> run() {
    computes("compute_type", name_of(plan_.compute_type), plan_.compute_type);
    if (plan_.quantization != Quantization::none) {
      computes("quantization", name_of(plan_.quantization), recipe_of(plan_.quantization).type);
      scales_blocks();
    }
    attends();
    remote_memory();
    if (plan_.offload_optimizer == Offload::cpu || plan_.offload_optimizer == Offload::nvme) {
      has_tier("offload_optimizer", std::string(name_of(plan_.offload_optimizer)),
               plan_.offload_optimizer == Offload::cpu ? 1 : 2);
    }
    if (plan_.offload_activations > 0) {
      has_tier("offload_activations", fmt::format("{}", plan_.offload_activations), 1);
    }
    sums("tp_algorithm", plan_.tp_algorithm, Axis::tp, plan_.sequence_parallel);
    sums("dp_algorithm", plan_.dp_algorithm, Axis::dp, plan_.zero > 0);
    sums("dp_algorithm", plan_.dp_algorithm, Axis::outer, plan_.shard_outer);
    stays_inside();
    return or_mistakes(std::move(error_));
  }

 private:
  void computes(std::string_view field, std::string_view found, graph::DataType type) {
    if (device_.peak[static_cast<std::size_t>(type)] > FlopRate(0)) {
      return;
    }
    std::string supported;
    for (const Named<graph::DataType>& one : kNames<graph::DataType>) {
      if (device_.peak[static_cast<std::size_t>(one.value)] > FlopRate(0)) {
        supported += (supported.empty() ? "" : ", ") + std::string(one.name);
      }
    }
    error_.add({{},
                std::string(field),
                std::string(found),
                fmt::format("a data type that {} computes in: {}", device_.name, supported)});
  }

  void scales_blocks() {
    if (recipe_of(plan_.quantization).microscaling && !device_.microscaling) {
      error_.add({{},
                  "quantization",
                  std::string(name_of(plan_.quantization)),
                  fmt::format("another recipe: the matrix units of {} take no scales of blocks "
                              "(device.microscaling is false)",
                              device_.name)});
    }
  }

  /// No rate stands in for that of attention in fp8: it is from 0.7 to 1.5 times that in 16 bits.
  void attends() {
    using graph::AttentionLibrary;
    if (plan_.attention == zoo::AttentionKernel::cudnn_fp8 &&
        !device_.format_kernels.contains(
            compute::attention_set(AttentionLibrary::cudnn_fp8, true))) {
      error_.add({{},
                  "attention",
                  std::string(name_of(plan_.attention)),
                  fmt::format("flash or another in 16 bits: {} has no kernels attention_fp8 and "
                              "attention_fp8_backward",
                              device_.name)});
    }
  }

  /// Sums over the group; gathers and exchanges that the algorithm does not do give way to auto.
  void sums(std::string_view field, collective::CollectiveAlgorithm algorithm, Axis axis,
            bool scatters) {
    if (algorithm == collective::CollectiveAlgorithm::automatic) {
      return;
    }
    const auto fitted = machine::with_devices(machine_, plan_.devices());
    if (!fitted) {
      return;
    }
    const graph::CollectiveKind kind =
        scatters ? graph::CollectiveKind::reduce_scatter : graph::CollectiveKind::all_reduce;
    const graph::Members members = layout_of(plan_, plan_.ep > 1).members(axis);
    const std::vector<collective::Extent> extents = collective::group_extents(members, 0, *fitted);
    if (!collective::performs(kind, algorithm, extents, *fitted)) {
      error_.add({{},
                  std::string(field),
                  std::string(name_of(algorithm)),
                  fmt::format("one that does {} over the {} ranks of {} on {}: {}", name_of(kind),
                              members.size(), name_of(axis), machine_.name,
                              collective::possible_algorithms(kind, extents, *fitted))});
    }
  }

  /// A second copy of parameters saves nothing where its gathers leave the node.
  void stays_inside() {
    const std::size_t dimensions = machine_.network.size();
    if (plan_.secondary_shard <= 1 || dimensions < 2) {
      return;
    }
    const auto fitted = machine::with_devices(machine_, plan_.devices());
    if (!fitted) {
      return;
    }
    const graph::Members members = layout_of(plan_).members(Axis::secondary);
    for (const collective::Extent& extent : collective::group_extents(members, 0, *fitted)) {
      if (extent.dimension + 1 == static_cast<int>(dimensions)) {
        error_.add({{},
                    "secondary_shard",
                    fmt::format("{}", plan_.secondary_shard),
                    fmt::format("ranks of one node: with tp x cp inside, these are joined by {}, "
                                "which backward gathers are to keep off",
                                machine_.network.back().name)});
      }
    }
  }

  void remote_memory() {
    const memory::RemoteMemory& memory = machine_.remote_memory;
    for (const auto& [field, where] : {std::pair{"offload_optimizer", plan_.offload_optimizer},
                                       std::pair{"offload_params", plan_.offload_params}}) {
      if (where == Offload::remote && !memory.exists()) {
        error_.add({{},
                    field,
                    std::string(name_of(where)),
                    fmt::format("a machine with remote_memory: {} has none", machine_.name)});
      }
    }
    if (plan_.pool_collectives && memory.exists() && !memory.in_switch) {
      error_.add({{},
                  "pool_collectives",
                  "true",
                  fmt::format("false: the remote memory of {} has no in_switch", machine_.name)});
    }
  }

  void has_tier(std::string_view field, std::string found, std::size_t tier) {
    if (device_.memory.size() > tier) {
      return;
    }
    const std::string tiers = joined(device_.memory, ", ", &compute::MemoryTier::name);
    error_.add({{},
                std::string(field),
                std::move(found),
                fmt::format("a machine with {} memory tiers: {} has {} ({})", tier + 1,
                            device_.name, device_.memory.size(), tiers)});
  }

  const Plan& plan_;
  const machine::Machine& machine_;
  const compute::Device& device_;
  Error error_;
};

}  // namespace

Result<void> check_machine(const Plan& plan, const machine::Machine& machine) {
  return MachineChecker(plan, machine).run();
}

}  // namespace orrery::plan
