// SPDX-License-Identifier: Apache-2.0
/// Traffic says who sends to whom.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "machine/network/flit/random.h"
#include "machine/network/flit/router_graph.h"

namespace orrery::flit {

enum class Pattern : std::uint8_t {
  uniform,
  transpose,
  bit_complement,
  bit_reverse,
  shuffle,
  tornado,
  neighbor,
  random_permutation,
  diagonal,
  asymmetric,
  taper64,
  bad_dragon,
  hotspot,
  permutation
};
constexpr auto named_values(Pattern) {
  return std::to_array<Named<Pattern>>({
      {Pattern::uniform, "uniform", "any node, itself too"},
      {Pattern::transpose, "transpose", "the halves of the number's bits change places"},
      {Pattern::bit_complement, "bit_complement", "every bit of the number inverted"},
      {Pattern::bit_reverse, "bit_reverse", "the bits of the number in reverse order"},
      {Pattern::shuffle, "shuffle", "the bits of the number rotated left by one"},
      {Pattern::tornado, "tornado", "by dimension x -> (x + ceil(k/2) - 1) mod k"},
      {Pattern::neighbor, "neighbor", "by dimension x -> (x + 1) mod k"},
      {Pattern::random_permutation, "random_permutation",
       "random_permutation[:SEED]; one node each, drawn once, seed 0 if none is given"},
      {Pattern::diagonal, "diagonal", "a third to the next node, the others to oneself"},
      {Pattern::asymmetric, "asymmetric", "s mod N/2, in either half of the nodes"},
      {Pattern::taper64, "taper64", "64 nodes: half uniform, half within 9 and its neighbours"},
      {Pattern::bad_dragon, "bad_dragon", "of a dragonfly: any node of the next group"},
      {Pattern::hotspot, "hotspot",
       "hotspot:3,7@0.2; a share goes to some nodes (3*2,7: to 3 twice as much; any:SEED: to one, "
       "drawn), else uniform"},
      {Pattern::permutation, "permutation",
       "permutation:FILE; the target of each node, one a line"},
  });
}

inline constexpr std::uint32_t kMostHotspotWeight = 1000;

/// The destinations of a pattern on a number of nodes.
class Traffic {
 public:
  /// Makes the traffic of a text. `text`: "uniform", "hotspot:3,7@0.2" (share 1 where none is
  /// given; weights as 3*2,7), "permutation:FILE". Mistakes: an unknown name, bits of a number of
  /// nodes that is no power of two (transpose: an even one), nodes out of range, a pattern of
  /// another topology.
  static Result<Traffic> make(std::string_view text, const RouterGraph& graph);

  const std::string& name() const { return name_; }
  std::uint32_t target(std::uint32_t source, Random& random) const {
    if (!targets_.empty()) {
      return targets_[source];
    }
    if (!hot_.empty() && (share_ >= 1 || random.unit() < share_)) {
      return hot_.size() == 1 ? hot_[0]
                              : hot_[random.below(static_cast<std::uint32_t>(hot_.size()))];
    }
    return pattern_ == Pattern::uniform ? random.below(nodes_) : drawn(source, random);
  }

 private:
  /// Draws a target, for patterns that draw near a source.
  std::uint32_t drawn(std::uint32_t source, Random& random) const;
  Result<void> fits(Pattern pattern, const RouterGraph& graph);
  void read_hotspot(std::string_view text, Error& mistakes);
  void read_permutation(std::string_view path, Error& mistakes);

  std::string name_;
  std::uint32_t nodes_ = 0;
  Pattern pattern_ = Pattern::uniform;  ///< of those that draw
  std::uint32_t group_ = 1;             ///< nodes of a dragonfly's group
  std::vector<std::uint32_t> targets_;  ///< by source; empty: at random
  std::vector<std::uint32_t> hot_;      ///< each as often as its weight
  double share_ = 0;
};

/// Extents of the nodes' numbers: those of the graph, or one digit where they do not make up all
/// nodes.
std::vector<std::int32_t> node_extents(const RouterGraph& graph);

}  // namespace orrery::flit
