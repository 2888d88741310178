// SPDX-License-Identifier: Apache-2.0
#include "machine/network/link_faults.h"

#include <string>

namespace orrery::network {
namespace {

/// Adds the link that messages count on; each once.
void add_link(const topology::LinkGraph& graph, std::size_t link, std::vector<std::size_t>& links) {
  link -= graph.links[link].joint ? link % 2 : 0;
  if (links.empty() || links.back() != link) {
    links.push_back(link);
  }
}

}  // namespace

bool LinkFaults::change(topology::LinkId link, double share) {
  const bool routes = (share_[link] == 0) != (share == 0);
  share_[link] = share;
  network_.scale(link, share);
  return routes && detours_.has_value();
}

void LinkFaults::began(TransferId id, std::span<const topology::Hop> route,
                       std::span<const topology::Hop> taken) {
  if (id >= messages_.size()) {
    messages_.resize(id + 1);
  }
  messages_[id] = {route, taken};
}

void LinkFaults::reroute(engine::EventQueue& queue,
                         const std::function<void(const Moved&)>& moved) {
  if (!detours_) {
    return;
  }
  std::vector<bool> lost(share_.size());
  for (std::size_t link = 0; link < share_.size(); ++link) {
    lost[link] = share_[link] == 0;
  }
  detours_->set_lost(lost);
  if (replan_) {
    replan_(lost, *detours_);
  }
  for (TransferId id = 0; id < messages_.size(); ++id) {
    Message& message = messages_[id];
    if (message.route.empty()) {
      continue;
    }
    const std::span<const topology::Hop> now = detours_->instead_of(message.route);
    if (now.data() == message.taken.data()) {
      continue;
    }
    if (const std::optional<Bytes> left = network_.reroute(id, now, queue)) {
      if (moved) {
        moved({message.taken, now, *left});
      }
      message.taken = now;
    }
  }
}

faults::Places places_of(const topology::LinkGraph& graph) {
  faults::Places places{.ranks = graph.hosts,
                        .compute = false,
                        .no_links = {},
                        .links = graph.links.size(),
                        .links_named = {},
                        .links_of_rank = {},
                        .link_example = graph.links.empty() ? "" : graph.link_name(0)};
  places.links_named = [&graph](const std::string& name) {
    const std::size_t both = name.find("--");
    std::vector<std::size_t> links;
    for (std::size_t l = 0; l < graph.links.size(); ++l) {
      bool meant = name == "all" || graph.link_name(l) == name;
      if (both != std::string::npos && graph.links[l].source >= 0) {
        const std::string a = name.substr(0, both);
        const std::string b = name.substr(both + 2);
        const std::string& from =
            graph.vertices[static_cast<std::size_t>(graph.links[l].source)].name;
        const std::string& to =
            graph.vertices[static_cast<std::size_t>(graph.links[l].target)].name;
        meant = meant || (from == a && to == b) || (from == b && to == a);
      }
      if (meant) {
        add_link(graph, l, links);
      }
    }
    return links;
  };
  places.links_of_rank = [&graph](std::int64_t host) {
    std::vector<std::size_t> links;
    for (std::size_t l = 0; l < graph.links.size(); ++l) {
      if (graph.links[l].source == host || graph.links[l].target == host) {
        add_link(graph, l, links);
      }
    }
    return links;
  };
  return places;
}

}  // namespace orrery::network
