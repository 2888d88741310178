// SPDX-License-Identifier: Apache-2.0
#include "collective/chimera/prices.h"

namespace orrery::chimera {
namespace {

constexpr Rules kRules{.per_byte = 1.0 / 256};

}  // namespace

template <class Simulate>
flit::Cycle Prices::once(const Key& key, Simulate simulate) {
  std::promise<flit::Cycle> promise;
  std::shared_future<flit::Cycle> price;
  {
    const std::lock_guard guard(lock_);
    const auto [place, is_new] = known_.try_emplace(key);
    if (!is_new) {
      price = place->second;
    } else {
      place->second = promise.get_future().share();
    }
  }
  if (price.valid()) {
    return price.get();
  }
  const flit::Cycle cycles = simulate();
  promise.set_value(cycles);
  return cycles;
}

flit::Cycle Prices::of(const Network& network, Operation operation, const Extents& block,
                       Bytes bytes) {
  const Key key{network.topology(), network.extents(), operation, block, block, {}, bytes};
  return once(key, [&] {
    Steps steps(network, kRules);
    steps.add(operation, Block{{0, 0, 0}, block}, bytes, {});
    return network.run(steps.schedule()).end;
  });
}

flit::Cycle Prices::of(const Network& network, Operation operation, const Block& from,
                       const Block& to, Bytes bytes) {
  Extents apart{};
  for (std::size_t d = 0; d < apart.size(); ++d) {
    apart[d] = to.origin[d] - from.origin[d];
  }
  const Key key{
      network.topology(), network.extents(), operation, from.extents, to.extents, apart, bytes};
  return once(key, [&] {
    Steps steps(network, kRules);
    steps.add(operation, from, to, bytes, {});
    return network.run(steps.schedule()).end;
  });
}

}  // namespace orrery::chimera
