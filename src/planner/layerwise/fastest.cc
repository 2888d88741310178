// SPDX-License-Identifier: Apache-2.0
#include "planner/layerwise/fastest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "base/format.h"

namespace orrery::layerwise {
namespace {

/// Of a byte: picoseconds, or infinite, where time does not count.
struct Price {
  double time = 1;
  double byte = 0;
};

struct Label {
  Time time{0};
  Bytes memory{0};
  std::uint32_t before = 0;  ///< label of the layer before
  std::uint16_t strategy = 0;
};

class Solver {
 public:
  Solver(const Chain& chain, Bytes limit)
      : chain_(chain),
        limit_(limit),
        layers_(chain.layers.size()),
        count_(chain.strategies.size()) {}

  Result<Assignment> solve() && {
    const Assignment frugal = priced({.time = 0, .byte = 1});
    if (frugal.memory > limit_) {
      return fail("no strategies fit into " + to_string(limit_) + ": the most frugal take " +
                  to_string(frugal.memory));
    }
    best_ = frugal;
    bisect();
    best_.bound = std::min(best_.time, Time::from_double(std::ceil(bound_ - kSlack)));
    if (best_.bound < best_.time) {
      rests();
      for (const std::size_t width : std::to_array<std::size_t>({8, 64, kMostLabels})) {
        if (forward(width)) {
          best_.bound = best_.time;  // nothing fell that could have been faster
          break;
        }
      }
    }
    best_.labels = labels_;
    return std::move(best_);
  }

 private:
  static constexpr std::size_t kMostLabels = std::size_t{1} << 16;
  static constexpr double kSlack = 1;  // ps lost by sums of doubles
  static constexpr int kBisections = 60;
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

  double cost(const Price& price, std::size_t layer, std::size_t strategy) const {
    const LayerCosts& costs = chain_.layer(layer);
    return price.time * static_cast<double>(costs.time[strategy].value()) +
           price.byte * static_cast<double>(costs.memory[strategy].value());
  }
  double change(const Price& price, std::size_t layer, std::size_t from, std::size_t to) const {
    return price.time * static_cast<double>(chain_.change(layer, from, to).value());
  }

  /// Of the layers after each, under each strategy of it: the least that they cost.
  std::vector<std::vector<double>> rest(const Price& price) const {
    std::vector<std::vector<double>> rest(layers_, std::vector<double>(count_, 0));
    for (std::size_t layer = layers_ - 1; layer > 0; --layer) {
      for (std::size_t from = 0; from < count_; ++from) {
        double least = kInfinite;
        for (std::size_t to = 0; to < count_; ++to) {
          least = std::min(
              least, change(price, layer, from, to) + cost(price, layer, to) + rest[layer][to]);
        }
        rest[layer - 1][from] = least;
      }
    }
    return rest;
  }

  /// The cheapest without a limit.
  Assignment priced(const Price& price) const {
    const auto after = rest(price);
    Assignment answer;
    for (std::size_t layer = 0; layer < layers_; ++layer) {
      double least = kInfinite;
      std::size_t chosen = 0;
      for (std::size_t to = 0; to < count_; ++to) {
        const double before = layer == 0 ? 0 : change(price, layer, answer.strategies.back(), to);
        const double all = before + cost(price, layer, to) + after[layer][to];
        if (all < least) {
          least = all;
          chosen = to;
        }
      }
      answer.time +=
          chain_.layer(layer).time[chosen] +
          (layer == 0 ? Time(0) : chain_.change(layer, answer.strategies.back(), chosen));
      answer.memory += chain_.layer(layer).memory[chosen];
      answer.strategies.push_back(chosen);
    }
    return answer;
  }

  /// The price with the best bound, and the fastest that fits on the way.
  void bisect() {
    double low = 0;
    double high = 0;
    for (int i = 0; i < kBisections; ++i) {
      const double byte = i == 0 ? 0 : high == 0 ? (low == 0 ? 1e-6 : low * 16) : (low + high) / 2;
      const Assignment found = priced({.byte = byte});
      const double over =
          static_cast<double>(found.memory.value()) - static_cast<double>(limit_.value());
      const double bound = static_cast<double>(found.time.value()) + byte * over;
      if (bound > bound_) {
        bound_ = bound;
        price_ = byte;
      }
      if (over <= 0) {
        best_ = found.time < best_.time ? found : best_;
        high = byte;
        if (i == 0) {
          return;  // it fits without a price
        }
      } else {
        low = byte;
      }
    }
  }

  void rests() {
    rest_cost_ = rest({.byte = price_});
    rest_memory_ = rest({.time = 0, .byte = 1});
  }

  /// At the least, with the layers after it.
  double bound_of(const Label& label, std::size_t layer) const {
    return static_cast<double>(label.time.value()) + rest_cost_[layer][label.strategy] +
           price_ *
               (static_cast<double>(label.memory.value()) - static_cast<double>(limit_.value()));
  }
  bool hopeless(const Label& label, std::size_t layer) const {
    return static_cast<double>(label.memory.value()) + rest_memory_[layer][label.strategy] >
               static_cast<double>(limit_.value()) ||
           bound_of(label, layer) - kSlack >= static_cast<double>(best_.time.value());
  }

  /// True: none had to go but those that cannot be better.
  bool forward(std::size_t width) {
    bool all = true;
    std::vector<std::vector<Label>> by_layer(layers_);
    for (std::size_t layer = 0; layer < layers_; ++layer) {
      for (std::size_t to = 0; to < count_; ++to) {
        std::vector<Label> labels = extended(by_layer, layer, to);
        labels_ += labels.size();
        keep_unbeaten(labels);
        if (labels.size() > width) {
          all = false;
          std::nth_element(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(width),
                           labels.end(), [&](const Label& a, const Label& b) {
                             return std::tuple(bound_of(a, layer), a.time, a.before) <
                                    std::tuple(bound_of(b, layer), b.time, b.before);
                           });
          labels.resize(width);
        }
        by_layer[layer].insert(by_layer[layer].end(), labels.begin(), labels.end());
      }
    }
    take_best(by_layer);
    return all;
  }

  /// Every label of the layer before, or the beginning, with the strategy added.
  std::vector<Label> extended(const std::vector<std::vector<Label>>& by_layer, std::size_t layer,
                              std::size_t to) const {
    const Label own{chain_.layer(layer).time[to], chain_.layer(layer).memory[to], 0,
                    static_cast<std::uint16_t>(to)};
    std::vector<Label> labels;
    const auto add = [&](const Label& label) {
      if (!hopeless(label, layer)) {
        labels.push_back(label);
      }
    };
    if (layer == 0) {
      add(own);
      return labels;
    }
    const std::vector<Label>& before = by_layer[layer - 1];
    for (std::size_t i = 0; i < before.size(); ++i) {
      add({before[i].time + chain_.change(layer, before[i].strategy, to) + own.time,
           before[i].memory + own.memory, static_cast<std::uint32_t>(i), own.strategy});
    }
    return labels;
  }

  static void keep_unbeaten(std::vector<Label>& labels) {
    std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) {
      return std::tuple(a.memory, a.time, a.before) < std::tuple(b.memory, b.time, b.before);
    });
    Time fastest = Time::max();
    std::erase_if(labels, [&](const Label& label) {
      const bool beaten = label.time >= fastest;
      fastest = std::min(fastest, label.time);
      return beaten;
    });
  }

  void take_best(const std::vector<std::vector<Label>>& by_layer) {
    const Label* best = nullptr;
    for (const Label& label : by_layer.back()) {
      if (label.time < best_.time && (best == nullptr || label.time < best->time)) {
        best = &label;
      }
    }
    if (best == nullptr) {
      return;
    }
    const Time bound = best_.bound;
    best_ = {.strategies = std::vector<std::size_t>(layers_),
             .time = best->time,
             .memory = best->memory,
             .bound = bound};
    for (std::size_t layer = layers_; layer-- > 0;) {
      best_.strategies[layer] = best->strategy;
      best = layer == 0 ? nullptr : &by_layer[layer - 1][best->before];
    }
  }

  const Chain& chain_;
  Bytes limit_;
  std::size_t layers_;
  std::size_t count_;
  Assignment best_;
  double bound_ = 0;  ///< on the time of all that fit
  double price_ = 0;  ///< of a byte, with that bound
  std::vector<std::vector<double>> rest_cost_;
  std::vector<std::vector<double>> rest_memory_;
  std::uint64_t labels_ = 0;
};

}  // namespace

Result<Assignment> fastest_within(const Chain& chain, Bytes limit) {
  return Solver(chain, limit).solve();
}

}  // namespace orrery::layerwise
