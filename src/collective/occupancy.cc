// SPDX-License-Identifier: Apache-2.0
#include "collective/occupancy.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "collective/algorithm.h"

namespace orrery::collective {
namespace {

using Kind = graph::CollectiveKind;

/// All messages of a member at once, each on the shortest route.
bool spreads(const CollectivePhase& phase) {
  return phase.kind != Kind::send_recv && row_of(phase.algorithm).at_once;
}

Gap gap_of_cycle(const CollectivePhase& phase, std::int64_t members) {
  if (phase.kind == Kind::send_recv || members == 2) {
    return {1, 0};
  }
  const std::int64_t whole_half = members / 2;
  const auto half = static_cast<double>(whole_half);
  const bool tie = members % 2 == 0;
  return spreads(phase) && tie ? Gap{1, (half - 1) / (half + 1)} : Gap{};
}

Gap gap_of_line(const CollectivePhase& phase, std::int64_t members, std::int64_t gap) {
  const auto load = row_of(phase.algorithm).load;
  return load ? load(phase.kind, members, gap) : Gap{};
}

/// The uses of one phase, link by link.
class Uses {
 public:
  Uses(const CollectivePhase& phase, std::span<const std::int64_t> members,
       const topology::LinkMap& links)
      : phase_(phase), members_(members), links_(links) {}

  void add(const PortUse& port) {
    dimension_ = port.extent.dimension;
    switch (links_.dimensions()[static_cast<std::size_t>(port.extent.dimension)].kind) {
      case topology::DimensionKind::switched:
        return add_switch(port);
      case topology::DimensionKind::fully_connected:
        return add_complete(port);
      case topology::DimensionKind::ring:
      case topology::DimensionKind::torus:
      case topology::DimensionKind::mesh:
        return add_grid(port);
    }
  }

  /// Returns the use of each link, times the link's `factor`. What several dimensions put on a link
  /// adds up, except in a shift, in which every member sends over one of them.
  template <class Factor, class Stand>
  std::vector<topology::LinkUse> by_link(const Factor& factor, const Stand& representative) {
    const bool one = phase_.kind == Kind::send_recv;
    for (Use& use : uses_) {
      use.link = representative(use.link);
    }
    std::sort(uses_.begin(), uses_.end(), [](const Use& a, const Use& b) {
      return std::tie(a.link, a.dimension) < std::tie(b.link, b.dimension);
    });
    std::vector<topology::LinkUse> sums;
    for (std::size_t i = 0; i < uses_.size();) {
      const Use first = uses_[i];
      double sum = 0;
      for (;
           i < uses_.size() && uses_[i].link == first.link && uses_[i].dimension == first.dimension;
           ++i) {
        sum += uses_[i].weight * factor(first.link);
      }
      if (sums.empty() || sums.back().link != first.link) {
        sums.push_back({first.link, 0});
      }
      double& weight = sums.back().weight;
      weight = one ? std::max(weight, sum) : weight + sum;
    }
    return sums;
  }

 private:
  double weight(Time busy) const {
    return phase_.serialisation > Time(0) ? topology::counted(busy / phase_.serialisation) : 1;
  }

  struct Use {
    topology::LinkId link = 0;
    int dimension = 0;  ///< that the bytes go over
    double weight = 0;
  };

  void use(topology::LinkId link, double weight) {
    if (weight > 0) {
      uses_.push_back({link, dimension_, weight});
    }
  }

  void add_switch(const PortUse& port) {
    const int d = port.extent.dimension;
    const double own = weight(port.serialisation);
    for (const std::int64_t member : members_) {
      use(links_.up(member, d), own);
      use(links_.down(member, d), own);
      if (const int inner = links_.through(d); inner >= 0) {
        use(links_.up(member, inner), weight(port.through));
        use(links_.down(member, inner), weight(port.through));
      }
      if (links_.has_node(d)) {
        use(links_.node_up(member, d), weight(port.node));
        use(links_.node_down(member, d), weight(port.node));
      }
    }
  }

  /// Adds the links to the other members: all, or that to the next.
  void add_complete(const PortUse& port) {
    const Extent& extent = port.extent;
    const int d = extent.dimension;
    const std::int64_t size = links_.dimensions()[static_cast<std::size_t>(d)].size;
    const bool one_by_one = row_of(phase_.algorithm).in_turn;
    const double own =
        weight(one_by_one ? port.serialisation / (extent.count - 1) : port.serialisation);
    for (const std::int64_t member : members_) {
      const std::int64_t place = links_.coordinate(member, d) / extent.stride % extent.count;
      for (std::int64_t other = 0; other < extent.count; ++other) {
        const bool next = other == (place + 1) % extent.count;
        if (other != place && (next || phase_.kind != Kind::send_recv)) {
          const std::int64_t ahead = ((other - place) * extent.stride + size) % size;
          use(links_.direct(member, d, ahead), own);
        }
      }
      if (links_.has_port(d)) {
        use(links_.port_out(member, d), weight(port.port));
        use(links_.port_in(member, d), weight(port.port));
      }
    }
  }

  void add_grid(const PortUse& port) {
    const int d = port.extent.dimension;
    const topology::NetworkDimension& dimension = links_.dimensions()[static_cast<std::size_t>(d)];
    const bool whole = port.extent.count * port.extent.stride == dimension.size;
    if (dimension.kind != topology::DimensionKind::mesh && whole) {
      add_cycle(port, dimension.size);
      return;
    }
    std::map<std::int64_t, std::vector<std::int64_t>> lines;
    for (const std::int64_t member : members_) {
      lines[member - links_.coordinate(member, d) * links_.stride(d)].push_back(member);
    }
    for (const auto& [first, line] : lines) {
      for (std::size_t g = 0; g + 1 < line.size(); ++g) {
        const Gap gap = gap_of_line(phase_, std::ssize(line), static_cast<std::int64_t>(g));
        add_route(line[g], line[g + 1], d, weight(port.serialisation) * gap.forward);
        add_route(line[g + 1], line[g], d, weight(port.serialisation) * gap.backward);
      }
    }
  }

  /// Each member's links to the next and to the one before, so that one member of a folded ring has
  /// its own.
  void add_cycle(const PortUse& port, std::int64_t size) {
    const int d = port.extent.dimension;
    const Gap gap = gap_of_cycle(phase_, port.extent.count);
    for (const std::int64_t member : members_) {
      const std::int64_t here = links_.coordinate(member, d);
      const auto at = [&](std::int64_t there) {
        return member + ((there + size) % size - here) * links_.stride(d);
      };
      add_route(member, at(here + port.extent.stride), d, weight(port.serialisation) * gap.forward,
                true);
      if (gap.backward > 0) {
        add_route(member, at(here - port.extent.stride), d,
                  weight(port.serialisation) * gap.backward, true);
      }
    }
  }

  /// Adds a message's use of the links of one dimension and the ports that they share with others.
  void add_route(std::int64_t from, std::int64_t to, int dimension, double weight,
                 bool folds = false) {
    std::vector<topology::Hop> hops;
    links_.route(from, to, hops);
    const std::size_t own = links_.has_port(dimension) ? 1 : 0;
    // A neighbour on a folded ring may stand for itself elsewhere: as much comes in as goes out.
    const bool neighbours = folds && links_.has_port(dimension) && hops.size() == 3;
    for (const topology::Hop& hop : hops) {
      const bool comes_in = neighbours && hop.link == links_.port_in(to, dimension);
      use(comes_in ? links_.port_in(from, dimension) : hop.link,
          topology::counted(weight * (hops[own].bandwidth / hop.bandwidth)));
    }
  }

  const CollectivePhase& phase_;
  std::span<const std::int64_t> members_;
  const topology::LinkMap& links_;
  int dimension_ = 0;
  std::vector<Use> uses_;
};

}  // namespace

double Occupancy::alike(topology::LinkId link) const {
  const std::int64_t owners = links_.owners(link);
  if (owners == 1) {
    return 1;
  }
  const std::int64_t first = links_.first_owner(link);
  const auto begin = std::lower_bound(simulated_.begin(), simulated_.end(), first);
  const auto end = std::lower_bound(begin, simulated_.end(), first + owners);
  return static_cast<double>(owners) / static_cast<double>(end - begin);
}

topology::LinkId Occupancy::representative(topology::LinkId link) const {
  const std::int64_t device = links_.first_owner(link);
  std::int64_t folded = device;
  for (const graph::Digit& digit : folded_) {
    folded -= digit.of(folded) * digit.stride;
  }
  return folded == device ? link : links_.same_of(link, folded);
}

std::vector<topology::LinkUse> Occupancy::phase(const CollectivePhase& phase,
                                                std::span<const std::int64_t> members) const {
  Uses uses(phase, members, links_);
  for (const PortUse& port : phase.ports) {
    uses.add(port);
  }
  return uses.by_link([this](topology::LinkId link) { return alike(link); },
                      [this](topology::LinkId link) { return representative(link); });
}

topology::Route Occupancy::message(std::int64_t source, std::int64_t destination) const {
  topology::Route route = links_.message(source, destination);
  for (topology::LinkUse& use : route.links) {
    use.link = representative(use.link);
    use.weight *= alike(use.link);
  }
  std::sort(route.links.begin(), route.links.end(),
            [](const topology::LinkUse& a, const topology::LinkUse& b) { return a.link < b.link; });
  std::vector<topology::LinkUse> once;  // a long route may pass links that one link stands for
  for (const topology::LinkUse& use : route.links) {
    if (once.empty() || once.back().link != use.link) {
      once.push_back(use);
    } else {
      once.back().weight += use.weight;
    }
  }
  route.links = std::move(once);
  return route;
}

}  // namespace orrery::collective
