// SPDX-License-Identifier: Apache-2.0
#include "planner/full/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/beyond_time.h"
#include "base/lists.h"
#include "machine/device_groups.h"
#include "planner/full/search_state.h"
#include "workload/interop/capabilities.h"
#include "workload/plan/machine_check.h"
#include "workload/plan/schedule_row.h"

namespace orrery::full {

namespace {

/// Returns the task without the memory that stays free.
Task usable(Task task, Bytes reserve) {
  machine::change_devices(task.machine, [&](compute::Device& device) {
    if (!device.memory.empty()) {
      Bytes& own = device.memory.front().capacity;
      own = std::max(Bytes(0), own - reserve);
    }
  });
  return task;
}

}  // namespace

Knowledge::OfMachine::OfMachine(const Task& of_task, const Options& options)
    : task(usable(of_task, options.reserve)),
      bounds(task.model, task.machine),
      score(options.objective, task.machine, bounds),
      estimator(task, score, options.threads) {}

Knowledge::Knowledge() = default;
Knowledge::~Knowledge() = default;
Knowledge::Knowledge(Knowledge&&) noexcept = default;
Knowledge& Knowledge::operator=(Knowledge&&) noexcept = default;

Knowledge::OfMachine& Knowledge::of(const Task& task, const Options& options) {
  std::unique_ptr<OfMachine>& known = by_parts_[task.fixed.plan.parts];
  if (!known) {
    known = std::make_unique<OfMachine>(task, options);
  }
  return *known;
}

SearchState::SearchState(const Task& of_task, const Options& with, Space of_space,
                         Knowledge::OfMachine& known)
    : task(usable(of_task, with.reserve)),
      options(with),
      space(std::move(of_space)),
      groups(space.groups()),
      bounds(known.bounds),
      score(known.score),
      estimator(known.estimator),
      open(options.exhaustive) {
  std::optional<Bytes> most;
  machine::change_devices(task.machine, [&](const compute::Device& device) {
    if (!device.memory.empty()) {
      most = std::max(most.value_or(Bytes(0)), device.memory.front().capacity);
    }
  });
  capacity = most.value_or(capacity);
}

bool SearchState::stop() {
  answer.stopped = answer.stopped || (options.go_on && !options.go_on());
  return answer.stopped;
}

bool SearchState::valid(const plan::Plan& plan) {
  auto checked = plan::check(plan, task.model);
  if (checked) {
    checked = plan::check_machine(plan, task.machine);
  }
  if (!checked && first_mistakes.empty()) {
    first_mistakes = std::move(checked.error());
  }
  return checked.has_value();
}

bool SearchState::runs(const plan::Plan& plan) {
  if (!valid(plan)) {
    return false;
  }
  const bool can = task.launcher.empty() || interop::can_run(task.launcher, plan, &task.model);
  if (!can && first_mistakes.empty()) {
    for (interop::Remark& remark : interop::incapable(task.launcher, plan, &task.model)) {
      first_mistakes.add({{}, remark.about, {}, std::move(remark.sentence)});
    }
  }
  return can;
}

std::uint64_t SearchState::count_of(const plan::Plan& group) {
  const bool alike = task.launcher.empty() && task.machine.parts.empty();
  const std::array<std::int64_t, 4> degrees{group.tp, group.cp, group.pp, group.ep};
  if (const auto known = counts_.find(degrees); alike && known != counts_.end()) {
    return known->second;
  }
  std::uint64_t count = 0;
  for (const plan::Plan& shape : space.shapes(group)) {
    count += space.variant_count(shape);
  }
  counts_[degrees] = count;
  return count;
}

Candidate* SearchState::estimate(const plan::Plan& plan, Time bound, Bytes memory) {
  const auto interval = estimator.estimate(plan);
  if (!interval) {
    return nullptr;
  }
  const Time value = score.of(plan, interval->value);
  if (bound > Time(0)) {
    open.learn_value(plan, value / bound);
  }
  candidates.push_back({plan, bound, value, interval->value, memory});
  return &candidates.back();
}

std::pair<bool, Bytes> SearchState::memory(const plan::Plan& plan) {
  constexpr std::size_t kBoundsOfMemory = 2;
  asked += kBoundsOfMemory;
  return estimator.memory(plan);
}

bool SearchState::has_room(const std::vector<plan::Plan>& frugal) {
  const bool some = std::ranges::any_of(frugal, [&](const plan::Plan& plan) {
    const auto least = bounds.least_memory(plan);
    return least && *least <= capacity;
  });
  for (const plan::Plan& plan : frugal) {
    if (!some) {
      remember_frugal(plan);
    }
  }
  return some;
}

SearchState::StateWays SearchState::ways_of(const std::vector<plan::Plan>& variants) {
  StateWays ways;
  Bytes least = Bytes::max();
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const auto held = bounds.least_states(variants[i]);
    if (held && *held < least) {
      least = *held;
      ways.frugal = i;
    }
    const bool known = std::ranges::any_of(ways.with_room, [&](std::size_t lighter) {
      plan::Plan same = variants[i];
      same.offload_optimizer = plan::Offload::none;
      return same == variants[lighter];
    });
    if (!known && (!held || *held <= capacity)) {
      ways.with_room.push_back(i);
    }
  }
  return ways;
}

std::vector<plan::Plan> SearchState::states_with_room(const plan::Plan& shape) {
  std::vector<plan::Plan> variants = space.variants_to_save(shape);
  const bool alike = task.launcher.empty();
  const std::array<std::int64_t, 9> key{shape.tp,
                                        shape.cp,
                                        shape.pp,
                                        shape.dp,
                                        shape.ep,
                                        shape.etp,
                                        shape.microbatches() > 1 ? 1 : 0,
                                        row_of(shape.schedule).both_ends ? 1 : 0,
                                        plan::ends_meet(shape) ? 1 : 0};
  const auto known = alike ? ways_.find(key) : ways_.end();
  const StateWays found = known != ways_.end() ? known->second : ways_of(variants);
  if (alike && known == ways_.end()) {
    ways_.emplace(key, found);
  }
  std::vector<plan::Plan> with_room =
      mapped(found.with_room, [&](std::size_t variant) { return std::move(variants[variant]); });
  if (with_room.empty() && candidates.empty() && !variants.empty()) {  // it tells what is lacking
    with_room.push_back(std::move(variants[found.frugal]));
  }
  return with_room;
}

void SearchState::remember_frugal(const plan::Plan& plan) {
  if (!candidates.empty()) {
    return;
  }
  const auto least = bounds.least_memory(plan);
  if (least && (answer.least_memory == Bytes(0) || *least < answer.least_memory)) {
    answer.least_memory = *least;
    answer.frugal = plan;
  }
}

namespace {

plan::Plan exchanging(plan::Plan plan, const plan::Plan& as) {
  plan.order = as.order;
  plan.moe_dispatch = as.moe_dispatch;
  plan.cp_exchange = as.cp_exchange;
  plan.overlap_tensor = as.overlap_tensor;
  return plan;
}

/// Returns whether it is not the exchange alone that is wrong with the plan: then so it is with all
/// of the group that exchange like this, since it depends on their degrees.
bool can_exchange(const zoo::Model& model, const plan::Plan& plain) {
  const auto checked = plan::check(plain, model);
  return checked || std::ranges::any_of(checked.error().mistakes, [](const Mistake& mistake) {
           return mistake.field != "cp_exchange";
         });
}

}  // namespace

void SearchState::drop_invalid(std::vector<plan::Plan>& exchanges,
                               std::vector<plan::Plan>& states) {
  std::vector<bool> exchanged(exchanges.size(), false);
  std::vector<bool> held(states.size(), false);
  for (std::size_t e = 0; e < exchanges.size(); ++e) {
    for (std::size_t s = 0; s < states.size(); ++s) {
      if (exchanged[e] && held[s]) {
        continue;  // mistakes of one are not the other's: few pairs need a check
      }
      const plan::Plan one = exchanging(states[s], exchanges[e]);
      if (valid(one)) {
        exchanged[e] = held[s] = true;
      } else if (!can_exchange(task.model, one)) {
        break;
      }
    }
  }
  std::size_t number = 0;
  std::erase_if(exchanges, [&](const plan::Plan&) { return !exchanged[number++]; });
  number = 0;
  std::erase_if(states, [&](const plan::Plan&) { return !held[number++]; });
}

std::optional<Time> SearchState::least_of(const plan::Plan& plain,
                                          std::vector<plan::Plan> exchanges,
                                          const std::vector<std::string>& orders) {
  std::vector<plan::Plan> states = states_with_room(plain);
  if (states.empty()) {
    return std::nullopt;
  }
  drop_invalid(exchanges, states);
  Time least = Time::max();
  for (const plan::Plan& exchange : with_each(exchanges, &plan::Plan::order, orders)) {
    for (const plan::Plan& state : states) {
      const plan::Plan one = exchanging(state, exchange);
      const auto bound = bounds.least_kernels(one);
      least = std::min(least, bound ? score.of(one, *bound) : Time(0));
    }
  }
  return least == Time::max() ? Time(0) : least;
}

std::optional<Time> SearchState::least_of_exchanges(const plan::Plan& shape) {
  plan::Plan plain = Space::plainest(shape);
  plain.overlap_tensor = shape.overlap_tensor;
  return least_of(plain, {plain}, {shape.order});
}

std::optional<Time> SearchState::least_of_group(const plan::Plan& group) {
  plan::Plan plain = Space::plainest(group);
  const std::vector<std::string> orders = space.orders(group);
  plain.order = orders.front();  // which none of check()'s mistakes depends on
  auto exchanges = with_each({plain}, &plan::Plan::moe_dispatch, space.dispatches(group));
  exchanges = with_each(exchanges, &plan::Plan::cp_exchange, space.context_exchanges(group));
  exchanges = with_each(exchanges, &plan::Plan::overlap_tensor, space.tensor_overlaps(group));
  return least_of(plain, std::move(exchanges), orders);
}

Result<void> open_groups(SearchState& search) {
  const auto mistakes = [&] {
    Error mistakes = search.space.base_mistakes();
    mistakes.add(Error("no plan: no split of " + std::to_string(search.task.devices) +
                       " devices and of the batch suits the model and what is fixed"));
    return fail(std::move(mistakes));
  };
  Counts& counts = search.answer.counts;
  for (const plan::Plan& group : search.groups) {
    if (search.stop() && counts.all > 0) {
      search.left = Time(0);  // counting the others may take minutes
      break;
    }
    const std::optional<Time> least = search.least_of_group(group);
    const std::uint64_t plans = search.count_of(group);
    counts.all += plans;
    if (!least) {
      counts.by_memory += plans;
    } else if (*least >= search.kept_below() && search.has_enough()) {
      counts.by_bound += plans;
      search.left = std::min(search.left, *least);
    } else {
      search.open.put_back({.bound = *least, .level = Level::group, .plan = group, .plans = plans});
    }
  }
  return counts.all > 0 ? Result<void>() : mistakes();
}

namespace {

Result<Answer> run(const Task& task, const Options& options, Space space, Knowledge& known) {
  const auto begin = std::chrono::steady_clock::now();
  SearchState search(task, options, std::move(space), known.of(task, options));
  warm_start(search);
  if (auto opened = open_groups(search); !opened) {
    return fail(std::move(opened.error()));
  }
  explore(search);
  certify(search);
  if (search.answer.counts.invalid == search.answer.counts.all) {
    return fail(std::move(search.first_mistakes));
  }
  if (search.answer.fits_nowhere() && search.answer.counts.by_bound > 0) {  // of no plan's time
    return fail(fmt::format("every plan that fits {}", kBeyondTime));
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  search.answer.wall_s = wall.count();
  return std::move(search.answer);
}

}  // namespace

Result<Answer> search(const Task& task, const Options& options) {
  Knowledge none;
  return search(task, options, none);
}

Result<Answer> search(const Task& task, const Options& options, Knowledge& known) {
  if (const std::string field = searched_apart(task); !field.empty()) {
    return search_each(task, field, options, known);
  }
  if (leaves_rounds_open(task)) {
    return search_rounds(task, options, known);
  }
  if (!task.machine.parts.empty() && !task.fixed.places.contains("parts")) {
    return search_device_groups(task, options, known);
  }
  Task own = task;
  auto arranged = machine::arranged(task.machine, task.fixed.plan.parts);
  if (!arranged) {
    return fail(task.fixed.placed(std::move(arranged.error())));
  }
  own.machine = std::move(*arranged);
  auto space = Space::of(own);
  if (!space) {
    return fail(std::move(space.error()));
  }
  return run(own, options, std::move(*space), known);
}

}  // namespace orrery::full
