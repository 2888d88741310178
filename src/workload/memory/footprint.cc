// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/footprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/lists.h"
#include "machine/device_groups.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/schedule.h"
#include "workload/plan/shares.h"

namespace orrery::footprint {
namespace {

std::string by_category(const StageMemory& stage) {
  return joined(kNames<plan::MemoryCategory>, ", ", [&](const auto& category) {
    return fmt::format("{} {}", category.name, to_string(stage[category.value]));
  });
}

void check_device(const StageMemory& stage, std::size_t number, const compute::MemoryTier& tier,
                  Error& error) {
  if (stage.total() <= tier.capacity) {
    return;
  }
  error.add({{},
             fmt::format("stage {}, {}", number, to_string(stage.moment, stage.chunked)),
             to_string(stage.total()),
             fmt::format("at most {} of {} ({})", to_string(tier.capacity), tier.name,
                         by_category(stage))});
}

/// Returns the capacity of a tier below the device's own; 0: there is none.
Bytes lower_capacity(std::size_t lower, const compute::Device& device,
                     const machine::Machine& machine) {
  if (lower != graph::kRemoteLower) {
    return lower + 1 < device.memory.size() ? device.memory[lower + 1].capacity : Bytes(0);
  }
  if (!machine.remote_memory.exists()) {
    return Bytes(0);
  }
  std::int64_t devices = 1;
  for (const topology::NetworkDimension& dimension : machine.network) {
    devices *= std::max<std::int64_t>(1, dimension.size);
  }
  return memory::capacity_per_device(machine.remote_memory, devices);
}

/// Checks what is offloaded to a tier below the first.
void check_lower(const StageMemory& stage, std::size_t number, std::size_t lower,
                 const compute::Device& device, const machine::Machine& machine, Error& error) {
  constexpr std::array<const char*, graph::kLowerTierCount> kWhere{"host", "storage", "remote"};
  const Bytes capacity = lower_capacity(lower, device, machine);
  if (stage.lower[lower] <= capacity) {
    return;
  }
  std::string expected;
  if (lower == graph::kRemoteLower) {
    expected = machine.remote_memory.exists()
                   ? fmt::format("at most {}, a device's share of it", to_string(capacity))
                   : fmt::format("a machine with remote_memory: {} has none", machine.name);
  } else {
    const std::size_t tier = lower + 1;
    expected =
        tier < device.memory.size()
            ? fmt::format("at most {} of {}", to_string(capacity), device.memory[tier].name)
            : fmt::format("a machine that states memory tier {} of device '{}'", tier, device.name);
  }
  error.add({{},
             fmt::format("stage {}, {} memory", number, kWhere[lower]),
             to_string(stage.lower[lower]),
             std::move(expected)});
}

/// One line for all stages that `check` finds wrong: of the one that needs most.
template <class Need, class Check>
void worst(const std::vector<StageMemory>& stages, const Need& need, const Check& check,
           Error& error) {
  Error lines;
  Bytes most{0};
  Mistake fullest;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const std::size_t before = lines.mistakes.size();
    check(stages[s], s, lines);
    if (lines.mistakes.size() > before && need(stages[s]) > most) {
      most = need(stages[s]);
      fullest = lines.mistakes.back();
    }
  }
  if (const std::size_t more = lines.mistakes.size(); more > 1) {
    fullest.expected += fmt::format("; {} of {} stages do not fit", more, stages.size());
  }
  if (!lines.empty()) {
    error.add(std::move(fullest));
  }
}

}  // namespace

bool fits(const MostHeld& most, const machine::Machine& machine) {
  const auto& tiers = machine.device.memory;
  bool fits = !tiers.empty() && most.total <= tiers.front().capacity;
  for (std::size_t lower = 0; lower < graph::kLowerTierCount; ++lower) {
    fits = fits && (most.lower[lower] == Bytes(0) ||
                    most.lower[lower] <= lower_capacity(lower, machine.device, machine));
  }
  return fits;
}

namespace {

bool same_blocks(const std::vector<StageChunk>& a, const std::vector<StageChunk>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const StageChunk& one, const StageChunk& other) { return one.blocks == other.blocks; });
}

}  // namespace

StageMemory stage_memory(const BlockMemories& blocks, const plan::Plan& plan, std::int64_t stage,
                         const std::vector<StageChunk>& chunks) {
  MemoryTimeline timeline =
      memory_timeline(blocks, plan, stage, chunks, {.points = kTimelinePoints});
  return {.bytes = timeline.peak,
          .moment = timeline.moment,
          .chunked = chunks.size() > 1,
          .highest = timeline.highest,
          .lower = timeline.lower,
          .microbatches_in_flight =
              static_cast<double>(timeline.pieces) * static_cast<double>(plan.pp) /
              static_cast<double>(plan::part_count(plan::pipeline_shape(plan))),
          .timeline = std::move(timeline.points)};
}

namespace {

Fullest fullest_alike(const zoo::Model& model, const plan::Plan& plan,
                      const machine::Machine& machine) {
  const auto parts = plan::split_model(model, plan);
  const BlockMemories blocks = block_memories(model, plan);
  const Bytes framework = framework_bytes(model, plan, machine);
  const bool first_only = later_hold_less(plan::pipeline_shape(plan));
  std::vector<std::vector<StageChunk>> seen;
  Fullest fullest{.total = Bytes(0), .fits = true};
  for (std::int64_t stage = 0; stage < plan.pp; ++stage) {
    std::vector<StageChunk> chunks =
        stage_chunks(model, plan, (*parts)[static_cast<std::size_t>(stage)]);
    if (first_only && std::any_of(seen.begin(), seen.end(),
                                  [&](const auto& other) { return same_blocks(other, chunks); })) {
      continue;
    }
    MostHeld most = most_held(blocks, plan, stage, chunks);
    most.total += framework;
    fullest.total = std::max(fullest.total, most.total);
    fullest.fits = fullest.fits && fits(most, machine);
    seen.push_back(std::move(chunks));
  }
  return fullest;
}

/// Returns the memory of every class of ranks, on its devices.
std::vector<std::vector<StageMemory>> memory_by_class(const zoo::Model& model,
                                                      const plan::Plan& plan,
                                                      const machine::Machine& machine) {
  std::map<std::int64_t, std::vector<StageMemory>> by_microbatches;
  std::vector<std::vector<StageMemory>> all;
  for (const plan::RankClass& ranks : plan::rank_classes(plan, machine)) {
    auto& known = by_microbatches[ranks.microbatches];
    if (known.empty()) {
      known = memory_of_checked(model, plan::with_microbatches(plan, ranks.microbatches));
    }
    all.push_back(known);
    for (std::size_t stage = 0; stage < ranks.parts.size(); ++stage) {
      all.back()[stage].part = ranks.parts[stage];
    }
  }
  return all;
}

/// Returns the bytes that nothing uses; below 0: that are missing.
Bytes room_of(const StageMemory& stage) {
  return stage.capacity - stage.total();
}

void add_framework(StageMemory& stage, Bytes framework) {
  stage[plan::MemoryCategory::framework] += framework;
  stage.highest[plan::MemoryCategory::framework] += framework;
  for (MemoryPoint& point : stage.timeline) {
    point.bytes += framework;
  }
}

}  // namespace

Fullest fullest(const zoo::Model& model, const plan::Plan& plan, const machine::Machine& machine) {
  if (plan.batch_shares.empty() && machine.parts.empty()) {
    return fullest_alike(model, plan, machine);
  }
  const auto stages = memory_footprint(model, plan, &machine);
  Fullest fullest;
  if (stages) {
    for (const StageMemory& stage : *stages) {
      fullest.total = std::max(fullest.total, stage.total());
    }
    fullest.fits = check_fits(*stages, machine).has_value();
  }
  return fullest;
}

std::vector<StageMemory> memory_of_checked(const zoo::Model& model, const plan::Plan& plan) {
  const auto parts = plan::split_model(model, plan);
  const BlockMemories blocks = block_memories(model, plan);
  std::vector<StageMemory> stages;
  for (std::int64_t stage = 0; stage < plan.pp; ++stage) {
    const auto& own = (*parts)[static_cast<std::size_t>(stage)];
    stages.push_back(stage_memory(blocks, plan, stage, stage_chunks(model, plan, own)));
  }
  return stages;
}

Result<std::vector<StageMemory>> memory_footprint(const zoo::Model& model, const plan::Plan& plan,
                                                  const machine::Machine* machine) {
  if (auto checked = plan::check(plan, model); !checked) {
    return fail(std::move(checked.error()));
  }
  const machine::Machine none;
  const machine::Machine& own = machine == nullptr ? none : *machine;
  const std::vector<machine::Machine> parts = machine::by_device_group(own);
  const std::vector<Bytes> framework = mapped(parts, [&](const machine::Machine& part) {
    return machine == nullptr ? Bytes(0) : framework_bytes(model, plan, part);
  });
  std::vector<StageMemory> tightest;
  for (std::vector<StageMemory>& stages : memory_by_class(model, plan, own)) {
    for (StageMemory& stage : stages) {
      const auto& tiers = parts[stage.part].device.memory;
      stage.capacity = tiers.empty() ? Bytes(0) : tiers.front().capacity;
      add_framework(stage, framework[stage.part]);
    }
    if (tightest.empty()) {
      tightest = std::move(stages);
      continue;
    }
    for (std::size_t i = 0; i < stages.size(); ++i) {
      if (room_of(stages[i]) < room_of(tightest[i])) {
        tightest[i] = std::move(stages[i]);
      }
    }
  }
  return tightest;
}

Result<void> check_fits(const std::vector<StageMemory>& stages, const machine::Machine& machine) {
  const std::vector<machine::Machine> parts = machine::by_device_group(machine);
  for (const machine::Machine& part : parts) {
    if (part.device.memory.empty()) {
      return fail("device '" + part.device.name + "' states no memory");
    }
  }
  const auto device_of = [&](const StageMemory& stage) -> const compute::Device& {
    return parts[stage.part].device;
  };
  Error error;
  const auto check = [&](auto&& need, auto&& check_one) { worst(stages, need, check_one, error); };
  check([](const StageMemory& stage) { return stage.total(); },
        [&](const StageMemory& stage, std::size_t number, Error& into) {
          check_device(stage, number, device_of(stage).memory.front(), into);
        });
  for (std::size_t lower = 0; lower < graph::kLowerTierCount; ++lower) {
    check([&](const StageMemory& stage) { return stage.lower[lower]; },
          [&](const StageMemory& stage, std::size_t number, Error& into) {
            check_lower(stage, number, lower, device_of(stage), machine, into);
          });
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return {};
}

}  // namespace orrery::footprint
