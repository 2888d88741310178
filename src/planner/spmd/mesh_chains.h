// SPDX-License-Identifier: Apache-2.0
/// The cheapest chain of steps between every two forms of tensors of one kind, shape and size, and
/// the sets of forms in which tensors are.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "planner/spmd/mesh_prices.h"

namespace orrery::spmd {

/// Sets of forms as numbers, equal ones alike: 0 is empty, 1 + code that of one form.
class FormSets {
 public:
  using Id = std::uint32_t;

  FormSets();

  static Id of(int code) { return static_cast<Id>(code) + 1; }
  /// Returns the codes of a set, ascending.
  const std::vector<int>& codes(Id set) const { return codes_[set]; }
  bool has(Id set, int code) const;
  /// Returns the set with a form more, and the one of these codes.
  Id with(Id set, int code);
  Id of(const std::bitset<MeshForm::kCodes>& codes);

 private:
  Id numbered(std::vector<int> codes);

  std::vector<std::vector<int>> codes_;
  std::map<std::vector<int>, Id> ids_;          ///< of the sets of two forms and more
  std::unordered_map<std::uint64_t, Id> more_;  ///< by set and code: with()
};

class MeshChains {
 public:
  /// No chain has this cost.
  static constexpr Time kNever = Time(std::int64_t{1} << 60);

  /// Requires at most MeshForm::kDimensions dimensions.
  MeshChains(const OperatorGraph& graph, int tensor, const MeshPrices& prices,
             const MeshWeights& weights);

  /// Returns the cost of the chain between forms, by their codes, with what the copy holds; 0
  /// between equal ones, kNever if there is none.
  Time cost(int from, int to) const { return cost_[place(from, to)]; }
  /// Returns the steps of the chain. Requires one.
  std::vector<MeshStep> steps(int from, int to) const;
  /// Returns which of a set of forms is the cheapest to start from; of equals the least code.
  /// Requires a form.
  int nearest(const std::vector<int>& forms, int to) const;
  /// Returns the cost of having also the other forms, each from one of these; at most about `most`,
  /// then anything above it.
  Time to_have(const std::vector<int>& forms, const std::vector<int>& others, Time most) const;

 private:
  std::size_t place(int from, int to) const {
    return static_cast<std::size_t>(index_[static_cast<std::size_t>(from)]) * count_ +
           static_cast<std::size_t>(index_[static_cast<std::size_t>(to)]);
  }
  void join(const std::vector<int>& codes);
  /// Makes the chains of a row that begin with `head` and go on as `tail` where they are cheaper.
  void lead(std::size_t head, std::size_t tail, std::size_t row);

  Mesh mesh_;
  std::size_t count_ = 0;   ///< of forms
  std::vector<int> index_;  ///< by code; 0 of those that tensors on this mesh do not have
  std::vector<Time> cost_;
  std::vector<MeshStep> first_;  ///< of the chain
};

}  // namespace orrery::spmd
