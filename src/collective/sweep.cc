// SPDX-License-Identifier: Apache-2.0
#include "collective/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "collective/algorithm.h"
#include "collective/chunked.h"

namespace orrery::collective {
namespace {

using Kind = graph::CollectiveKind;
using Algorithm = CollectiveAlgorithm;

/// Rows of a table that somebody may still want to read.
constexpr double kMostRows = 100'000;

/// A schedule of more takes seconds.
constexpr std::int64_t kMostChunks = 4096;

void check_sizes(const SweepOptions& options, Error& mistakes) {
  if (options.smallest < Bytes(1)) {
    mistakes.add({"--min", {}, std::to_string(options.smallest.value()), "at least 1 B"});
  }
  if (options.largest < options.smallest) {
    mistakes.add({"--max", {}, std::to_string(options.largest.value()), "at least --min"});
  }
  const double octaves = std::log(static_cast<double>(options.largest.value()) /
                                  static_cast<double>(options.smallest.value()));
  if (!(options.factor > 1) || octaves / std::log(options.factor) > kMostRows) {
    mistakes.add({"--factor",
                  {},
                  fmt::format("{}", options.factor),
                  "a number above 1, large enough for at most 100,000 rows"});
  }
}

void check_chunks(const SweepOptions& options, Error& mistakes) {
  if (options.chunks < 0 || options.chunks > kMostChunks) {
    mistakes.add({"--chunks",
                  {},
                  std::to_string(options.chunks),
                  fmt::format("a number from 1 to {}", kMostChunks)});
  } else if (options.chunks > 0 && !row_of(options.algorithm).chunks) {
    mistakes.add({"--chunks",
                  {},
                  std::to_string(options.chunks),
                  fmt::format("--algorithm themis or hierarchical; {} is not cut into chunks",
                              name_of(options.algorithm))});
  }
}

std::vector<Extent> check_group(const machine::Machine& machine, const SweepOptions& options,
                                Error& mistakes) {
  if (options.devices < 2 || options.devices > machine::kMostDevices) {
    mistakes.add({"--devices",
                  {},
                  std::to_string(options.devices),
                  fmt::format("a number from 2 to {}", machine::kMostDevices)});
    return {};
  }
  if (options.stride < 1 || options.stride > machine::kMostDevices / options.devices) {
    mistakes.add({"--stride", {}, std::to_string(options.stride), "ranks between members, from 1"});
    return {};
  }
  if (auto cut = machine::with_devices(machine, options.devices * options.stride); !cut) {
    mistakes.add(
        {"--devices", {}, std::to_string(options.devices), cut.error().mistakes.front().expected});
    return {};
  }
  return extents_of(options.stride, options.devices, machine);
}

/// Returns the devices asked for, as a simulation has them: 16 of a rack of 72 do not cross its
/// border.
machine::Machine machine_of(const machine::Machine& machine, const SweepOptions& options) {
  const bool in_range = options.devices >= 1 && options.devices <= machine::kMostDevices &&
                        options.stride >= 1 &&
                        options.stride <= machine::kMostDevices / options.devices;
  const auto cut = machine::with_devices(machine, in_range ? options.devices * options.stride : 0);
  return cut ? *cut : machine::expand_shapes(machine);
}

std::vector<CollectivePhase> phases_of(const machine::Machine& machine, const SweepOptions& options,
                                       const std::vector<Extent>& extents, Bytes bytes) {
  if (options.chunks == 0) {
    return plan_collective(options.kind, bytes, extents, options.algorithm, machine);
  }
  return plan_chunked(
      options.kind, bytes, extents,
      {.scheduler = row_of(options.algorithm).chunks.value_or(ChunkScheduler::natural),
       .chunks = static_cast<int>(options.chunks),
       .or_fewer = false},
      machine);
}

/// Sizes from the smallest on, each `factor` times the one before and at least a byte more.
std::vector<Bytes> sizes_of(const SweepOptions& options) {
  std::vector<Bytes> sizes;
  constexpr double kMostBytes = 9e18;  // that Bytes holds
  const double end = std::min(static_cast<double>(options.largest.value()) + 0.5, kMostBytes);
  auto size = static_cast<double>(options.smallest.value());
  while (size <= end) {
    const Bytes bytes(std::llround(size));
    if (bytes <= options.largest && (sizes.empty() || bytes > sizes.back())) {
      sizes.push_back(bytes);
    }
    size *= options.factor;
  }
  return sizes;
}

}  // namespace

std::optional<Kind> collective_named(std::string_view name) {
  constexpr std::array<Named<Kind>, 2> kAliases{
      {{Kind::all_to_all, "alltoall", {}}, {Kind::send_recv, "sendrecv", {}}}};
  for (const Named<Kind>& alias : kAliases) {
    if (alias.name == name) {
      return alias.value;
    }
  }
  return value_of<Kind>(name);
}

std::optional<CollectiveAlgorithm> algorithm_named(std::string_view name) {
  for (const AlgorithmRow& row : algorithms()) {
    if (!row.alias.empty() && row.alias == name) {
      return row.value;
    }
  }
  return value_of<CollectiveAlgorithm>(name);
}

std::string algorithm_names() {
  std::string text = all_names<CollectiveAlgorithm>();
  for (const AlgorithmRow& row : algorithms()) {
    text += row.alias.empty() ? "" : ", " + std::string(row.alias);
  }
  return text;
}

double bus_factor(Kind kind, std::int64_t members) {
  const auto n = static_cast<double>(members);
  switch (kind) {
    case Kind::all_reduce:
      return 2 * (n - 1) / n;
    case Kind::all_gather:
    case Kind::reduce_scatter:
    case Kind::all_to_all:
      return (n - 1) / n;
    case Kind::broadcast:
    case Kind::send_recv:
      return 1;
  }
  return 1;
}

Result<SweepCase> sweep_case(const machine::Machine& machine, const SweepOptions& options) {
  Error mistakes;
  SweepCase on{.machine = machine_of(machine, options), .extents = {}, .sizes = {}};
  check_sizes(options, mistakes);
  check_chunks(options, mistakes);
  on.extents = check_group(on.machine, options, mistakes);
  if (!on.extents.empty() && !performs(options.kind, options.algorithm, on.extents, on.machine)) {
    mistakes.add({"--algorithm",
                  {},
                  std::string(name_of(options.algorithm)),
                  fmt::format("one that does {} over {} devices of {}: {}", name_of(options.kind),
                              options.devices, machine.name,
                              possible_algorithms(options.kind, on.extents, on.machine))});
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  on.sizes = sizes_of(options);
  return on;
}

SweepRow sweep_row(const SweepCase& on, const SweepOptions& options, Bytes bytes,
                   const std::vector<CollectivePhase>& phases, Time time) {
  const CollectivePhase& first = phases.front();
  const auto dimension = static_cast<std::size_t>(first.ports.front().extent.dimension);
  const auto& protocols = protocols_of(first.kind, first.algorithm, on.machine.network[dimension]);
  const double algbw = static_cast<double>(bytes.value()) / to_seconds(time);
  return {.bytes = bytes,
          .time = time,
          .algbw = algbw,
          .busbw = algbw * bus_factor(options.kind, options.devices),
          .algorithm = phases.size() == 1 ? first.algorithm : options.algorithm,
          .protocol = first.protocol < 0
                          ? std::string()
                          : protocols[static_cast<std::size_t>(first.protocol)].name};
}

Result<std::vector<SweepRow>> sweep_collective(const machine::Machine& machine,
                                               const SweepOptions& options) {
  return sweep_case(machine, options).map([&](const SweepCase& on) {
    std::vector<SweepRow> rows;
    for (const Bytes bytes : on.sizes) {
      const auto phases = phases_of(on.machine, options, on.extents, bytes);
      rows.push_back(sweep_row(on, options, bytes, phases, total_time(phases)));
    }
    return rows;
  });
}

}  // namespace orrery::collective
