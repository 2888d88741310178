// SPDX-License-Identifier: Apache-2.0
/// The cheapest chain of steps between every two forms of tensors of one kind, shape and size.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "planner/spmd/mesh_prices.h"

namespace orrery::spmd {

class MeshChains {
 public:
  /// No chain has this cost.
  static constexpr Time kNever = Time(std::int64_t{1} << 60);

  /// Requires at most MeshForm::kDimensions dimensions.
  MeshChains(const OperatorGraph& graph, int tensor, const MeshPrices& prices);

  /// Returns the cost of the chain between forms, by their codes; 0 between equal ones, kNever if
  /// there is none.
  Time cost(int from, int to) const { return at(cost_, from, to); }
  /// Returns the steps of the chain. Requires one.
  std::vector<MeshStep> steps(int from, int to) const;
  /// Returns which of a set of forms (bits by code) is the cheapest to start from; of equals the
  /// least code. Requires a form.
  int nearest(std::uint64_t forms, int to) const;
  /// Returns the cost of having also the other forms, each from one of these; at most about `most`,
  /// then anything above it.
  Time to_have(std::uint64_t forms, std::uint64_t others, Time most) const;

 private:
  template <class T>
  using Table = std::array<std::array<T, MeshForm::kCodes>, MeshForm::kCodes>;
  template <class T>
  static const T& at(const Table<T>& table, int from, int to) {
    return table[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }

  /// Offers a chain that begins with this step, if it is cheaper than what is known.
  void offer(int from, int to, Time cost, const MeshStep& first);

  Table<Time> cost_{};
  Table<MeshStep> first_{};  ///< of the chain
};

}  // namespace orrery::spmd
