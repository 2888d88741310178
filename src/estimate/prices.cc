// SPDX-License-Identifier: Apache-2.0
#include "estimate/prices.h"

#include <algorithm>
#include <utility>

#include "collective/token_exchange.h"
#include "estimate/mix.h"

namespace orrery::estimate {
Time PortPhase::time() const {
  double slowdown = 1;
  for (const PortLoad& port : ports) {
    slowdown = std::max(slowdown, port.load);
  }
  return latency + (slowdown > 1 ? serialisation * slowdown : serialisation);
}

void add_ports(PortTimes& times, const std::vector<PortPhase>& phases, std::int64_t often) {
  for (const PortPhase& phase : phases) {
    for (const PortLoad& port : phase.ports) {
      if (port.port < times.size()) {
        times[port.port] += phase.serialisation * port.load * often;
      }
    }
  }
}

void add_ports(PortTimes& times, const PortTimes& more, std::int64_t often) {
  for (std::size_t port = 0; port < times.size(); ++port) {
    times[port] += more[port] * often;
  }
}

Time busiest_port(const PortTimes& times) {
  return *std::max_element(times.begin(), times.end());
}

std::size_t KernelHash::operator()(const graph::Operator& op) const {
  Mix mix;
  mix.add(op.kind);
  mix.add(op.type);
  mix.add(op.gemm.batch);
  mix.add(op.gemm.m);
  mix.add(op.gemm.n);
  mix.add(op.gemm.k);
  mix.add(op.bytes.value());
  mix.add(op.flops.value());
  mix.add(op.kernels);
  mix.add(op.piece);
  return mix.hash();
}

bool SameKernel::operator()(const graph::Operator& a, const graph::Operator& b) const {
  return a.bytes == b.bytes && a.kind == b.kind && a.gemm == b.gemm && a.flops == b.flops &&
         a.type == b.type && a.kernels == b.kernels && a.backward == b.backward &&
         a.library == b.library && a.block_scaled == b.block_scaled &&
         a.splits_sums == b.splits_sums && a.piece == b.piece && a.pieces == b.pieces &&
         a.tracking == b.tracking;
}

std::size_t CollectiveHash::operator()(const CollectiveKey& key) const {
  Mix mix;
  mix.add(key.kind);
  mix.add(key.algorithm);
  mix.add(key.bytes.value());
  mix.add(key.route.copies);
  mix.add(key.route.groups);
  mix.add(key.route.chosen);
  mix.add(key.devices);
  for (const collective::Extent& extent : key.extents) {
    mix.add(extent.dimension);
    mix.add(extent.count);
    mix.add(extent.stride);
  }
  return mix.hash();
}

const compute::KernelTime& Prices::kernel(const graph::Operator& op,
                                          const machine::Machine& machine) {
  if (const auto here = kernels_.find(clocks_); here != kernels_.end()) {
    const auto found = here->second.find(op);
    if (found != here->second.end()) {
      return found->second;
    }
  }
  if (kernel_count_++ == kMostKernels) {
    kernels_.clear();
    kernel_count_ = 1;
  }
  const bool alike = machine.parts.empty();
  compute::KernelTime time =
      compute::kernel_time(op, alike ? machine.device : machine.parts.front().device);
  for (const machine::DeviceGroup& part : machine.parts) {
    const compute::KernelTime one = compute::kernel_time(op, part.device);
    time.alone = std::min(time.alone, one.alone);
    time.beside_message = std::min(time.beside_message, one.beside_message);
    time.beside_collective = std::min(time.beside_collective, one.beside_collective);
  }
  return kernels_[clocks_].emplace(op, time).first->second;
}

const CollectiveTime& Prices::collective(const CollectiveKey& key, const machine::Machine& machine,
                                         const LoadsOf& loads_of) {
  const auto found = collectives_.find(key);
  if (found != collectives_.end()) {
    return found->second;
  }
  if (collectives_.size() == kMostCollectives) {
    collectives_.clear();
  }
  CollectiveTime time;
  time.phases =
      key.route.copies > 0 && !key.extents.empty()
          ? collective::plan_token_exchange(collective::plan_collective, key.bytes, key.route,
                                            key.extents, key.algorithm, machine)
          : collective::plan_collective(key.kind, key.bytes, key.extents, key.algorithm, machine);
  time.alone = collective::total_time(time.phases);
  if (loads_of) {
    for (const collective::CollectivePhase& phase : time.phases) {
      time.on_ports.push_back({.serialisation = phase.serialisation,
                               .latency = phase.latency,
                               .ports = loads_of(phase)});
    }
  }
  return collectives_.emplace(key, std::move(time)).first->second;
}

}  // namespace orrery::estimate
