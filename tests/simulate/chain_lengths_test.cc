// SPDX-License-Identifier: Apache-2.0
// How long chains are, against the definition of chain.h tried node by node.
#include "simulate/chain_lengths.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "simulate/chain.h"

namespace orrery::simulate {
namespace {

/// A template in which only order, streams and dependencies matter.
struct Shape {
  BoundTemplate bound;
  std::vector<std::vector<std::uint32_t>> before;
  std::vector<std::optional<Time>> alone;

  /// Requires earlier nodes in `after`.
  void add(std::size_t stream, std::vector<std::uint32_t> after, std::optional<Time> time) {
    BoundNode node;
    node.stream = graph::StreamIndex(stream);
    node.kind = stream == 0 ? graph::Node::Kind::compute : graph::Node::Kind::collective;
    bound.nodes.push_back(node);
    before.push_back(std::move(after));
    alone.push_back(time);
  }

  Grouped grouped() const {
    return {before.size(), [&](const auto& add) {
              for (std::uint32_t i = 0; i < before.size(); ++i) {
                for (const std::uint32_t earlier : before[i]) {
                  add(i, earlier);
                }
              }
            }};
  }

  void bind() {
    for (std::uint32_t i = 0; i < bound.nodes.size(); ++i) {
      bound.nodes[i].first_dependent = static_cast<std::uint32_t>(bound.dependents.size());
      for (std::uint32_t later = i + 1; later < bound.nodes.size(); ++later) {
        if (std::ranges::find(before[later], i) != before[later].end()) {
          bound.dependents.push_back(later);
          ++bound.nodes[i].dependent_count;
        }
      }
    }
  }
};

/// Returns whether nodes [first, last] are a chain by its definition.
bool is_chain(const Shape& shape, std::uint32_t first, std::uint32_t last) {
  const auto stream = [&](std::uint32_t i) { return *shape.bound.nodes[i].stream; };
  std::set<std::size_t> lanes;
  bool lasts = false;
  for (std::uint32_t i = first; i <= last; ++i) {
    lanes.insert(stream(i));
    lasts = lasts || stream(i) == 0 || *shape.alone[i] > Time(0);
    for (const std::uint32_t before : shape.before[i]) {
      if (i > first && before < first) {
        return false;
      }
    }
    for (std::uint32_t later = last + 1; later < shape.bound.nodes.size(); ++later) {
      if (i < last && std::ranges::count(shape.before[later], i) > 0) {
        return false;
      }
    }
  }
  for (const std::size_t lane : lanes) {  // the last step waits for all other lanes
    std::uint32_t end = last;
    while (lane != 0 && stream(end) != lane) {
      --end;
    }
    bool waited = lane == 0;
    for (std::uint32_t i = end + 1; i <= last; ++i) {
      waited = waited || (stream(i) == 0 && std::ranges::count(shape.before[i], end) > 0);
    }
    if (!waited) {
      return false;
    }
  }
  return stream(last) == 0 && lanes.size() <= kMostLanes && lasts;
}

std::uint32_t longest_from(const Shape& shape, std::uint32_t first) {
  std::uint32_t length = 0;
  for (std::uint32_t last = first; last < shape.bound.nodes.size(); ++last) {
    if (!shape.alone[last]) {
      break;
    }
    length =
        *shape.bound.nodes[first].stream == 0 && (last == first || is_chain(shape, first, last))
            ? last - first + 1
            : length;
  }
  return length;
}

RC_GTEST_PROP(ChainLengths, AreThoseOfTheLongestChainByItsDefinition, ()) {
  Shape shape;
  const auto nodes = *rc::gen::inRange<std::uint32_t>(1, 14);
  const auto barriers = *rc::gen::inRange(0, 6);
  for (std::uint32_t i = 0; i < nodes; ++i) {
    std::vector<std::uint32_t> after;
    for (std::uint32_t earlier = 0; earlier < i; ++earlier) {
      if (*rc::gen::inRange(0, 4) == 0) {
        after.push_back(earlier);
      }
    }
    const bool barrier = *rc::gen::inRange(0, 20) < barriers;
    shape.add(static_cast<std::size_t>(std::max(*rc::gen::inRange(-3, 4), 0)), std::move(after),
              barrier ? std::nullopt : std::optional(Time(*rc::gen::inRange(0, 2))));
  }
  shape.bind();
  ChainLengths lengths(shape.bound, shape.grouped(), shape.alone);
  for (std::uint32_t first = 0; first < nodes; ++first) {
    RC_ASSERT(lengths.from(first) == longest_from(shape, first));
  }
}

TEST(ChainLengths, OfATemplateWithFewChainsTakeLittle) {
  // Gradients of a layer are reduced beside the next layer's kernels, and nobody waits before the
  // end: from each kernel on, a chain could only end there. Trying each to the end takes n^2.
  Shape shape;
  constexpr std::uint32_t kLayers = 100'000;
  shape.add(0, {}, Time(1));
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    shape.add(1, {2 * layer}, Time(1));
    shape.add(0, {}, Time(1));
  }
  shape.bound.nodes.back().kind = graph::Node::Kind::compute;
  ChainLengths lengths(shape.bound, shape.grouped(), shape.alone);
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < shape.bound.nodes.size(); ++i) {
    EXPECT_LE(lengths.from(i), 1U);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace orrery::simulate
