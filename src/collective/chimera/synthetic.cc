// SPDX-License-Identifier: Apache-2.0
#include "collective/chimera/synthetic.h"

namespace orrery::chimera {
namespace {

using layout::Pair;

struct Places {
  Block group;
  Block next;  ///< stage
};

/// 2 x 2 beside 2 x 2; planes of the 3-D torus; four and four GPUs of one switch.
Places places_of(Topology topology) {
  switch (topology) {
    case Topology::mesh2d:
    case Topology::torus2d:
      return {{{0, 0, 0}, {2, 2, 1}}, {{2, 0, 0}, {2, 2, 1}}};
    case Topology::torus3d:
      return {{{0, 0, 0}, {2, 2, 1}}, {{0, 0, 1}, {2, 2, 1}}};
    case Topology::two_switch:
      return {{{0, 0, 0}, {4, 1, 1}}, {{4, 0, 0}, {4, 1, 1}}};
  }
  return {};
}

class Chain {
 public:
  Chain(const Network& network, const Synthetic& study, const Rules& rules)
      : study_(study), steps_(network, rules), places_(places_of(study.topology)) {}

  const flit::LoopSchedule& make(bool fused) {
    const Bytes m = study_.message;
    const Bytes tokens = m * study_.top_k * study_.dp;
    const Operation sum = fused ? Operation::reduce_scatter : Operation::all_reduce;
    switch (study_.pair) {
      case Pair::tp_sp:
        add(sum, m);
        break;
      case Pair::tp_pp:
        add(sum, m);
        move(Operation::many_to_many, m);
        tags_ = steps_.add(Operation::all_gather, places_.next, m, tags_);
        break;
      case Pair::tp_ep:
        add_by_dp(sum, m);
        add(Operation::all_to_all, tokens);
        break;
      case Pair::pp_ep:
        move(fused ? Operation::many_to_many : Operation::send, fused ? tokens : m);
        if (!fused) {
          tags_ = steps_.add(Operation::all_to_all, places_.next, tokens, tags_);
        }
        break;
      case Pair::sp_pp:
        if (!fused) {
          add(Operation::all_gather, m);
        }
        move(fused ? Operation::many_to_many : Operation::send, m);
        break;
      case Pair::sp_ep:
        if (!fused) {
          add_by_dp(Operation::all_gather, m);
        }
        add(Operation::all_to_all, tokens);
        break;
    }
    return steps_.schedule();
  }

 private:
  void add(Operation operation, Bytes m) { tags_ = steps_.add(operation, places_.group, m, tags_); }
  void move(Operation operation, Bytes m) {
    tags_ = steps_.add(operation, places_.group, places_.next, m, tags_);
  }

  /// Adds the operation in every dp group. Groups are blocks beside each other in x, then in y.
  void add_by_dp(Operation operation, Bytes m) {
    Block part = places_.group;
    std::int32_t left = study_.dp;
    for (std::size_t d = 0; d < part.extents.size(); ++d) {
      const std::int32_t cuts = std::min(left, part.extents[d]);
      part.extents[d] /= cuts;
      left /= cuts;
    }
    Tags tags(static_cast<std::size_t>(places_.group.ranks()));
    const Extents whole = places_.group.extents;
    for (std::int32_t y = 0; y < whole[1]; y += part.extents[1]) {
      for (std::int32_t x = 0; x < whole[0]; x += part.extents[0]) {
        Block group = part;
        group.origin[0] += x;
        group.origin[1] += y;
        const Tags done = steps_.add(operation, group, m, {});
        for (std::int32_t rank = 0; rank < group.ranks(); ++rank) {
          const std::int32_t in_whole =
              x + rank % part.extents[0] + whole[0] * (y + rank / part.extents[0]);
          tags[static_cast<std::size_t>(in_whole)] = done[static_cast<std::size_t>(rank)];
        }
      }
    }
    tags_ = std::move(tags);
  }

  const Synthetic& study_;
  Steps steps_;
  Places places_;
  Tags tags_;
};

}  // namespace

flit::LoopResult run_synthetic(const Synthetic& study, bool fused, bool artifact, bool shortcuts) {
  const Network network(study.topology, published_extents(study.topology));
  return network.run(Chain(network, study, {.artifact = artifact}).make(fused), shortcuts);
}

}  // namespace orrery::chimera
