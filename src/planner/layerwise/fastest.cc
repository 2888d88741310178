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

/// A Price is that of a byte: picoseconds, or infinite, where time does not count.
struct Price {
  double time = 1;
  double byte = 0;
};

struct Label {
  Time time{0};
  Bytes memory{0};
  std::uint32_t before = 0;  ///< label of the layer before
  std::uint16_t strategy = 0;
  double priced = 0;  ///< with the memory's price
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
  static constexpr std::array kOtherPrices{1.5, 1 / 1.5, 2.5, 1 / 2.5};  // of the best one
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

  /// Returns the least that the layers after each cost, under each strategy of it.
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
    for (std::size_t i = 0; i < kOtherPrices.size(); ++i) {
      other_rests_[i] = rest({.byte = price_ * kOtherPrices[i]});
    }
  }

  /// Returns the time plus the price of the memory, less what the whole limit costs at that price.
  double priced(Time time, Bytes memory, double price) const {
    return static_cast<double>(time.value()) +
           price * (static_cast<double>(memory.value()) - static_cast<double>(limit_.value()));
  }
  /// Returns the least price of the label with the layers after it.
  double bound_of(const Label& label, std::size_t layer) const {
    return label.priced + rest_cost_[layer][label.strategy];
  }
  bool may_be_best(double bound) const {
    return bound - kSlack < static_cast<double>(best_.time.value());
  }
  /// Every price bounds; others than the best one do so better where much or little is left.
  bool may_be_best(const Label& label, std::size_t layer) const {
    for (std::size_t i = 0; i < kOtherPrices.size(); ++i) {
      if (!may_be_best(priced(label.time, label.memory, price_ * kOtherPrices[i]) +
                       other_rests_[i][layer][label.strategy])) {
        return false;
      }
    }
    return true;
  }

  /// Labels of a layer, one strategy after the other; of each by memory, the frugal first.
  struct Layer {
    std::vector<Label> labels;
    std::vector<std::size_t> ends;  ///< by strategy
  };

  static bool before(const Label& a, const Label& b) {
    return std::tuple(a.memory, a.time, a.before) < std::tuple(b.memory, b.time, b.before);
  }

  /// True: none had to go but those that cannot be better.
  bool forward(std::size_t width) {
    bool all = true;
    std::vector<Layer> layers(layers_);
    for (std::size_t layer = 0; layer < layers_; ++layer) {
      for (std::size_t to = 0; to < count_; ++to) {
        std::vector<Label> labels = extended(layers, layer, to);
        if (labels.size() > width) {
          all = false;
          keep_promising(labels, width, layer);
        }
        layers[layer].labels.insert(layers[layer].labels.end(), labels.begin(), labels.end());
        layers[layer].ends.push_back(layers[layer].labels.size());
      }
    }
    take_best(layers);
    return all;
  }

  Label label_of(Time time, Bytes memory, std::size_t before, std::size_t strategy) const {
    return {time, memory, static_cast<std::uint32_t>(before), static_cast<std::uint16_t>(strategy),
            priced(time, memory, price_)};
  }

  void keep_promising(std::vector<Label>& labels, std::size_t width, std::size_t layer) const {
    std::nth_element(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(width),
                     labels.end(), [&](const Label& a, const Label& b) {
                       return std::tuple(bound_of(a, layer), a.time, a.before) <
                              std::tuple(bound_of(b, layer), b.time, b.before);
                     });
    labels.resize(width);
    std::sort(labels.begin(), labels.end(), before);
  }

  /// Every label of the layer before, or the beginning, with the strategy added, without those that
  /// others beat. Those of one strategy stay in their order, so that they are merged, not sorted.
  std::vector<Label> extended(const std::vector<Layer>& layers, std::size_t layer, std::size_t to) {
    const Time own_time = chain_.layer(layer).time[to];
    const Bytes own_memory = chain_.layer(layer).memory[to];
    const Bytes most = limit_ - Bytes::from_double(rest_memory_[layer][to]) - own_memory;
    if (layer == 0) {
      ++labels_;
      const Label first = label_of(own_time, own_memory, 0, to);
      return Bytes(0) > most || !may_be_best(bound_of(first, 0)) ? std::vector<Label>()
                                                                 : std::vector<Label>{first};
    }
    const Layer& last = layers[layer - 1];
    std::vector<Label> front;
    std::vector<Label> run;
    std::vector<Label> merged;
    for (std::size_t from = 0; from < count_; ++from) {
      const Time more = chain_.change(layer, from, to) + own_time;
      const double rest = static_cast<double>(more.value()) +
                          price_ * static_cast<double>(own_memory.value()) + rest_cost_[layer][to];
      run.clear();
      for (std::size_t i = from == 0 ? 0 : last.ends[from - 1]; i < last.ends[from]; ++i) {
        const Label& label = last.labels[i];
        if (label.memory > most) {
          break;  // so have those after it
        }
        if (!may_be_best(label.priced + rest)) {
          continue;
        }
        run.push_back(label_of(label.time + more, label.memory + own_memory, i, to));
        if (!may_be_best(run.back(), layer)) {
          run.pop_back();
        }
      }
      labels_ += run.size();
      merge_unbeaten(front, run, merged);
      std::swap(front, merged);
    }
    return front;
  }

  static void merge_unbeaten(const std::vector<Label>& a, const std::vector<Label>& b,
                             std::vector<Label>& merged) {
    merged.clear();
    Time fastest = Time::max();
    std::size_t j = 0;
    const auto take = [&](const Label& label) {
      if (label.time < fastest) {
        fastest = label.time;
        merged.push_back(label);
      }
    };
    for (const Label& label : a) {
      for (; j < b.size() && before(b[j], label); ++j) {
        take(b[j]);
      }
      take(label);
    }
    for (; j < b.size(); ++j) {
      take(b[j]);
    }
  }

  void take_best(const std::vector<Layer>& layers) {
    const Label* best = nullptr;
    for (const Label& label : layers.back().labels) {
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
      best = layer == 0 ? nullptr : &layers[layer - 1].labels[best->before];
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
  std::array<std::vector<std::vector<double>>, kOtherPrices.size()> other_rests_;
  std::uint64_t labels_ = 0;
};

}  // namespace

Result<Assignment> fastest_within(const Chain& chain, Bytes limit) {
  return Solver(chain, limit).solve();
}

}  // namespace orrery::layerwise
