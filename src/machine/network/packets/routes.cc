// SPDX-License-Identifier: Apache-2.0
#include "machine/network/packets/routes.h"

#include <algorithm>

namespace orrery::packets {

Routes::Routes(const topology::LinkGraph& graph) : graph_(graph), reverse_(graph.links.size(), -1) {
  const topology::Adjacency adjacency(graph);
  for (std::size_t l = 0; l < reverse_.size(); ++l) {
    const topology::GraphLink& forward = graph.links[l];
    const auto opposite = [&](std::int32_t other) {
      return link(other).source == forward.target && link(other).target == forward.source;
    };
    if (forward.source < 0) {
      continue;
    }
    const auto beside = static_cast<std::int32_t>(l ^ 1);
    if (static_cast<std::size_t>(beside) < reverse_.size() && opposite(beside)) {
      reverse_[l] = beside;
      continue;
    }
    for (const std::int32_t other : adjacency.out(forward.target)) {
      reverse_[l] = opposite(other) ? other : reverse_[l];
    }
  }
}

void Routes::add(std::int32_t number, Bandwidth rate) {
  const bool differs = rate != link(number).bandwidth;
  if (rates_.empty() && differs) {
    for (const std::int32_t before : links_) {
      rates_.push_back(link(before).bandwidth.value());
    }
  }
  links_.push_back(number);
  if (differs || !rates_.empty()) {
    rates_.push_back(rate.value());
  }
}

std::uint32_t Routes::lay(std::span<const std::int32_t> links) {
  const auto first = static_cast<std::uint32_t>(links_.size());
  for (const std::int32_t number : links) {
    add(number, link(number).bandwidth);
  }
  return first;
}

std::uint32_t Routes::lay(std::span<const topology::Hop> hops) {
  const auto first = static_cast<std::uint32_t>(links_.size());
  for (const topology::Hop& hop : hops) {
    add(static_cast<std::int32_t>(hop.link), hop.bandwidth);
  }
  return first;
}

std::optional<std::uint32_t> Routes::lay_back(std::uint32_t route, std::uint16_t hops) {
  std::vector<std::int32_t> back;
  for (std::uint16_t h = hops; h-- > 0;) {
    back.push_back(reverse(links_[route + h]));
    if (back.back() < 0) {
      return std::nullopt;
    }
  }
  return lay(back);
}

bool Routes::lack_way_back() const {
  return std::ranges::any_of(links_, [this](std::int32_t number) { return reverse(number) < 0; });
}

}  // namespace orrery::packets
