// SPDX-License-Identifier: Apache-2.0
#include "collective/tree_schedule.h"

#include <algorithm>
#include <utility>

#include "collective/steps.h"

namespace orrery::collective {
namespace {

using Kind = graph::CollectiveKind;

/// Chunks of one tree in flight at once, per level: two fill the way up and down.
constexpr std::size_t kChunksPerLevel = 2;

/// A tree as an order in which every parent comes before its children.
struct Tree {
  std::vector<int> parent;
  std::vector<int> depth;
  std::vector<int> downwards;  ///< nodes, root first
};

Tree tree_of(std::vector<int> parent) {
  Tree tree{.parent = std::move(parent), .depth = {}, .downwards = {}};
  const int count = static_cast<int>(tree.parent.size());
  for (int node = 0; node < count; ++node) {
    int depth = 0;
    for (int up = tree.parent[static_cast<std::size_t>(node)]; up >= 0;
         up = tree.parent[static_cast<std::size_t>(up)]) {
      ++depth;
    }
    tree.depth.push_back(depth);
    tree.downwards.push_back(node);
  }
  std::stable_sort(tree.downwards.begin(), tree.downwards.end(), [&](int a, int b) {
    return tree.depth[static_cast<std::size_t>(a)] < tree.depth[static_cast<std::size_t>(b)];
  });
  return tree;
}

/// Adds one chunk's way through one tree. Node n is rank n + first. Nodes start no chunk before
/// `earlier` has come back to them (if there is one), as with a fixed number of buffers.
class Chunk {
 public:
  Chunk(MessageSchedule& schedule, const Tree& tree, int first, int block, int step)
      : schedule_(schedule),
        tree_(tree),
        first_(first),
        block_(block),
        step_(step),
        arrived_(tree.parent.size()) {}

  void wait_for(const Chunk& earlier) {
    for (std::size_t node = 0; node < arrived_.size(); ++node) {
      if (!earlier.arrived_[node].empty()) {
        arrived_[node].push_back(earlier.arrived_[node].back());
      }
    }
  }

  void reduce_upwards() {
    const int height = *std::max_element(tree_.depth.begin(), tree_.depth.end());
    for (auto node = tree_.downwards.rbegin(); node != tree_.downwards.rend(); ++node) {
      const int up = tree_.parent[static_cast<std::size_t>(*node)];
      if (up >= 0) {
        const int depth = tree_.depth[static_cast<std::size_t>(*node)];
        send(*node, up, true, step_ + height - depth);
      }
    }
    step_ += height;
  }
  void send_downwards() {
    for (const int node : tree_.downwards) {
      const int up = tree_.parent[static_cast<std::size_t>(node)];
      if (up >= 0) {
        send(up, node, false, step_ + tree_.depth[static_cast<std::size_t>(node)] - 1);
      }
    }
  }
  /// From rank 0, which stands above the root.
  void feed() {
    const int root = tree_.downwards.front();
    add({.sender = 0, .receiver = root + first_, .step = step_, .blocks = {block_}, .after = {}},
        root);
    ++step_;
  }

 private:
  void send(int from, int to, bool reduce, int step) {
    add({.sender = from + first_,
         .receiver = to + first_,
         .step = step,
         .reduce = reduce,
         .blocks = {block_},
         .after = arrived_[static_cast<std::size_t>(from)]},
        to);
  }
  void add(Message message, int to) {
    arrived_[static_cast<std::size_t>(to)].push_back(static_cast<int>(schedule_.messages.size()));
    schedule_.messages.push_back(std::move(message));
  }

  MessageSchedule& schedule_;
  const Tree& tree_;
  int first_;
  int block_;
  int step_;
  std::vector<std::vector<int>> arrived_;  ///< by node: messages of this chunk
};

}  // namespace

std::vector<int> in_order_tree(int count) {
  std::vector<int> parent{-1};
  for (int node = 1; node < count; ++node) {
    const int bit = node & -node;
    const int above = (node - bit) | (2 * bit);
    parent.push_back(above < count ? above : node - bit);
  }
  return parent;
}

std::vector<int> second_tree(int count) {
  const std::vector<int> first = in_order_tree(count);
  const auto image = [count](int node) {
    return count % 2 == 0 ? count - 1 - node : (node + 1) % count;
  };
  std::vector<int> parent(first.size(), -1);
  for (int node = 1; node < count; ++node) {
    parent[static_cast<std::size_t>(image(node))] = image(first[static_cast<std::size_t>(node)]);
  }
  return parent;
}

std::vector<GapLoad> tree_gap_loads(Kind kind, int ranks, bool closed) {
  std::vector<GapLoad> gaps(static_cast<std::size_t>(ranks));
  const auto send = [&](int from, int to) {  // half of the buffer, the shorter way
    const int ahead = (to - from + ranks) % ranks;
    const bool forward = closed ? 2 * ahead <= ranks : to > from;
    for (int at = from; at != to; at = (at + (forward ? 1 : ranks - 1)) % ranks) {
      const int gap = forward ? at : (at + ranks - 1) % ranks;
      GapLoad& load = gaps[static_cast<std::size_t>(gap)];
      (forward ? load.forward : load.backward) += 0.5;
    }
  };
  const bool reduces = kind == Kind::all_reduce;  // a broadcast's root stands above both trees
  const int first = reduces ? 0 : 1;
  for (const auto& parents : {in_order_tree(ranks - first), second_tree(ranks - first)}) {
    for (int node = 0; node < ranks - first; ++node) {
      const int up = parents[static_cast<std::size_t>(node)];
      if (up >= 0) {
        send(up + first, node + first);
      } else if (!reduces) {
        send(0, node + first);
      }
      if (up >= 0 && reduces) {
        send(node, up);
      }
    }
  }
  return gaps;
}

std::optional<MessageSchedule> tree_schedule(Kind kind, int ranks, int chunks) {
  if (kind != Kind::all_reduce && kind != Kind::broadcast) {
    return std::nullopt;
  }
  const int first = kind == Kind::broadcast ? 1 : 0;
  const Tree trees[] = {tree_of(in_order_tree(ranks - first)), tree_of(second_tree(ranks - first))};
  MessageSchedule schedule{.kind = kind,
                           .ranks = ranks,
                           .blocks = 2 * chunks,
                           .block_share = 0.5 / chunks,
                           .messages = {},
                           .lanes = 2};
  const std::size_t levels = static_cast<std::size_t>(ceil_log2(ranks));
  const std::size_t window = 2 * kChunksPerLevel * levels;
  std::vector<Chunk> ways;  // chunk by chunk, in both trees
  for (int way = 0; way < 2 * chunks; ++way) {
    const int tree = way % 2;
    const int chunk = way / 2;
    ways.emplace_back(schedule, trees[tree], first, tree * chunks + chunk, chunk);
    if (kind == Kind::broadcast) {
      ways.back().feed();
    } else {
      if (ways.size() > window) {
        ways.back().wait_for(ways[ways.size() - 1 - window]);
      }
      ways.back().reduce_upwards();
    }
    ways.back().send_downwards();
  }
  return schedule;
}

}  // namespace orrery::collective
