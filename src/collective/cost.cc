// SPDX-License-Identifier: Apache-2.0
#include "collective/cost.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "collective/algorithm.h"
#include "collective/flat.h"
#include "collective/price.h"

namespace orrery::collective {
namespace {

using Kind = graph::CollectiveKind;
using Algorithm = CollectiveAlgorithm;

/// One phase over the given extents.
template <class Emit>
void emit_phase(Kind kind, Bytes size, std::span<const Extent> extents, Algorithm algorithm,
                const machine::Machine& machine, const Emit& emit) {
  const PhaseRequest request{.kind = kind,
                             .size = static_cast<double>(size.value()),
                             .members = static_cast<double>(members_of(extents)),
                             .extents = extents,
                             .machine = machine};
  emit(kind, size, extents, price_phase(request, algorithm));
}

/// A phase per dimension: outwards for reduce_scatter and all_to_all, inwards for all_gather and
/// broadcast, there and back for all_reduce.
template <class Emit>
void emit_hierarchy(Kind kind, Bytes size, std::span<const Extent> extents, Algorithm algorithm,
                    const machine::Machine& machine, const Emit& emit) {
  const auto phase = [&](Kind part, std::size_t i) {
    const bool shrinks = kind != Kind::all_to_all && kind != Kind::broadcast;
    const Bytes inside = shrinks ? size / members_of(extents.first(i)) : size;
    emit_phase(part, inside, extents.subspan(i, 1), algorithm, machine, emit);
  };
  const std::size_t outermost = extents.size() - 1;
  if (kind == Kind::reduce_scatter || kind == Kind::all_reduce || kind == Kind::all_to_all) {
    for (std::size_t i = 0; i < outermost; ++i) {
      phase(kind == Kind::all_reduce ? Kind::reduce_scatter : kind, i);
    }
  }
  phase(kind, outermost);
  if (kind == Kind::all_gather || kind == Kind::all_reduce || kind == Kind::broadcast) {
    for (std::size_t i = outermost; i-- > 0;) {
      phase(kind == Kind::all_reduce ? Kind::all_gather : kind, i);
    }
  }
}

bool goes_by_dimension(Kind kind, const AlgorithmRow& row) {
  return row.by_dimension != nullptr && row.by_dimension(kind);
}

template <class Emit>
void emit_collective(Kind kind, Bytes size, std::span<const Extent> extents, Algorithm algorithm,
                     const machine::Machine& machine, const Emit& emit) {
  if (extents.empty() || size <= Bytes(0)) {
    return;
  }
  if (extents.size() > 1 && goes_by_dimension(kind, row_of(algorithm))) {
    emit_hierarchy(kind, size, extents, algorithm, machine, emit);
  } else {
    emit_phase(kind, size, extents, algorithm, machine, emit);
  }
}

}  // namespace

const std::vector<topology::Protocol>& protocols_of(Kind kind, Algorithm algorithm,
                                                    const topology::NetworkDimension& dimension) {
  if (const auto own = row_of(algorithm).protocols) {
    return dimension.*own;
  }
  return exchanges(kind) && !dimension.exchange.empty() ? dimension.exchange : dimension.protocols;
}

bool performs(Kind kind, Algorithm algorithm, const std::vector<Extent>& extents,
              const machine::Machine& machine) {
  if (algorithm == Algorithm::automatic || extents.empty()) {
    return true;
  }
  const AlgorithmRow& row = row_of(algorithm);
  if (row.performs != nullptr) {
    return row.performs(kind);
  }
  if (extents.size() > 1 && goes_by_dimension(kind, row)) {
    return row.counts == nullptr ||  // auto in each
           std::all_of(extents.begin(), extents.end(), [&](const Extent& extent) {
             return performs(kind, algorithm, {extent}, machine);
           });
  }
  const PhaseRequest request{.kind = kind,
                             .size = 1,
                             .members = static_cast<double>(members_of(extents)),
                             .extents = extents,
                             .machine = machine};
  return std::isfinite(price_algorithm(request, algorithm).longest);
}

std::string possible_algorithms(Kind kind, const std::vector<Extent>& extents,
                                const machine::Machine& machine) {
  std::string names;
  for (const Named<Algorithm>& algorithm : kNames<Algorithm>) {
    if (performs(kind, algorithm.value, extents, machine)) {
      names += (names.empty() ? "" : ", ") + std::string(algorithm.name);
    }
  }
  return names;
}

std::vector<CollectivePhase> plan_collective(Kind kind, Bytes size,
                                             const std::vector<Extent>& extents,
                                             Algorithm algorithm, const machine::Machine& machine) {
  if (const auto plan = row_of(algorithm).plan) {
    return plan(kind, size, extents, machine);
  }
  std::vector<CollectivePhase> phases;
  const auto append = [&](Kind part, Bytes bytes, std::span<const Extent> over,
                          const PricedPhase& priced) {
    CollectivePhase phase{.kind = part,
                          .algorithm = priced.algorithm,
                          .protocol = priced.protocol,
                          .size = bytes,
                          .latency = from_seconds(priced.latency),
                          .waits = from_seconds(priced.waits),
                          .sends = from_seconds(priced.sends),
                          .serialisation = from_seconds(priced.longest),
                          .ports = {}};
    phase.ports.reserve(over.size());
    double inside = 1;
    for (std::size_t i = 0; i < over.size(); ++i) {
      phase.ports.push_back({.extent = over[i],
                             .serialisation = from_seconds(priced.busy[i].own),
                             .protocol = i == 0 ? priced.protocol : priced.protocols[i],
                             .port = from_seconds(priced.busy[i].port),
                             .through = from_seconds(priced.busy[i].through),
                             .node = from_seconds(priced.busy[i].node / inside)});
      inside *= static_cast<double>(over[i].count);
    }
    phases.push_back(std::move(phase));
  };
  emit_collective(kind, size, extents, algorithm, machine, append);
  return phases;
}

Time total_time(const std::vector<CollectivePhase>& phases) {
  Time total{0};
  for (const CollectivePhase& phase : phases) {
    total += phase.latency + phase.serialisation;
  }
  return total;
}

Time collective_time(Kind kind, Bytes size, const std::vector<Extent>& extents, Algorithm algorithm,
                     const machine::Machine& machine) {
  if (const auto plan = row_of(algorithm).plan) {
    return total_time(plan(kind, size, extents, machine));
  }
  Time total{0};
  const auto add = [&](Kind, Bytes, std::span<const Extent>, const PricedPhase& priced) {
    total += from_seconds(priced.latency) + from_seconds(priced.longest);
  };
  emit_collective(kind, size, extents, algorithm, machine, add);
  return total;
}

}  // namespace orrery::collective
