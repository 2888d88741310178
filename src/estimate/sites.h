// SPDX-License-Identifier: Apache-2.0
/// One machine as plans of different sizes and clocks see it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "estimate/placement.h"
#include "estimate/prices.h"
#include "machine/device_groups.h"
#include "machine/dimensions_only.h"
#include "machine/machine.h"
#include "workload/parallel/block_workload.h"
#include "workload/parallel/step_clock.h"
#include "workload/plan/plan.h"
#include "workload/plan/plan_key.h"
#include "workload/zoo/model.h"

namespace orrery::estimate {

/// Exchanged is a collective of blocks, as often as a microbatch has it over all stages.
struct Exchanged {
  GroupCollective collective;
  graph::StreamIndex lane = graph::kComputeStream;
  std::int64_t times = 0;
};

struct Site {
  const machine::Machine* machine;             ///< at the plan's clocks
  Prices* prices;                              ///< the same
  const std::vector<machine::Machine>* parts;  ///< with the devices of each part alone
  std::vector<Prices>* part_prices;            ///< of kernels on them
  Time kernels;                                ///< of a microbatch, over all stages
  const std::vector<Exchanged>* exchanges;     ///< the same; recomputed ones are no part of either
};

class Sites {
 public:
  /// The machine may have an open outer dimension; it is cut to each plan's devices.
  Sites(zoo::Model model, machine::Machine machine)
      : model_(std::move(model)), machine_(std::move(machine)) {}

  /// Returns the machine as a checked plan sees it. Valid until the next question. Mistakes:
  /// devices that the machine cannot have.
  Result<Site> of(const plan::Plan& plan) {
    return with_devices(plan).map([&](Fitted* own) {
      const Step& step = step_of(plan, *own);
      own->set(step);
      return Site{&own->whole,       &own->prices, &own->parts,
                  &own->part_prices, step.kernels, &step.exchanges};
    });
  }

  /// Returns the machine with the plan's devices and the clocks of the usual mix of kernels. As
  /// of().
  Result<const machine::Machine*> fitted(const plan::Plan& plan) {
    return with_devices(plan).map([](const Fitted* own) { return &own->usual; });
  }

  /// Returns what a microbatch's kernels draw above idle power (parallel::set_clocks). As of().
  Result<Energy> energy(const plan::Plan& plan) {
    return with_devices(plan).map([&](Fitted* own) { return step_of(plan, *own).energy; });
  }

  const machine::Machine& machine() const { return machine_; }

 private:
  /// Rates that are left of the kernel tables' and of attention's, by device group.
  using Clocks = std::vector<std::pair<double, double>>;
  /// A step is what the kernels of a plan's blocks decide.
  struct Step {
    Clocks clocks{};
    std::size_t number = 0;  ///< of these clocks
    Energy energy{0};
    Time kernels{0};
    std::vector<Exchanged> exchanges{};
  };

  static constexpr std::size_t kMostPlans = 16'384;  // some 30 MB

  /// The machine of some devices, which has the clocks of the plan that was asked for last.
  struct Fitted {
    explicit Fitted(machine::Machine machine)
        : usual(std::move(machine)),
          whole(usual),
          parts(machine::by_device_group(usual)),
          part_prices(parts.size()) {}

    void set(const Step& step) {
      if (known == step.number) {
        return;
      }
      known = step.number;
      std::size_t part = 0;
      machine::change_devices(whole, [&](compute::Device& device) {
        std::tie(device.clock, device.attention_clock) = step.clocks[part];
        std::tie(parts[part].device.clock, parts[part].device.attention_clock) = step.clocks[part];
        part_prices[part++].at_clocks(step.number);
      });
      prices.at_clocks(step.number);
    }

    machine::Machine usual;
    machine::Machine whole;
    Prices prices{};
    std::vector<machine::Machine> parts;
    std::vector<Prices> part_prices;
    std::optional<std::size_t> known{};  ///< the clocks that it has
  };

  static void add(const Exchanged& one, std::vector<Exchanged>& all) {
    const auto same = std::ranges::find_if(all, [&](const Exchanged& known) {
      return known.collective == one.collective && known.lane == one.lane;
    });
    if (same != all.end()) {
      same->times += one.times;
    } else {
      all.push_back(one);
    }
  }

  Result<Fitted*> with_devices(const plan::Plan& plan) {
    const std::pair<std::string, std::int64_t> size{plan.parts, plan.devices()};
    auto found = machines_.find(size);
    if (found == machines_.end()) {
      if (auto known = machine::check_dimensions_only(machine_, "estimate"); !known) {
        return fail(std::move(known.error()));
      }
      auto fitted = machine::arranged(machine_, plan.parts);
      if (fitted) {
        fitted = machine::with_devices(std::move(*fitted), plan.devices());
      }
      if (!fitted) {
        return fail(std::move(fitted.error()));
      }
      fitted->origins.clear();  // it is copied for every plan whose clocks are looked for
      found = machines_.try_emplace(size, std::move(*fitted)).first;
    }
    return &found->second;
  }

  /// Returns the key of blocks by what they do in both passes. It knows neither stages, replicas
  /// and their order, which decide where blocks run, nor how a backward is split.
  static plan::Plan work_key(plan::Plan blocks) {
    const plan::Plan plain;
    blocks.dp *= blocks.pp;
    blocks.pp = 1;
    blocks.global_batch = blocks.dp * blocks.microbatch;
    blocks.order.clear();
    blocks.schedule = plain.schedule;
    blocks.stage_layers.clear();
    return blocks;
  }

  /// Returns the step of a checked plan, found once for all that have its blocks. Valid until the
  /// next question.
  const Step& step_of(const plan::Plan& plan, Fitted& own) {
    const plan::Plan blocks = parallel::block_key(plan);
    plan::Plan key = work_key(blocks);
    if (const auto known = steps_.find(key); known != steps_.end()) {
      return known->second;
    }
    const std::vector<parallel::BlockWork> work = parallel::block_work(model_, blocks);
    std::vector<std::int64_t> counts(work.size(), 0);
    const std::vector<plan::BlockKind> kinds =
        plan::blocks_of(model_, blocks, {.embedding = true, .head = true, .layers = model_.layers});
    for (const plan::BlockKind kind : kinds) {
      ++counts[kind];
    }
    machine::Machine machine =
        plan.clocks == plan::Clocks::boost ? machine::at_boost(own.usual) : own.usual;
    Step step{.energy = parallel::set_clocks(machine, work, kinds)};
    machine::change_devices(machine, [&](const compute::Device& device) {
      step.clocks.emplace_back(device.clock, device.attention_clock);
    });
    step.number = numbers_.try_emplace(step.clocks, numbers_.size()).first->second;
    own.set(step);
    for (std::size_t kind = 0; kind < work.size(); ++kind) {
      for (const graph::Operator& kernel : work[kind].kernels) {
        step.kernels += own.prices.kernel(kernel, own.whole).alone * counts[kind];
      }
      for (const graph::Node& node : work[kind].collectives) {
        add({{node.collective, node.group, node.bytes, node.route}, node.stream, counts[kind]},
            step.exchanges);
      }
    }
    if (steps_.size() == kMostPlans) {
      steps_.clear();
    }
    return steps_.emplace(std::move(key), std::move(step)).first->second;
  }

  zoo::Model model_;
  machine::Machine machine_;
  std::map<std::pair<std::string, std::int64_t>, Fitted> machines_;  // by parts and devices
  std::map<Clocks, std::size_t> numbers_;
  std::unordered_map<plan::Plan, Step, plan::PlanHash> steps_;  // never iterated over
};

}  // namespace orrery::estimate
