// SPDX-License-Identifier: Apache-2.0
#include "estimate/repeats.h"

#include <algorithm>
#include <array>

namespace orrery::estimate {
namespace {

using Kind = TimedNode::Kind;

constexpr std::uint32_t kLeastTimes = 4;   // two are evaluated to find out that a third is alike
constexpr std::size_t kMostBlocks = 4;     // of a period
constexpr std::uint32_t kMostPeriods = 2;  // that it may reach back

/// Whether node `i` waits as the node `length` before it does, and hears and says nothing.
bool waits_again(const TimedTemplate& nodes, std::uint32_t i, std::uint32_t length) {
  const TimedNode& now = nodes.nodes[i];
  const TimedNode& before = nodes.nodes[i - length];
  if (now.befores != before.befores ||
      (now.kind != Kind::kernels && now.kind != Kind::collective && now.kind != Kind::wait)) {
    return false;
  }
  const auto waits = nodes.before.begin() + now.first_before;
  const auto waited = nodes.before.begin() + before.first_before;
  return std::equal(waits, waits + now.befores, waited,
                    [&](std::uint32_t a, std::uint32_t b) { return a == b + length; });
}

/// Reach, lanes and host of the nodes of a period but the first.
void describe(const TimedTemplate& nodes, Repeat& repeat) {
  repeat.reach = repeat.length;
  for (std::uint32_t i = repeat.first + repeat.length; i < repeat.first + 2 * repeat.length; ++i) {
    const TimedNode& node = nodes.nodes[i];
    repeat.lanes |= std::uint32_t{1} << node.lane;
    repeat.host_sync = repeat.host_sync || node.host_sync;
    for (std::uint32_t b = 0; b < node.befores; ++b) {
      repeat.reach = std::max(repeat.reach, i - nodes.before[node.first_before + b]);
    }
  }
}

/// Whether nothing behind it minds that it was jumped.
bool is_apart(const TimedTemplate& nodes, const Repeat& repeat) {
  const std::size_t end = repeat.end();
  std::array<std::size_t, kMostLanes> last{};  // node of every lane that it uses
  for (std::size_t i = end - repeat.length; i < end; ++i) {
    last[nodes.nodes[i].lane] = i;
  }
  std::vector<std::uint8_t> after(nodes.nodes.size() - end, 0);  // whether it begins after the last
  for (std::size_t i = end; i < nodes.nodes.size(); ++i) {
    const TimedNode& node = nodes.nodes[i];
    bool waits = repeat.uses(node.lane);
    for (std::uint32_t b = 0; b < node.befores; ++b) {
      const std::size_t before = nodes.before[node.first_before + b];
      if (before >= repeat.first && before < end - repeat.reach) {
        return false;
      }
      waits = waits ||
              (before >= end ? after[before - end] != 0
                             : before >= repeat.first && last[nodes.nodes[before].lane] == before);
    }
    after[i - end] = waits ? 1 : 0;
    if (!waits && node.transfer >= 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<Repeat> find_repeats(const TimedTemplate& nodes,
                                 const std::vector<std::uint32_t>& starts,
                                 const std::vector<std::uint32_t>& kinds) {
  std::vector<Repeat> repeats;
  const auto count = static_cast<std::uint32_t>(nodes.nodes.size());
  for (std::size_t s = 0; s + kLeastTimes < starts.size();) {
    Repeat found;
    std::size_t tried = 0;  // up to this node: a part of it will hardly do where the whole does not
    for (std::size_t blocks = 1; blocks <= kMostBlocks && s + blocks < starts.size(); ++blocks) {
      Repeat repeat{.first = starts[s], .length = starts[s + blocks] - starts[s]};
      std::uint32_t end = starts[s + blocks];
      while (repeat.length > 0 && end < count && kinds[end] == kinds[end - repeat.length] &&
             waits_again(nodes, end, repeat.length)) {
        ++end;
      }
      repeat.times = repeat.length > 0 ? (end - repeat.first) / repeat.length : 0;
      if (repeat.times < kLeastTimes) {
        continue;
      }
      tried = std::max(tried, repeat.end() - repeat.length);
      describe(nodes, repeat);
      if (repeat.reach <= kMostPeriods * repeat.length && is_apart(nodes, repeat)) {
        found = repeat;
        break;
      }
    }
    if (found.times > 0) {
      repeats.push_back(found);
      tried = found.end();
    }
    do {
      ++s;
    } while (s < starts.size() && starts[s] < tried);
  }
  return repeats;
}

}  // namespace orrery::estimate
