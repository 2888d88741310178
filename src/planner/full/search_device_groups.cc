// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "machine/device_groups.h"
#include "planner/full/search_state.h"

namespace orrery::full {
namespace {

constexpr std::size_t kMostOrdered = 3;  // parts: 15 ways to use and order them

/// Numbers of parts, as ranks may fill them.
std::vector<std::vector<std::size_t>> ways_to_fill(std::size_t parts) {
  std::vector<std::size_t> all(parts);
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<std::vector<std::size_t>> ways{all};
  const auto add = [&](const std::vector<std::size_t>& way) {
    if (std::ranges::find(ways, way) == ways.end()) {
      ways.push_back(way);
    }
  };
  if (parts > kMostOrdered) {
    add({all.rbegin(), all.rend()});
    for (const std::size_t part : all) {
      add({part});
    }
    return ways;
  }
  std::vector<std::size_t> order = all;
  do {
    for (std::size_t used = parts; used > 0; --used) {
      add({order.begin(), order.begin() + static_cast<std::ptrdiff_t>(used)});
    }
  } while (std::ranges::next_permutation(order).found);
  return ways;
}

/// Returns whether `--only parts=...` leaves it out.
bool left_out(const Task& task, const std::string& names) {
  const auto only = task.only.find("parts");
  return only != task.only.end() && std::ranges::find(only->second, names) == only->second.end();
}

/// Returns the task on these parts alone.
Task on_parts(const Task& task, const machine::Machine& machine,
              const std::vector<std::size_t>& way) {
  Task one = task;
  std::string names;
  one.only.erase("parts");
  one.devices = 0;
  for (const std::size_t part : way) {
    names += (names.empty() ? "" : ",") + machine.parts[part].name;
    one.devices += machine.parts[part].devices;
  }
  one.machine = machine::arranged(machine, names).value();
  one.fixed.plan.parts = names;
  one.fixed.places["parts"] = "the parts tried";
  return one;
}

}  // namespace

void merge(Answer& all, Answer one, const Options& options) {
  for (Answer* answer : {&all, &one}) {
    if (answer->fastest &&
        std::ranges::find(answer->top, answer->fastest->plan, &Found::plan) == answer->top.end()) {
      answer->top.push_back(*answer->fastest);
    }
    answer->fastest.reset();
  }
  const auto add = [](std::uint64_t& sum, std::uint64_t count) { sum += count; };
  add(all.counts.all, one.counts.all);
  add(all.counts.by_bound, one.counts.by_bound);
  add(all.counts.by_memory, one.counts.by_memory);
  add(all.counts.by_family, one.counts.by_family);
  add(all.counts.invalid, one.counts.invalid);
  add(all.counts.estimated, one.counts.estimated);
  add(all.counts.left, one.counts.left);
  add(all.counts.simulated, one.counts.simulated);
  if (!one.top.empty()) {
    all.bound = all.top.empty() ? one.bound : std::min(all.bound, one.bound);
  } else if (all.top.empty() &&
             (all.least_memory == Bytes(0) || one.least_memory < all.least_memory)) {
    all.least_memory = one.least_memory;
    all.frugal = std::move(one.frugal);
    all.missing = std::move(one.missing);
  }
  all.top.insert(all.top.end(), one.top.begin(), one.top.end());
  std::ranges::stable_sort(all.top, {}, &Found::score);
  all.top.resize(std::min(all.top.size(), options.top));
  all.proved = all.proved && one.proved;
  all.complete = all.complete && one.complete;
  all.stopped = all.stopped || one.stopped;
  all.estimate_error = std::max(all.estimate_error, one.estimate_error);
  all.wall_s += one.wall_s;
}

namespace {

/// Returns what a step second of the task costs, by how little one is worth: of devices that are
/// not used nothing is paid. 1 where money does not count.
double rate_of(const Task& task, const Options& options) {
  return options.objective == Objective::cost
             ? task.machine.device.price_per_hour.value() * static_cast<double>(task.devices)
             : 1;
}

void scale(Answer& answer, double factor) {
  if (factor == 1) {
    return;
  }
  answer.bound = answer.bound * factor;
  for (Found& found : answer.top) {
    found.score = found.score * factor;
  }
}

/// Back to seconds of the best plan's devices.
void as_of_best(Answer& answer, double rate) {
  if (answer.top.empty() || rate == 1) {
    return;
  }
  scale(answer, 1 / rate);
  const std::string best = answer.top.front().plan.parts;
  for (Found& found : answer.top) {
    found.score = found.plan.parts == best ? found.step_time : found.score;
  }
  answer.bound = std::min(answer.bound, answer.top.front().score);
}

}  // namespace

Result<Answer> search_device_groups(const Task& task, const Options& options, Knowledge& known) {
  const auto cut = machine::with_devices(task.machine, task.devices);
  if (!cut) {
    return fail(cut.error());
  }
  if (cut->parts.empty()) {  // all of one part
    Task one = task;
    one.machine.device = cut->device;
    one.machine.parts.clear();
    return search(one, options, known);
  }
  machine::Machine machine = task.machine;
  machine.parts = cut->parts;
  machine.device = cut->device;
  std::optional<Answer> all;
  std::optional<Error> mistakes;
  std::map<std::string, double> rates;  // by parts
  for (const std::vector<std::size_t>& way : ways_to_fill(machine.parts.size())) {
    const Task on = on_parts(task, machine, way);
    if (left_out(task, on.fixed.plan.parts)) {
      continue;
    }
    auto one = search(on, options, known);
    const double rate = rates[on.fixed.plan.parts] = rate_of(on, options);
    if (one) {
      scale(*one, rate);
    }
    if (!one) {
      mistakes = mistakes ? mistakes : std::optional(std::move(one.error()));
    } else if (all) {
      merge(*all, std::move(*one), options);
    } else {
      all = std::move(*one);
    }
    if (all && all->stopped) {
      break;
    }
  }
  if (!all && !mistakes) {
    return fail(Error(Mistake{"--only",
                              "parts",
                              {},
                              "some of " + machine::device_group_names(machine) +
                                  " in an order, values between semicolons"}));
  }
  if (!all) {
    return fail(std::move(*mistakes));
  }
  as_of_best(*all, all->top.empty() ? 1 : rates.at(all->top.front().plan.parts));
  std::ranges::stable_sort(all->top, {}, &Found::score);
  put_simple_first(*all, options);
  return std::move(*all);
}

}  // namespace orrery::full
