// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/link_order.h"

#include <algorithm>
#include <utility>

namespace orrery::flit {
namespace {

/// Adds a link to a rising row, once.
void add(std::vector<topology::LinkId>& row, topology::LinkId link) {
  const auto at = std::lower_bound(row.begin(), row.end(), link);
  if (at == row.end() || *at != link) {
    row.insert(at, link);
  }
}

/// Links that come after each, in rising order, each once.
std::vector<std::vector<topology::LinkId>> followers(std::size_t links, const EachRoute& each_route,
                                                     std::vector<std::int64_t>& place) {
  std::vector<std::vector<topology::LinkId>> after(links);
  each_route([&](std::span<const topology::Hop> route) {
    for (std::size_t h = 0; h < route.size(); ++h) {
      place[route[h].link] = 0;
      if (h + 1 < route.size()) {
        add(after[route[h].link], route[h + 1].link);
      }
    }
  });
  return after;
}

}  // namespace

LinkOrder order_links(std::size_t links, const EachRoute& each_route) {
  LinkOrder order{.place = std::vector<std::int64_t>(links, -1)};
  const auto after = followers(links, each_route, order.place);
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
  each_route([&](std::span<const topology::Hop> route) {
    int falls = 0;
    for (std::size_t h = 1; h < route.size(); ++h) {
      falls += order.place[route[h].link] <= order.place[route[h - 1].link] ? 1 : 0;
    }
    order.classes = std::max(order.classes, 1 + falls);
  });
  return order;
}

}  // namespace orrery::flit
