// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <utility>

#include "compat/astra/phase.h"

namespace orrery::astra {
namespace {

Tree from_parents(std::vector<std::int32_t> parent) {
  Tree tree;
  const std::size_t count = parent.size();
  tree.first_child.assign(count + 1, 0);
  tree.child_ordinal.assign(count, 0);
  for (std::size_t node = 0; node < count; ++node) {
    if (parent[node] >= 0) {
      tree.child_ordinal[node] = tree.first_child[static_cast<std::size_t>(parent[node]) + 1]++;
    }
  }
  for (std::size_t node = 0; node < count; ++node) {
    tree.first_child[node + 1] += tree.first_child[node];
  }
  tree.children.resize(tree.first_child[count]);
  for (std::size_t node = 0; node < count; ++node) {
    if (parent[node] >= 0) {
      const auto above = static_cast<std::size_t>(parent[node]);
      tree.children[tree.first_child[above] + tree.child_ordinal[node]] =
          static_cast<std::int32_t>(node);
    }
  }
  tree.parent = std::move(parent);
  return tree;
}

/// Root of an in-order tree of positions [begin, end): the middle of the smallest complete tree
/// that holds them, so that complete trees come out complete.
std::int32_t hang(std::vector<std::int32_t>& parent, std::int32_t begin, std::int32_t end,
                  std::int32_t above) {
  if (begin >= end) {
    return -1;
  }
  const auto count = static_cast<std::uint32_t>(end - begin);
  const auto left = static_cast<std::int32_t>(std::bit_floor(count)) - 1;
  const std::int32_t root = begin + left;
  parent[static_cast<std::size_t>(root)] = above;
  hang(parent, begin, root, root);
  hang(parent, root + 1, end, root);
  return root;
}

}  // namespace

Tree in_order_tree(std::int64_t count, bool second) {
  std::vector<std::int32_t> parent(static_cast<std::size_t>(count), -1);
  const auto last = static_cast<std::int32_t>(count) - 1;
  if (second) {
    hang(parent, 1, last + 1, 0);
  } else {
    hang(parent, 0, last, last);
  }
  return from_parents(std::move(parent));
}

Tree star(std::int64_t count) {
  std::vector<std::int32_t> parent(static_cast<std::size_t>(count), 0);
  parent[0] = -1;
  return from_parents(std::move(parent));
}

}  // namespace orrery::astra
