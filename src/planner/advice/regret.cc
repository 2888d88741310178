// SPDX-License-Identifier: Apache-2.0
#include "planner/advice/regret.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "machine/device_groups.h"
#include "study/run.h"

namespace orrery::advice {
namespace {

constexpr double kLess = 0.8;
constexpr double kMore = 1.2;
constexpr double kSearching = 0.9;  // of the time; the rest simulates what was found

class Regrets {
 public:
  Regrets(const full::Task& task, const full::Options& options, const Progress& progress)
      : task_(task), options_(options), progress_(progress), rates_(rates(task.machine)) {
    table_.scenarios.push_back({});
    for (const Rate& rate : rates_) {
      table_.scenarios.push_back({rate.name, kLess});
      table_.scenarios.push_back({rate.name, kMore});
    }
  }

  RegretTable of(const full::Answer& answer) && {
    for (const full::Found& found : answer.top) {
      add(found);
    }
    const std::size_t count = table_.scenarios.size();
    for (std::size_t s = 1; s < count && go_on(); ++s) {
      add_best_of(s);
      progress_(kSearching * static_cast<double>(s) / static_cast<double>(count));
    }
    const std::size_t most = std::max<std::size_t>(1, options_.most_simulations / count);
    table_.plans.resize(std::min(table_.plans.size(), most));
    for (std::size_t s = 0; s < count; ++s) {
      judge(s);
      progress_(kSearching +
                (1 - kSearching) * static_cast<double>(s) / static_cast<double>(count));
    }
    sort();
    return std::move(table_);
  }

 private:
  bool go_on() const { return !options_.go_on || options_.go_on(); }

  full::Task in(std::size_t scenario) const {
    full::Task task = task_;
    if (scenario > 0) {
      rates_[(scenario - 1) / 2].scale(task.machine, table_.scenarios[scenario].factor);
    }
    return task;
  }

  void add(full::Found plan) {
    if (std::none_of(table_.plans.begin(), table_.plans.end(),
                     [&](const Regret& known) { return known.plan.plan == plan.plan; })) {
      table_.plans.push_back({.plan = std::move(plan), .times = {}, .regrets = {}});
    }
  }

  /// The scenario's best plan, with its figures on the machine as it is.
  void add_best_of(std::size_t scenario) {
    if (const auto best = good_plan(in(scenario), options_)) {
      if (auto found = any_plan(of_plan(task_, best->plan), options_)) {
        add(std::move(*found));
      }
    }
  }

  void judge(std::size_t scenario) {
    const full::Task task = in(scenario);
    Time best = Time::max();
    for (std::size_t i = 0; i < table_.plans.size(); ++i) {
      Regret& plan = table_.plans[i];
      const auto run = study::run_step(task.model, task.machine, plan.plan.plan, 0, {});
      plan.times.push_back(run ? run->timeline.step_time : Time::max());
      if (plan.times.back() < best) {
        best = plan.times.back();
        table_.scenarios[scenario].best = i;
      }
    }
    for (Regret& plan : table_.plans) {
      plan.regrets.push_back(plan.times.back() / best - 1);
      if (plan.regrets.back() > plan.regrets[plan.worst]) {
        plan.worst = scenario;
      }
    }
  }

  void sort() {
    std::vector<std::size_t> order(table_.plans.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const auto key = [&](std::size_t i) {
        return std::pair(table_.plans[i].worst_regret(), table_.plans[i].times.front());
      };
      return key(a) < key(b);
    });
    std::vector<Regret> sorted;
    std::vector<std::size_t> place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      place[order[i]] = i;
      sorted.push_back(std::move(table_.plans[order[i]]));
    }
    table_.plans = std::move(sorted);
    for (Scenario& scenario : table_.scenarios) {
      scenario.best = place[scenario.best];
    }
  }

  const full::Task& task_;
  const full::Options& options_;
  const Progress& progress_;
  std::vector<Rate> rates_;
  RegretTable table_;
};

}  // namespace

namespace {

/// Returns a rate of the devices of one part, or of all; scale(device, factor) changes one of them.
template <class Scale>
Rate rate_of(std::string name, std::optional<std::size_t> part, const Scale& scale) {
  return {std::move(name), [part, scale](machine::Machine& changed, double factor) {
            if (!part) {
              scale(changed.device, factor);
              return;
            }
            scale(changed.parts[*part].device, factor);
            changed.device = machine::mean_device(changed.parts);
          }};
}

void add_rates_of(const compute::Device& device, std::optional<std::size_t> part,
                  const std::string& whose, std::vector<Rate>& rates) {
  rates.push_back(rate_of(whose + "compute", part, [](compute::Device& changed, double factor) {
    for (FlopRate& peak : changed.peak) {
      peak = peak * factor;
    }
  }));
  for (std::size_t i = 0; i < device.memory.size(); ++i) {
    rates.push_back(
        rate_of(whose + device.memory[i].name, part, [i](compute::Device& changed, double factor) {
          Bandwidth& bandwidth = changed.memory[i].bandwidth;
          bandwidth = bandwidth * factor;
        }));
  }
}

}  // namespace

std::vector<Rate> rates(const machine::Machine& machine) {
  std::vector<Rate> rates;
  for (std::size_t part = 0; part < machine.parts.size(); ++part) {
    add_rates_of(machine.parts[part].device, part, machine.parts[part].name + " ", rates);
  }
  if (machine.parts.empty()) {
    add_rates_of(machine.device, std::nullopt, "", rates);
  }
  for (std::size_t i = 0; i < machine.network.size(); ++i) {
    rates.push_back({machine.network[i].name, [i](machine::Machine& changed, double factor) {
                       auto& dimension = changed.network[i];
                       dimension.bandwidth = dimension.bandwidth * factor;
                       dimension.node_bandwidth = dimension.node_bandwidth * factor;
                     }});
  }
  return rates;
}

RegretTable regret_table(const full::Task& task, const full::Options& options,
                         const full::Answer& answer, const Progress& progress) {
  return Regrets(task, options, progress).of(answer);
}

void choose(full::Answer& answer, const full::Found& plan) {
  std::erase_if(answer.top, [&](const full::Found& found) { return found.plan == plan.plan; });
  answer.top.insert(answer.top.begin(), plan);
}

}  // namespace orrery::advice
