// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/themis.h"

#include <algorithm>
#include <cmath>

#include "base/lists.h"

namespace orrery::astra {
namespace {

constexpr double kMebibyte = 1048576.0;
constexpr std::int64_t kWorthwhile = 16;

std::int64_t size_of(const Shape& shape, int d) {
  return shape.axes[static_cast<std::size_t>(d)].size;
}

/// Load of one phase in MiB before scaling.
double moved(double bytes, std::int64_t size, bool gathers) {
  const auto p = static_cast<double>(size);
  return bytes / kMebibyte * (gathers ? p - 1 : (p - 1) / p);
}

}  // namespace

Themis::Themis(const Wires& wires, const Quirks& quirks) : quirks_(quirks) {
  const auto bandwidth = [&](int d) { return wires.dimension(d).bandwidth.value(); };
  for (int d = 0; d < wires.dimensions(); ++d) {
    scale_.push_back(bandwidth(d) / bandwidth(0));
  }
}

Themis::State Themis::initial() const {
  State state;
  for (std::size_t d = 0; d < scale_.size(); ++d) {
    state.loads.push_back({static_cast<int>(d), 0});
  }
  return state;
}

void Themis::begin(State& state, Time now) const {
  if (now != state.begun) {
    state = initial();
    state.begun = now;
  }
}

double Themis::evening_chunk(const State& state, const Shape& shape, bool gathers) const {
  const auto involved = [&](const Load& load) { return size_of(shape, load.dimension) > 1; };
  const auto first = std::find_if(state.loads.begin(), state.loads.end(), involved);
  if (first == state.loads.end()) {
    return 0;
  }
  if (!gathers) {
    const double difference = std::abs(state.loads.back().mebibytes - first->mebibytes);
    const double per_byte = moved(kMebibyte, size_of(shape, first->dimension), false);
    return std::floor(difference * scale(first->dimension) / per_byte * kMebibyte);
  }
  const auto last = std::find_if(state.loads.rbegin(), state.loads.rend(), involved);
  const double difference = std::abs(last->mebibytes - first->mebibytes);
  const double per_byte = moved(kMebibyte, size_of(shape, last->dimension), true);
  double chunk = std::floor(difference * scale(last->dimension) / per_byte * kMebibyte);
  for (auto load = last + 1; load != state.loads.rend(); ++load) {
    if (involved(*load)) {  // down to the first one: those before it are not involved
      chunk = std::floor(chunk / static_cast<double>(size_of(shape, load->dimension)));
    }
  }
  return chunk;
}

std::vector<int> Themis::next(State& state, const Shape& shape, bool gathers, Bytes chunk) const {
  std::stable_sort(state.loads.begin(), state.loads.end(),
                   [](const Load& a, const Load& b) { return a.mebibytes < b.mebibytes; });
  if (gathers) {
    std::reverse(state.loads.begin(), state.loads.end());
  }
  const std::int64_t worthwhile = chunk.value() / kWorthwhile;
  if (evening_chunk(state, shape, gathers) < static_cast<double>(worthwhile)) {
    return natural(state, shape, gathers, chunk);
  }
  std::vector<int> order = mapped(state.loads, &Load::dimension);
  charge(state, shape, order, gathers, chunk);
  return order;
}

std::vector<int> Themis::natural(State& state, const Shape& shape, bool gathers,
                                 Bytes chunk) const {
  std::sort(state.loads.begin(), state.loads.end(),
            [](const Load& a, const Load& b) { return a.dimension < b.dimension; });
  std::vector<int> order = mapped(state.loads, &Load::dimension);
  if (!gathers) {
    charge(state, shape, order, false, chunk);
    return order;
  }
  std::reverse(state.loads.begin(), state.loads.end());
  if (quirks_[Quirk::themis_gather_fallback]) {
    charge_by_position(state, shape, chunk);
  } else {
    std::reverse(order.begin(), order.end());
    charge(state, shape, order, true, chunk);
  }
  return order;
}

void Themis::charge(State& state, const Shape& shape, const std::vector<int>& order, bool gathers,
                    Bytes chunk) const {
  std::int64_t bytes = chunk.value();
  for (int d : order) {
    const std::int64_t p = size_of(shape, d);
    if (p == 1) {
      continue;
    }
    const auto load = std::find_if(state.loads.begin(), state.loads.end(),
                                   [d](const Load& entry) { return entry.dimension == d; });
    load->mebibytes += moved(static_cast<double>(bytes), p, gathers) / scale(d);
    bytes = gathers ? bytes * p : bytes / p;
  }
}

/// Entry i of the reversed list takes the load of dimension i.
void Themis::charge_by_position(State& state, const Shape& shape, Bytes chunk) const {
  std::int64_t bytes = chunk.value();
  for (std::size_t i = 0; i < state.loads.size(); ++i) {
    const auto d = static_cast<int>(i);
    const std::int64_t p = size_of(shape, d);
    if (p > 1) {
      state.loads[i].mebibytes += moved(static_cast<double>(bytes), p, true) / scale(d);
      bytes *= p;
    }
  }
}

}  // namespace orrery::astra
