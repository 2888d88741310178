// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/link_order.h"

#include <algorithm>
#include <utility>

namespace orrery::flit {
namespace {

/// Links that come after each, in rising order, each once.
std::vector<std::vector<topology::LinkId>> followers(std::size_t links, const EachWay& each_way,
                                                     std::vector<std::int64_t>& place) {
  std::vector<std::vector<topology::LinkId>> after(links);
  each_way([&](std::span<const topology::Hop> way) {
    for (std::size_t h = 0; h < way.size(); ++h) {
      place[way[h].link] = 0;
      std::vector<topology::LinkId>& next = after[way[h].link];
      if (h + 1 < way.size()) {
        const topology::LinkId link = way[h + 1].link;
        const auto at = std::lower_bound(next.begin(), next.end(), link);
        if (at == next.end() || *at != link) {
          next.insert(at, link);
        }
      }
    }
  });
  return after;
}

}  // namespace

LinkOrder order_links(std::size_t links, const EachWay& each_way) {
  LinkOrder order{.place = std::vector<std::int64_t>(links, -1)};
  const auto after = followers(links, each_way, order.place);
  std::vector<bool> seen(links, false);
  std::vector<std::pair<topology::LinkId, std::size_t>> stack;  // a link, and its next follower
  auto last = static_cast<std::int64_t>(links);
  for (topology::LinkId root = 0; root < links; ++root) {
    const auto enter = [&](topology::LinkId link) {
      if (!seen[link] && order.place[link] >= 0) {
        seen[link] = true;
        stack.emplace_back(link, 0);
      }
    };
    enter(root);
    while (!stack.empty()) {
      auto& [link, next] = stack.back();
      if (next < after[link].size()) {
        enter(after[link][next++]);
      } else {
        order.place[link] = --last;
        stack.pop_back();
      }
    }
  }
  each_way([&](std::span<const topology::Hop> way) {
    int falls = 0;
    for (std::size_t h = 1; h < way.size(); ++h) {
      falls += order.place[way[h].link] <= order.place[way[h - 1].link] ? 1 : 0;
    }
    order.classes = std::max(order.classes, 1 + falls);
  });
  return order;
}

}  // namespace orrery::flit
