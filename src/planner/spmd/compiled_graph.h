// SPDX-License-Identifier: Apache-2.0
/// An operator graph as the search's hot loop wants it: forms of the live tensors in one key of
/// bytes, prices in tables, equal nodes once.
///
/// A tensor has one byte of the key from the node that makes it to the last that uses it: the code
/// of its original form, and above it that of the form it was converted to, or 15. A load that one
/// node uses and that computes nothing is *undecided* (255) until then: its form matters to nobody
/// before, so choosing it there is exact, and states that differ in it alone are one.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "planner/spmd/operator_graph.h"
#include "planner/spmd/prices.h"

namespace orrery::spmd {

/// Forms of live tensors, a byte for each slot; 0: no tensor.
struct Key {
  static constexpr int kWords = 4;
  static constexpr int kSlots = 8 * kWords;
  std::array<std::uint64_t, kWords> words{};

  int get(int slot) const {
    return static_cast<int>(words[static_cast<std::size_t>(slot / 8)] >> (8 * (slot % 8)) & 255U);
  }
  void set(int slot, int byte) {
    std::uint64_t& word = words[static_cast<std::size_t>(slot / 8)];
    word = (word & ~(std::uint64_t{255} << (8 * (slot % 8)))) |
           (static_cast<std::uint64_t>(byte) << (8 * (slot % 8)));
  }
  friend bool operator==(const Key&, const Key&) = default;
};

inline constexpr int kNoForm = 15;
inline constexpr int kUndecided = 255;

constexpr int byte_of(int original, int converted) {
  return original | converted << 4;
}

struct Price {
  bool legal = false;
  StageWork work{};
};

/// One way to have an undecided tensor in the form that is needed.
struct LoadChoice {
  int form = 0;           ///< code of the form it is loaded in
  bool converts = false;  ///< into the needed one, else it is that
  StageWork work{};
};

/// A PriceTable has, for tensors of one kind, shape and size, prices by the codes of both forms.
using PriceTable = std::array<std::array<Price, 16>, 16>;

struct CompiledInput {
  int slot = 0;
  int position = 0;  ///< among the node's inputs
  int distance = 0;  ///< nodes since its producer, kLongestStage + 1 at most
  bool undecided = false;
  int prices = 0;  ///< price table
};

struct CompiledSignature {
  int index = 0;     ///< of the node's signatures
  StageWork work{};  ///< compute, and penalties of the outputs
  Key outputs{};
  std::vector<int> needs{};                        ///< codes, of the compiled inputs
  std::vector<std::vector<LoadChoice>> choices{};  ///< of the undecided inputs, which come last
};

struct CompiledNode {
  std::vector<CompiledInput> inputs;  ///< undecided ones last
  int decided_inputs = 0;
  Key keep;  ///< 255 where the slot's tensor is used later
  std::vector<CompiledSignature> signatures;
};

/// Nodes of equal compiled form repeat with a period over [first, last): node i equals node
/// i + period there. Period 0: nothing repeats.
struct Repeats {
  int period = 0;
  int first = 0;
  int last = 0;
};

/// Returns the period over which most nodes, by number, repeat, not counting the first two times:
/// those that can be left out. Of equals it takes the shortest.
Repeats repeats_of(const std::vector<int>& nodes);

struct CompiledGraph {
  std::vector<PriceTable> prices;
  std::vector<CompiledNode> distinct;
  std::vector<int> nodes;  ///< index into distinct
  Repeats repeats;

  const CompiledNode& node(int i) const {
    return distinct[static_cast<std::size_t>(nodes[static_cast<std::size_t>(i)])];
  }
  const Price& price(const CompiledInput& input, int from, int to) const {
    return prices[static_cast<std::size_t>(input.prices)][static_cast<std::size_t>(from)]
                 [static_cast<std::size_t>(to)];
  }
};

/// Returns whether a strategy may use the signature of the node.
using Restriction = std::function<bool(const Node&, const Signature&)>;

/// Mistakes: a node without a signature that may be used; more tensors alive at once than a key has
/// slots; more than 16 inputs of one node.
Result<CompiledGraph> compile(const OperatorGraph& graph, const Prices& prices,
                              const Restriction& allowed);

}  // namespace orrery::spmd
