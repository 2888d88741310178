// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/memory.h"

#include <fmt/format.h>

#include "base/format.h"

namespace orrery::spmd {
namespace {

constexpr double kFirstPrice = 1e-14;  // seconds a byte: 10 us a GB
constexpr double kLastPrice = 1e-6;    // 1000 s a GB: memory is all that counts
constexpr int kBisections = 24;

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

class LimitedSearch {
 public:
  LimitedSearch(const OperatorGraph& graph, const Prices& prices, std::int64_t devices, Bytes limit,
                const SearchOptions& options)
      : graph_(graph), prices_(prices), devices_(devices), limit_(limit), options_(options) {}

  Result<LimitedSolution> run() {
    const auto unlimited = at(0);
    if (!unlimited) {
      return fail(unlimited.error());
    }
    if (*unlimited <= limit_) {
      return std::move(best_);
    }
    const auto least = at(kLastPrice);
    if (!least) {
      return fail(least.error());
    }
    if (*least > limit_) {
      return fail(Error(Mistake{"--max-memory",
                                {},
                                to_string(limit_),
                                fmt::format("at least about {}, which every program needs on a "
                                            "device",
                                            to_string(*least))}));
    }
    double below = 0;
    double above = kLastPrice;
    for (int i = 0; i < kBisections; ++i) {
      const double middle =
          below == 0 ? std::max(above / 16, kFirstPrice) : std::sqrt(below * above);
      if (middle == above) {
        break;
      }
      const auto memory = at(middle);
      if (!memory) {
        return fail(memory.error());
      }
      (*memory <= limit_ ? above : below) = middle;
    }
    return std::move(best_);
  }

 private:
  /// Memory of the best program at a price; keeps it if it is within the limit and the fastest yet.
  Result<Bytes> at(double seconds_per_byte) {
    auto found = search(graph_, PricedMemory(prices_, devices_, seconds_per_byte), options_);
    if (!found) {
      return fail(std::move(found.error()));
    }
    const Bytes memory = memory_of(graph_, found->strategy, devices_);
    const Time bound =
        found->total - from_seconds(seconds_per_byte * static_cast<double>(limit_.value()));
    best_.bound = std::max(best_.bound, bound);
    if (memory <= limit_) {
      const auto cost = replay(graph_, found->strategy, prices_);
      if (!cost) {
        return fail(cost.error());
      }
      if (!any_ || cost->total < best_.solution.total) {
        any_ = true;
        best_.solution = std::move(*found);
        best_.solution.total = cost->total;
        best_.memory = memory;
      }
    }
    return memory;
  }

  const OperatorGraph& graph_;
  const Prices& prices_;
  std::int64_t devices_;
  Bytes limit_;
  const SearchOptions& options_;
  LimitedSolution best_;
  bool any_ = false;
};

/// Corners of the hull, found between two known ones.
class Corners {
 public:
  Corners(const OperatorGraph& graph, const Prices& prices, std::int64_t devices,
          const SearchOptions& options)
      : graph_(graph), prices_(prices), devices_(devices), options_(options) {}

  Result<std::vector<MemoryPoint>> run(std::size_t most) {
    for (const double price : {0.0, kLastPrice}) {
      auto end = at(price);
      if (!end) {
        return fail(std::move(end.error()));
      }
      points_.push_back(std::move(*end));
    }
    // Of each pair of neighbours, until none has a corner between.
    for (std::size_t i = 0; i + 1 < points_.size() && points_.size() < most;) {
      const bool later_is_no_better = points_[i].memory <= points_[i + 1].memory;
      if (later_is_no_better || points_[i].solution.total >= points_[i + 1].solution.total) {
        points_.erase(points_.begin() +
                      static_cast<std::ptrdiff_t>(later_is_no_better ? i + 1 : i));
        i -= i > 0 ? 1 : 0;
        continue;
      }
      const double price = to_seconds(points_[i + 1].solution.total - points_[i].solution.total) /
                           static_cast<double>((points_[i].memory - points_[i + 1].memory).value());
      auto between = at(price);
      if (!between) {
        return fail(std::move(between.error()));
      }
      const auto cost = [&](const MemoryPoint& point) {
        return point.solution.total +
               from_seconds(price * static_cast<double>(point.memory.value()));
      };
      const Time rounding(static_cast<std::int64_t>(2 * graph_.tensors.size()));
      if (cost(*between) + rounding < cost(points_[i])) {
        points_.insert(points_.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(*between));
      } else {
        ++i;
      }
    }
    return std::move(points_);
  }

 private:
  Result<MemoryPoint> at(double seconds_per_byte) const {
    auto found = search(graph_, PricedMemory(prices_, devices_, seconds_per_byte), options_);
    if (!found) {
      return fail(std::move(found.error()));
    }
    const auto cost = replay(graph_, found->strategy, prices_);
    if (!cost) {
      return fail(cost.error());
    }
    found->total = cost->total;
    const Bytes memory = memory_of(graph_, found->strategy, devices_);
    return MemoryPoint{std::move(*found), memory};
  }

  const OperatorGraph& graph_;
  const Prices& prices_;
  std::int64_t devices_;
  const SearchOptions& options_;
  std::vector<MemoryPoint> points_;
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
  return LimitedSearch(graph, prices, devices, limit, options).run();
}

Result<std::vector<MemoryPoint>> memory_frontier(const OperatorGraph& graph, const Prices& prices,
                                                 std::int64_t devices, const SearchOptions& options,
                                                 std::size_t most) {
  return Corners(graph, prices, devices, options).run(most);
}

}  // namespace orrery::spmd
