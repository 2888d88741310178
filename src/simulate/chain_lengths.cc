// SPDX-License-Identifier: Apache-2.0
#include "simulate/chain_lengths.h"

#include <algorithm>
#include <map>
#include <set>

#include "simulate/chain.h"

namespace orrery::simulate {
namespace {

using Befores = Grouped;

constexpr std::int64_t kNever = INT64_MAX;

/// Returns by node the first of those it waits for.
std::vector<std::int64_t> earliest_of(const Befores& before) {
  std::vector<std::int64_t> earliest;
  earliest.reserve(before.size());
  for (std::size_t node = 0; node < before.size(); ++node) {
    const std::span<const std::uint32_t> nodes = before[node];
    earliest.push_back(nodes.empty() ? kNever : *std::min_element(nodes.begin(), nodes.end()));
  }
  return earliest;
}

std::uint32_t latest_dependent(const BoundTemplate& shape, std::uint32_t i) {
  const BoundNode& node = shape.nodes[i];
  std::uint32_t latest = 0;
  for (std::uint32_t d = 0; d < node.dependent_count; ++d) {
    latest = std::max(latest, shape.dependents[node.first_dependent + d]);
  }
  return latest;
}

/// Returns by node the last node before it that a chain which ends there must not have: one with a
/// later dependent, or the last of another stream that no compute node up to there waits for. -1
/// where there is none, kNever where no chain ends.
std::vector<std::int64_t> ends_from(const BoundTemplate& shape, const Befores& before) {
  std::vector<std::int64_t> from(shape.nodes.size(), kNever);
  std::vector<std::uint32_t> depended;  // ascending, on by nodes to come
  std::set<std::uint32_t> open;         // last of their streams, unwaited
  std::map<graph::StreamIndex, std::uint32_t> last_of_stream;
  for (std::uint32_t i = 0; i < shape.nodes.size(); ++i) {
    while (!depended.empty() && latest_dependent(shape, depended.back()) <= i) {
      depended.pop_back();
    }
    const graph::StreamIndex stream = shape.nodes[i].stream;
    if (stream == graph::kComputeStream) {
      for (const std::uint32_t waited : before[i]) {
        open.erase(waited);
      }
      from[i] = std::max(open.empty() ? -1 : std::int64_t{*open.rbegin()},
                         depended.empty() ? -1 : std::int64_t{depended.back()});
    } else {
      if (const auto last = last_of_stream.find(stream); last != last_of_stream.end()) {
        open.erase(last->second);
      }
      last_of_stream[stream] = i;
      open.insert(i);
    }
    depended.push_back(i);
  }
  return from;
}

}  // namespace

MinTree::MinTree(std::vector<std::int64_t> values) {
  while (leaves_ < values.size()) {
    leaves_ *= 2;
  }
  least_.assign(2 * leaves_, kNever);
  std::copy(values.begin(), values.end(), least_.begin() + static_cast<std::ptrdiff_t>(leaves_));
  for (std::size_t node = leaves_ - 1; node > 0; --node) {
    least_[node] = std::min(least_[2 * node], least_[2 * node + 1]);
  }
}

std::size_t MinTree::first_below(std::size_t begin, std::size_t end, std::int64_t bound) const {
  std::size_t node = leaves_ + begin;
  while (begin < end) {
    if (least_[node] < bound) {
      while (node < leaves_) {  // down to it
        node = 2 * node + (least_[2 * node] < bound ? 0 : 1);
      }
      return std::min(node - leaves_, end);
    }
    while (node % 2 == 1 && node > 1) {  // up until there is a neighbour to the right
      node /= 2;
    }
    if (node <= 1) {
      return end;
    }
    ++node;
    begin = node;  // the leftmost leaf below it
    while (begin < leaves_) {
      begin *= 2;
    }
    begin -= leaves_;
  }
  return end;
}

std::size_t MinTree::last_below(std::size_t begin, std::size_t end, std::int64_t bound) const {
  std::size_t past = end;  // leaves before it are to be looked at
  while (past > begin) {
    std::size_t node = leaves_ + past - 1;
    std::size_t width = 1;
    while (node % 2 == 1 && node > 1 && !(least_[node] < bound)) {
      node /= 2;
      width *= 2;
    }
    if (least_[node] < bound) {
      while (node < leaves_) {
        node = 2 * node + (least_[2 * node + 1] < bound ? 1 : 0);
      }
      return node - leaves_ >= begin ? node - leaves_ : end;
    }
    if (width >= past) {
      return end;
    }
    past -= width;
  }
  return end;
}

ChainLengths::ChainLengths(const BoundTemplate& shape, const Befores& before,
                           const std::vector<std::optional<Time>>& alone)
    : shape_(shape),
      alone_(alone),
      barrier_(shape.nodes.size() + 1, static_cast<std::uint32_t>(shape.nodes.size())),
      earliest_before_(earliest_of(before)),
      ends_from_(ends_from(shape, before)) {
  lasting_.push_back(0);
  std::uint32_t streams = 0;
  for (std::size_t i = 0; i < shape.nodes.size(); ++i) {
    const bool lasts =
        shape.nodes[i].kind == graph::Node::Kind::compute || alone[i].value_or(Time(0)) > Time(0);
    lasting_.push_back(lasting_.back() + (lasts ? 1 : 0));
    streams = std::max(streams, static_cast<std::uint32_t>(*shape.nodes[i].stream) + 1);
  }
  for (std::size_t i = shape.nodes.size(); i-- > 0;) {
    barrier_[i] = alone[i] ? barrier_[i + 1] : static_cast<std::uint32_t>(i);
  }
  in_window_.assign(streams, 0);
}

std::uint32_t ChainLengths::lanes_end(std::uint32_t first) {
  const auto other = [&](std::uint32_t i) {
    return shape_.nodes[i].stream != graph::kComputeStream;
  };
  for (; window_begin_ < first; ++window_begin_) {
    if (window_begin_ >= window_end_) {
      window_end_ = window_begin_ + 1;  // an empty window moves along
    } else if (other(window_begin_)) {
      streams_in_window_ -= --in_window_[*shape_.nodes[window_begin_].stream] == 0 ? 1 : 0;
    }
  }
  for (; window_end_ < shape_.nodes.size(); ++window_end_) {
    if (other(window_end_)) {
      std::uint32_t& nodes = in_window_[*shape_.nodes[window_end_].stream];
      if (nodes == 0 && streams_in_window_ + 1 == kMostLanes) {
        break;
      }
      streams_in_window_ += nodes++ == 0 ? 1 : 0;
    }
  }
  return window_end_;
}

std::uint32_t ChainLengths::from(std::uint32_t first) {
  if (!alone_[first] || shape_.nodes[first].stream != graph::kComputeStream) {
    return 0;
  }
  const std::uint32_t fits = std::min(barrier_[first], lanes_end(first));
  const std::size_t end = earliest_before_.first_below(first + 1, fits, first);
  const std::size_t last = ends_from_.last_below(first + 1, end, first);
  const bool lasts = last < end && lasting_[last + 1] > lasting_[first];
  return lasts ? static_cast<std::uint32_t>(last) - first + 1 : 1;
}

}  // namespace orrery::simulate
