// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "collective/algorithm.h"

namespace orrery::collective {

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

namespace {

/// Bytes, in units of S, on the links from member g to g+1 and back: both trees on a line, or on a
/// ring (closed), where the last entry is the way from the last member to the first.
std::vector<Gap> tree_gap_loads(graph::CollectiveKind kind, int ranks, bool closed) {
  std::vector<Gap> gaps(static_cast<std::size_t>(ranks), {0, 0});
  const auto send = [&](int from, int to) {  // half of the buffer, the shorter way
    const int ahead = (to - from + ranks) % ranks;
    const bool forward = closed ? 2 * ahead <= ranks : to > from;
    for (int at = from; at != to; at = (at + (forward ? 1 : ranks - 1)) % ranks) {
      const int gap = forward ? at : (at + ranks - 1) % ranks;
      Gap& load = gaps[static_cast<std::size_t>(gap)];
      (forward ? load.forward : load.backward) += 0.5;
    }
  };
  const bool reduces =
      kind == graph::CollectiveKind::all_reduce;  // a broadcast's root stands above both trees
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

/// Bytes through the busiest port, in units of S: an inner rank of one tree sends S/2 up and S/2 to
/// each of two children, and S/2 up as a leaf of the other tree. Two and three members have no rank
/// with two children.
double tree_port_load(std::int64_t members) {
  return members == 2 ? 1 : members == 3 ? 1.5 : 2;
}

/// Returns the load of the busiest link of a line or ring. Over several axes: a level's edges do
/// not overlap, two trees send S/2 on each.
double tree_line_load(graph::CollectiveKind kind, std::int64_t members, const Fabric& fabric) {
  if (fabric.longest != members) {
    return ceil_log2(members) + 0.5;
  }
  double busiest = 0;
  for (const Gap& gap :
       tree_gap_loads(kind, static_cast<int>(members), fabric.form == Fabric::Form::cycle)) {
    busiest = std::max({busiest, gap.forward, gap.backward});
  }
  return busiest;
}

std::optional<StepCount> tree_counts(graph::CollectiveKind kind, std::int64_t members,
                                     const Fabric& fabric) {
  const bool all_reduce = kind == graph::CollectiveKind::all_reduce;
  if (!all_reduce && kind != graph::CollectiveKind::broadcast) {
    return std::nullopt;
  }
  // Broadcast: the root stands above both trees of the others.
  const double depth = all_reduce ? ceil_log2(members) : 1 + ceil_log2(members - 1);
  StepCount count{.steps = passes_of(kind) * depth,
                  .load = all_reduce ? tree_port_load(members) : 1};
  if (fabric.form == Fabric::Form::complete) {  // both trees may use a link in the same direction
    count.load = fabric.links;
  }
  if (fabric.is_grid()) {
    count.load = fabric.links * tree_line_load(kind, members, fabric);
    count.further_hops = passes_of(kind) * std::max(0.0, fabric.span - depth);
  }
  return count;
}

/// A chain through the inner dimensions of each outermost coordinate, a double binary tree over the
/// coordinates of the outermost.
std::optional<StepCount> tree_part(graph::CollectiveKind kind, const Place& at,
                                   const Fabric& fabric) {
  if (kind != graph::CollectiveKind::all_reduce) {
    return std::nullopt;
  }
  if (at.outermost) {
    StepCount count =
        tree_counts(kind, static_cast<std::int64_t>(at.count), fabric).value_or(StepCount{});
    count.load /= at.inside;
    return count;
  }
  const double chains = at.below / (at.inside * at.count);
  const double steps = 2 * (at.count - 1) * chains;
  return StepCount{.steps = steps,
                   .further_hops = steps * (fabric.hops - 1),
                   .load = 2 * (at.count - 1) / (at.inside * at.count) * fabric.ring_load};
}

/// Two children and a parent in either tree, over the outermost dimension.
std::int64_t tree_peers(std::span<const Extent> extents, std::size_t i) {
  constexpr std::int64_t kTreeNeighbours = 4;
  return i + 1 == extents.size() ? std::min(extents[i].count - 1, kTreeNeighbours) : 1;
}

Gap tree_load(graph::CollectiveKind kind, std::int64_t members, std::int64_t gap) {
  const auto loads = tree_gap_loads(kind, static_cast<int>(members), false);
  double busiest = 0;
  for (const Gap& load : loads) {
    busiest = std::max({busiest, load.forward, load.backward});
  }
  const Gap& here = loads[static_cast<std::size_t>(gap)];
  return {here.forward / busiest, here.backward / busiest};
}

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
  /// Sends the block from rank 0, which stands above the root, to the root.
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

/// all_reduce: each chunk goes up its tree, is reduced on the way, and comes down again. broadcast:
/// rank 0 feeds the roots of two trees over the other ranks. The first tree carries the first half
/// of the blocks.
std::optional<MessageSchedule> tree_messages(graph::CollectiveKind kind,
                                             std::span<const int> counts, int chunks) {
  if (kind != graph::CollectiveKind::all_reduce && kind != graph::CollectiveKind::broadcast) {
    return std::nullopt;
  }
  const int ranks = ranks_of(counts);
  const int first = kind == graph::CollectiveKind::broadcast ? 1 : 0;
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
    if (kind == graph::CollectiveKind::broadcast) {
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

}  // namespace

std::string_view tree_left_out(graph::CollectiveKind kind, const std::vector<Extent>& extents) {
  if (extents.back().dimension == 0) {
    return "inside a node NCCL's tree is a chain, as slow as its ring";
  }
  return kind == graph::CollectiveKind::all_reduce
             ? "auto gives trees the bandwidth of rings at most, as measured over two nodes"
             : "";
}

AlgorithmRow double_binary_tree_row() {
  return {.value = CollectiveAlgorithm::double_binary_tree,
          .name = "double_binary_tree",
          .sentence = "two pipelined trees, S/2 each",
          .alias = "tree",
          .counts = tree_counts,
          .part = tree_part,
          .peers = tree_peers,
          .sum_efficiency = kTreeEfficiency,
          .own_chunk = false,
          .messages = tree_messages,
          .load = tree_load,
          .alike = false,
          .left_out = tree_left_out};
}

}  // namespace orrery::collective
