// SPDX-License-Identifier: Apache-2.0
/// The states of the search on a mesh at one cut, of which those stay that no other stands for.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "planner/spmd/mesh_graph.h"

namespace orrery::spmd {

/// The last step of a way.
struct Trail {
  int parent = -1;  ///< label at the cut before
  int choice = -1;  ///< of the node between
};

/// A state and the cheapest way to it.
struct MeshLabel {
  MeshState state{};
  Time cost{0};
  Trail trail{};
};

struct MeshStateHash {
  std::size_t operator()(const MeshState& state) const {
    std::uint64_t hash = 0;
    for (const FormSets::Id forms : state) {
      hash = (hash ^ forms) * 0x9e3779b97f4a7c15U;  // 2^64 / golden ratio
      hash ^= hash >> 32;
    }
    return hash;
  }
};

/// Says what becomes of the states beyond the most that a cut keeps.
enum class Beyond : std::uint8_t { dropped, joined };

struct KeepRule {
  std::int64_t most = 0;
  bool dominance = true;  ///< false: only equal states are one
  Beyond beyond = Beyond::dropped;
};

class MeshStates {
 public:
  /// Makes those of the cut after a node.
  MeshStates(const MeshGraph& graph, const MeshNode& node, FormSets& sets, const KeepRule& rule)
      : graph_(graph), node_(node), sets_(sets), rule_(rule) {}

  void add(const MeshLabel& label);
  /// Returns the labels that no other dominates, the cheapest first, and the joined ones. Once
  /// only.
  std::vector<MeshLabel> keep();

  std::int64_t reached() const { return std::ssize(labels_); }  ///< before dominance
  std::int64_t dropped() const { return dropped_; }             ///< or joined

 private:
  /// One label in place of many: the least of their costs and all their forms.
  struct Joined {
    MeshLabel label{};
    std::array<std::bitset<MeshForm::kCodes>, kMeshSlots> forms{};
  };

  void limit();
  void pass(const MeshLabel& label);
  MeshState unconverted(MeshState state) const;
  bool dominates(const MeshLabel& one, const MeshLabel& other) const;

  const MeshGraph& graph_;
  const MeshNode& node_;
  FormSets& sets_;
  KeepRule rule_;
  std::vector<MeshLabel> labels_;
  std::unordered_map<MeshState, std::size_t, MeshStateHash> known_;
  Time most_ = Time::max();             ///< what costs more does not stay
  std::map<MeshState, Joined> beyond_;  ///< by the forms of what is used once
  std::int64_t dropped_ = 0;
};

}  // namespace orrery::spmd
