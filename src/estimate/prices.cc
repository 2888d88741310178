// SPDX-License-Identifier: Apache-2.0
#include "estimate/prices.h"

#include <algorithm>
#include <cmath>

namespace orrery::estimation {
namespace {

class Mix {
 public:
  template <class Number>
  void add(Number number) {
    hash_ = (hash_ ^ static_cast<std::size_t>(number)) * 0x9e3779b97f4a7c15U;
    hash_ ^= hash_ >> 29;
  }
  std::size_t hash() const { return hash_; }

 private:
  std::size_t hash_ = 0;
};

PortPhase port_phase(const CollectivePhase& phase, const CollectiveKey& key,
                     const std::vector<int>& nics) {
  PortPhase result{.latency = phase.latency};
  for (const PortUse& port : phase.ports) {
    result.serialisation = std::max(result.serialisation, port.serialisation);
  }
  for (const PortUse& port : phase.ports) {
    const auto of = std::find(key.extents.begin(), key.extents.end(), port.extent);
    const bool known = of != key.extents.end();
    const int nic = nics[static_cast<std::size_t>(port.extent.dimension)];
    const double weight =
        result.serialisation > Time(0) ? port.serialisation / result.serialisation : 1;
    const double groups =
        known ? key.sharing[static_cast<std::size_t>(of - key.extents.begin())] : 1;
    for (const std::size_t number : {port_of(nic, Way::out), port_of(nic, Way::in)}) {
      result.weight[number] = std::max(result.weight[number], static_cast<float>(weight));
      result.groups[number] = std::max(result.groups[number], static_cast<float>(groups));
    }
  }
  return result;
}

/// Tokens to k experts at random over n nodes: n (1 - (1 - 1/n)^k) of them have one of them on
/// average, and as many copies cross between nodes; inside the nodes every copy moves.
std::vector<CollectivePhase> token_exchange(const CollectiveKey& key, const Machine& machine) {
  const std::vector<Extent> inner{key.extents.front()};
  const std::vector<Extent> outer(key.extents.begin() + 1, key.extents.end());
  double nodes = 1;
  for (const Extent& extent : outer) {
    nodes *= static_cast<double>(extent.count);
  }
  const auto copies = static_cast<double>(key.copies);
  const double reached = nodes * (1 - std::pow(1 - 1 / nodes, copies));
  auto phases =
      plan_collective(key.kind, key.bytes * (reached / copies), outer, key.algorithm, machine);
  for (CollectivePhase& phase :
       plan_collective(key.kind, key.bytes, inner, key.algorithm, machine)) {
    phases.push_back(std::move(phase));
  }
  return phases;
}

}  // namespace

Time PortPhase::time() const {
  double slowdown = 1;
  for (std::size_t port = 0; port < weight.size(); ++port) {
    slowdown = std::max(slowdown, static_cast<double>(weight[port] * groups[port]));
  }
  return latency + (slowdown > 1 ? serialisation * slowdown : serialisation);
}

std::vector<int> nics_of(const Machine& machine) {
  std::vector<int> nics;
  for (std::size_t d = 0; d < machine.network.size(); ++d) {
    int nic = static_cast<int>(d);
    for (std::size_t other = d; other-- > 0;) {
      const std::string& name = machine.network[d].nic;
      nic = !name.empty() && name == machine.network[other].nic ? nics[other] : nic;
    }
    nics.push_back(nic);
  }
  return nics;
}

std::size_t KernelHash::operator()(const Operator& op) const {
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
  return mix.hash();
}

bool SameKernel::operator()(const Operator& a, const Operator& b) const {
  return a.bytes == b.bytes && a.kind == b.kind && a.gemm == b.gemm && a.flops == b.flops &&
         a.type == b.type && a.kernels == b.kernels && a.backward == b.backward &&
         a.block_scaled == b.block_scaled;
}

std::size_t CollectiveHash::operator()(const CollectiveKey& key) const {
  Mix mix;
  mix.add(key.kind);
  mix.add(key.algorithm);
  mix.add(key.bytes.value());
  mix.add(key.copies);
  mix.add(key.devices);
  for (const Extent& extent : key.extents) {
    mix.add(extent.dimension);
    mix.add(extent.count);
    mix.add(extent.stride);
  }
  return mix.hash();
}

const KernelTime& Prices::kernel(const Operator& op, const Device& device) {
  const auto found = kernels_.find(op);
  return found != kernels_.end() ? found->second
                                 : kernels_.emplace(op, kernel_time(op, device)).first->second;
}

const CollectiveTime& Prices::collective(const CollectiveKey& key, const Machine& machine) {
  const auto found = collectives_.find(key);
  if (found != collectives_.end()) {
    return found->second;
  }
  const auto phases =
      key.copies > 0 && key.extents.size() > 1
          ? token_exchange(key, machine)
          : plan_collective(key.kind, key.bytes, key.extents, key.algorithm, machine);
  CollectiveTime time{.shared = Time(0), .alone = total_time(phases), .phases = {}};
  const std::vector<int> nics = nics_of(machine);
  for (const CollectivePhase& phase : phases) {
    time.shared += time.phases.emplace_back(port_phase(phase, key, nics)).time();
  }
  return collectives_.emplace(key, time).first->second;
}

}  // namespace orrery::estimation
