// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/memory.h"

#include <utility>

#include "planner/spmd/priced_search.h"

namespace orrery::spmd {
namespace {

/// Other prices, with every byte held charged.
class PricedMemory : public Prices {
 public:
  PricedMemory(const Prices& prices, std::int64_t devices, double seconds_per_byte)
      : prices_(prices), devices_(devices), seconds_per_byte_(seconds_per_byte) {}

  StageRule rule() const override { return prices_.rule(); }
  Time compute(const OperatorGraph& graph, int node, const Signature& signature) const override {
    return prices_.compute(graph, node, signature);
  }
  StageWork convert(const OperatorGraph& graph, int tensor, Form from, Form to) const override {
    return prices_.convert(graph, tensor, from, to);
  }
  Operation backward(const Conversion& conversion) const override {
    return prices_.backward(conversion);
  }
  bool allows(const OperatorGraph& graph, int node, const Signature& signature) const override {
    return prices_.allows(graph, node, signature);
  }
  Time penalty(const OperatorGraph& graph, int tensor, Form form, bool converted) const override {
    return prices_.penalty(graph, tensor, form, converted) +
           from_seconds(
               seconds_per_byte_ *
               static_cast<double>(held(graph, tensor, form, converted, devices_).value()));
  }

 private:
  const Prices& prices_;
  std::int64_t devices_;
  double seconds_per_byte_;
};

/// Searches at a price.
class Pricer {
 public:
  Pricer(const OperatorGraph& graph, const Prices& prices, std::int64_t devices,
         const SearchOptions& options)
      : graph_(graph), prices_(prices), devices_(devices), options_(options) {}

  Result<Priced<Solution>> operator()(double seconds_per_byte) const {
    auto found = search(graph_, PricedMemory(prices_, devices_, seconds_per_byte), options_);
    if (!found) {
      return fail(std::move(found.error()));
    }
    const auto cost = replay(graph_, found->strategy, prices_);
    if (!cost) {
      return fail(cost.error());
    }
    const Bytes memory = memory_of(graph_, found->strategy, devices_);
    const Time priced = std::exchange(found->total, cost->total);
    return Priced<Solution>{std::move(*found), cost->total, memory, priced};
  }
  PricedSearch<Solution, Pricer> search_by_price() const {
    return {*this, Time(static_cast<std::int64_t>(2 * graph_.tensors.size()))};
  }

 private:
  const OperatorGraph& graph_;
  const Prices& prices_;
  std::int64_t devices_;
  const SearchOptions& options_;
};

}  // namespace

Holdings& Holdings::operator+=(const Holdings& more) {
  parameters += more.parameters;
  gradients += more.gradients;
  optimizer += more.optimizer;
  activations += more.activations;
  return *this;
}

Holdings holdings_of(const OperatorGraph& graph, int tensor, Bytes part, bool converted) {
  if (graph.producer(tensor).kind != NodeKind::parameter) {
    return {.activations = part};
  }
  if (converted) {
    return {.parameters = part};
  }
  const bool narrow = graph.element == 2;  // gradients, a copy and two moments in 4 bytes
  return {.parameters = part,
          .gradients = narrow ? 2 * part : part,
          .optimizer = narrow ? 6 * part : 2 * part};
}

Bytes held(const OperatorGraph& graph, int tensor, Form form, bool converted,
           std::int64_t devices) {
  const Bytes whole = graph.tensor(tensor).bytes;
  return holdings_of(graph, tensor, form.is_gather() ? whole / devices : whole, converted).total();
}

Holdings holdings_of(const OperatorGraph& graph, const Strategy& strategy, std::int64_t devices) {
  Holdings sum;
  const auto add = [&](int tensor, Form form, bool converted) {
    const Bytes whole = graph.tensor(tensor).bytes;
    sum += holdings_of(graph, tensor, form.is_gather() ? whole / devices : whole, converted);
  };
  for (const Stage& stage : strategy.stages) {
    for (const Communication& communication : stage.communications) {
      add(communication.tensor, communication.to, true);
    }
    for (const Computation& computation : stage.computations) {
      const Node& node = graph.nodes[static_cast<std::size_t>(computation.node)];
      const Signature& signature = node.signatures[static_cast<std::size_t>(computation.signature)];
      for (std::size_t k = 0; k < node.outputs.size(); ++k) {
        add(node.outputs[k], signature.outputs[k], false);
      }
    }
  }
  return sum;
}

Bytes memory_of(const OperatorGraph& graph, const Strategy& strategy, std::int64_t devices) {
  return holdings_of(graph, strategy, devices).total();
}

Result<LimitedSolution> search_within(const OperatorGraph& graph, const Prices& prices,
                                      std::int64_t devices, Bytes limit,
                                      const SearchOptions& options) {
  const Pricer pricer(graph, prices, devices, options);
  return pricer.search_by_price().within(limit).map([](Priced<Solution> found) {
    return LimitedSolution{std::move(found.solution), found.memory, found.bound};
  });
}

Result<std::vector<MemoryPoint>> memory_frontier(const OperatorGraph& graph, const Prices& prices,
                                                 std::int64_t devices, const SearchOptions& options,
                                                 std::size_t most) {
  const Pricer pricer(graph, prices, devices, options);
  return pricer.search_by_price().corners(most).map([](std::vector<Priced<Solution>> corners) {
    std::vector<MemoryPoint> points;
    points.reserve(corners.size());
    for (Priced<Solution>& corner : corners) {
      points.push_back({std::move(corner.solution), corner.memory});
    }
    return points;
  });
}

}  // namespace orrery::spmd
