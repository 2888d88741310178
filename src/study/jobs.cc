// SPDX-License-Identifier: Apache-2.0
#include "study/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "base/collect.h"
#include "base/lists.h"
#include "graph/compose.h"
#include "study/overflow.h"

namespace orrery::study {
namespace {

/// Devices in the order in which a placement takes them.
std::vector<std::int64_t> order_of(Placement placement, std::int64_t devices, std::int64_t node,
                                   std::mt19937_64& random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(devices));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (placement == Placement::rail_aligned) {
    std::ranges::stable_sort(order, {}, [&](std::int64_t device) { return device % node; });
  } else if (placement == Placement::random) {
    for (std::size_t i = order.size(); i > 1; --i) {  // that of <algorithm> is the library's affair
      std::swap(order[i - 1], order[random() % i]);
    }
  }
  return order;
}

/// Returns the free devices, the first of each node in turn.
std::vector<std::int64_t> spread(const std::vector<bool>& taken, std::int64_t node) {
  std::vector<std::pair<std::int64_t, std::int64_t>> order;  // turn, device
  std::vector<std::int64_t> turns(taken.size() / static_cast<std::size_t>(node) + 1);
  for (std::size_t device = 0; device < taken.size(); ++device) {
    if (!taken[device]) {
      std::int64_t& turn = turns[device / static_cast<std::size_t>(node)];
      order.emplace_back(turn++, static_cast<std::int64_t>(device));
    }
  }
  std::ranges::sort(order);
  return mapped(order, [](const auto& entry) { return entry.second; });
}

std::optional<Error> take_stated(const Job& job, std::vector<bool>& taken) {
  const auto refuse = [&](std::string expected) {
    return Error(Mistake{job.name, "ranks", {}, std::move(expected)});
  };
  if (std::ssize(job.ranks) != job.workload.ranks) {
    return refuse(fmt::format("{} devices, one for each rank", job.workload.ranks));
  }
  for (const std::int64_t device : job.ranks) {
    if (device < 0 || device >= std::ssize(taken)) {
      return refuse(fmt::format("devices below {}, not {}", taken.size(), device));
    }
    if (taken[static_cast<std::size_t>(device)]) {
      return refuse(fmt::format("device {} once; it is given twice", device));
    }
    taken[static_cast<std::size_t>(device)] = true;
  }
  return std::nullopt;
}

Result<simulate::Timeline> run(std::span<const graph::PlacedJob> placed,
                               const machine::Machine& machine, std::int64_t devices,
                               simulate::SimulateOptions options) {
  return graph::compose(placed, devices).and_then([&](const graph::Composition& composed) {
    for (std::size_t j = 0; j < placed.size(); ++j) {
      for (std::size_t g = 0; g < placed[j].kinds.size(); ++g) {
        options.algorithms.set(composed.groups[j][g],
                               static_cast<collective::CollectiveAlgorithm>(placed[j].kinds[g]));
      }
    }
    return simulate_in_range(composed.workload, machine, options);
  });
}

/// Returns the job's communicators by algorithm, each a kind of its own.
std::vector<int> algorithms_of(const Job& job) {
  std::vector<int> kinds;
  for (std::size_t g = 0; g < job.workload.groups.size(); ++g) {
    kinds.push_back(static_cast<int>(job.algorithms[graph::GroupIndex(g)]));
  }
  return kinds;
}

Time finish_of(const simulate::Timeline& timeline, const std::vector<std::int64_t>& ranks) {
  Time finish{0};
  for (const std::int64_t rank : ranks) {
    finish = std::max(finish, timeline.finish[static_cast<std::size_t>(rank)]);
  }
  return finish;
}

}  // namespace

Result<std::vector<std::vector<std::int64_t>>> place(const JobsFile& file, std::int64_t devices,
                                                     std::int64_t node) {
  std::vector<bool> taken(static_cast<std::size_t>(devices));
  std::vector<std::vector<std::int64_t>> places(file.jobs.size());
  Error error;
  for (std::size_t j = 0; j < file.jobs.size(); ++j) {
    places[j] = file.jobs[j].ranks;
    if (!places[j].empty()) {
      if (auto refused = take_stated(file.jobs[j], taken)) {
        error.add(std::move(*refused));
      }
    }
  }
  std::mt19937_64 random(file.seed);
  for (std::size_t j = 0; j < file.jobs.size() && error.empty(); ++j) {
    const Job& job = file.jobs[j];
    if (!places[j].empty()) {
      continue;
    }
    const auto order = job.placement == Placement::spread
                           ? spread(taken, node)
                           : order_of(job.placement, devices, node, random);
    for (const std::int64_t device : order) {
      if (std::ssize(places[j]) < job.workload.ranks && !taken[static_cast<std::size_t>(device)]) {
        places[j].push_back(device);
        taken[static_cast<std::size_t>(device)] = true;
      }
    }
    if (std::ssize(places[j]) < job.workload.ranks) {
      error.add(Error(fmt::format("{} needs {} devices, {} of {} are left", job.name,
                                  job.workload.ranks, places[j].size(), devices)));
    }
  }
  return or_mistakes(std::move(places), std::move(error));
}

Result<JobsRun> run_jobs(const JobsFile& file, const machine::Machine& machine,
                         std::int64_t devices, const simulate::SimulateOptions& options) {
  const std::int64_t node =
      machine.network.empty() ? 1 : std::max<std::int64_t>(1, machine.network.front().size);
  if (devices == 0) {
    for (const Job& job : file.jobs) {
      devices += job.workload.ranks;
    }
    devices = (devices + node - 1) / node * node;
  }
  auto fitted = machine::with_devices(machine, devices);
  if (!fitted) {
    return fail(std::move(fitted.error()));
  }
  auto places = place(file, devices, node);
  if (!places) {
    return fail(std::move(places.error()));
  }
  std::vector<graph::PlacedJob> placed;
  for (std::size_t j = 0; j < file.jobs.size(); ++j) {
    const Job& job = file.jobs[j];
    placed.push_back({job.name, &job.workload, (*places)[j], job.start, algorithms_of(job)});
  }
  JobsRun result{.machine = std::move(*fitted), .devices = devices, .network = options.network};
  const auto together = run(placed, result.machine, devices, options);
  if (!together) {
    return fail(together.error());
  }
  if (together->stopped) {
    return fail(together->stopped->why);
  }
  result.end = together->step_time;
  result.events = together->events;
  for (std::size_t j = 0; j < placed.size(); ++j) {
    const auto alone = run(std::span(placed).subspan(j, 1), result.machine, devices, options);
    if (!alone) {
      return fail(alone.error());
    }
    if (alone->stopped) {
      return fail(alone->stopped->why);
    }
    const Time start = placed[j].start;
    JobResult& job = result.jobs.emplace_back(
        JobResult{.name = placed[j].name, .ranks = placed[j].ranks, .start = start});
    job.finish = finish_of(*together, job.ranks);
    job.alone = finish_of(*alone, job.ranks) - start;
    job.slowdown = job.alone > Time(0) ? to_seconds(job.finish - start) / to_seconds(job.alone) : 1;
  }
  return result;
}

}  // namespace orrery::study
