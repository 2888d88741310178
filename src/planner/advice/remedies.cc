// SPDX-License-Identifier: Apache-2.0
#include "planner/advice/remedies.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "planner/advice/least_memory.h"
#include "workload/memory/footprint.h"

namespace orrery::advice {
namespace {

constexpr std::int64_t kNeighbours = 16;
constexpr std::int64_t kFarNeighbours = 64;
constexpr std::int64_t kEighths = 8;
constexpr std::int64_t kMostTimes = 64;
constexpr std::int64_t kMostBatch = std::int64_t{1} << 40;  // more is no batch to advise on
constexpr Bytes kRounded = 16_MiB;
constexpr double kNear = 1.01;

double ratio_of(std::int64_t a, std::int64_t b) {
  return static_cast<double>(std::max(a, b)) / static_cast<double>(std::min(a, b));
}

/// Returns the nearest to `from` first, by ratio; of two as near the smaller.
std::vector<std::int64_t> nearest_first(const std::set<std::int64_t>& numbers, std::int64_t from) {
  std::vector<std::int64_t> order;
  for (const std::int64_t number : numbers) {
    if (number >= 1 && number != from) {
      order.push_back(number);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return ratio_of(a, from) < ratio_of(b, from);
  });
  return order;
}

class Remedies {
 public:
  Remedies(const full::Task& task, const full::Options& options, const Progress& progress)
      : task_(task), options_(options), progress_(progress) {}

  /// Returns the plan of least memory; `needed`: a bound of what the most frugal plan takes.
  std::optional<full::Found> add_memory(Bytes needed) {
    const Bytes usable = usable_memory(task_, options_);
    auto least = least_memory(task_, options_, usable, std::max(needed, usable + Bytes(1)), kNear);
    done(0.3);
    if (!least) {
      return least;
    }
    const Bytes rounded =
        (least->memory + kRounded - Bytes(1)) / kRounded.value() * kRounded.value();
    full::Task task = task_;
    full::Options options = options_;
    use_memory(task, options, rounded);
    add(Remedied::memory, {usable.value(), rounded.value()}, task, options);
    return least;
  }

  void add_devices(bool also_fewer) {
    std::set<std::int64_t> numbers;
    for (std::int64_t i = 1; i <= kNeighbours; ++i) {
      numbers.insert(task_.devices + i);
      numbers.insert(also_fewer ? task_.devices - i : task_.devices);
    }
    for (std::int64_t times = 1; times < kMostTimes; times *= 2) {
      for (std::int64_t eighths = kEighths + 1; eighths <= 2 * kEighths; ++eighths) {
        numbers.insert(task_.devices * times * eighths / kEighths);
      }
    }
    first_of(Remedied::devices, task_.devices, numbers,
             [](full::Task& task, std::int64_t devices) { task.devices = devices; });
  }

  void add_batch(bool divides) {
    const std::int64_t batch = task_.fixed.plan.global_batch;
    std::set<std::int64_t> numbers;
    if (divides) {
      for (std::int64_t times = 2; times <= kEighths; times *= 2) {
        numbers.insert(batch * times);
        numbers.insert(batch / times);
      }
      numbers.insert(batch * 3 / 4);
      numbers.insert(batch * 3 / 2);
    } else {
      const std::int64_t multiple = batch / task_.devices * task_.devices;
      numbers = {multiple, multiple + task_.devices};
      for (std::int64_t i = 1; i <= kFarNeighbours; ++i) {
        numbers.insert(batch + i);
        numbers.insert(batch - i);
      }
    }
    first_of(Remedied::batch, batch, numbers,
             [](full::Task& task, std::int64_t number) { task.fixed.plan.global_batch = number; });
  }

  std::vector<Remedy> sorted() && {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Remedy& a, const Remedy& b) { return a.change() < b.change(); });
    return std::move(found_);
  }

 private:
  template <class Change>
  void first_of(Remedied changed, std::int64_t from, const std::set<std::int64_t>& numbers,
                const Change& change) {
    const std::vector<std::int64_t> order = nearest_first(numbers, from);
    const double before = done_;
    const double most = changed == Remedied::devices ? 0.7 : 1;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::int64_t number = order[i];
      done(before + (most - before) * static_cast<double>(i) / static_cast<double>(order.size()));
      if (options_.go_on && !options_.go_on()) {
        return;
      }
      full::Task task = task_;
      change(task, number);
      if (any_plan(task, options_)) {
        add(changed, {from, number}, task, options_);
        break;
      }
    }
    done(most);
  }

  void done(double share) {
    done_ = share;
    if (progress_) {
      progress_(share);
    }
  }

  void add(Remedied changed, std::pair<std::int64_t, std::int64_t> from_to, const full::Task& task,
           const full::Options& options) {
    if (auto best = good_plan(task, options)) {
      found_.push_back({changed, from_to.first, from_to.second, std::move(*best)});
    }
  }

  const full::Task& task_;
  const full::Options& options_;
  const Progress& progress_;
  double done_ = 0;  ///< of all that is tried
  std::vector<Remedy> found_;
};

void take_frugal(full::Task task, full::Options options, const full::Found& least,
                 full::Answer& answer) {
  use_memory(task, options, usable_memory(task, options));
  answer.least_memory = least.memory;
  answer.frugal = least.plan;
  const auto stages = footprint::memory_footprint(task.model, least.plan, &task.machine);
  if (auto fits = stages ? footprint::check_fits(*stages, task.machine) : Result<void>(); !fits) {
    answer.missing = std::move(fits.error());
  }
}

}  // namespace

double Remedy::change() const {
  return from > 0 ? ratio_of(from, to) : static_cast<double>(to);
}

std::vector<Remedy> remedies(const full::Task& task, const full::Options& options,
                             Result<full::Answer>& answer, const Progress& progress) {
  if (!full::Space::of(task) || task.fixed.plan.global_batch > kMostBatch) {
    return {};
  }
  Remedies found(task, options, progress);
  if (answer && !task.machine.device.memory.empty()) {
    if (const auto least = found.add_memory(answer->least_memory)) {
      take_frugal(task, options, *least, *answer);
    }
  }
  found.add_devices(!answer);
  found.add_batch(answer.has_value());
  return std::move(found).sorted();
}

}  // namespace orrery::advice
