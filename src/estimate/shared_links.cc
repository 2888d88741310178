// SPDX-License-Identifier: Apache-2.0
#include "estimate/shared_links.h"

#include <algorithm>

namespace orrery::estimation {

bool is_line(const NetworkDimension& dimension) {
  return dimension.kind == DimensionKind::ring || dimension.kind == DimensionKind::torus ||
         dimension.kind == DimensionKind::mesh;
}

Time MessageWay::alone(Bytes bytes) const {
  return latency + from_seconds(static_cast<double>(bytes.value()) * seconds_per_byte);
}

Time MessageWay::shared(Bytes bytes) const {
  return latency + from_seconds(static_cast<double>(bytes.value()) * seconds_per_byte * sharing);
}

SharedLinks::SharedLinks(const Machine& machine) : topology_(machine.network) {
  crossing_ = std::any_of(machine.network.begin(), machine.network.end(), is_line);
  if (crossing_) {
    on_link_.assign(topology_.links(), 0);
  }
}

bool SharedLinks::crossing(const Extent& extent) const {
  return is_line(topology_.dimensions()[static_cast<std::size_t>(extent.dimension)]);
}

int SharedLinks::count(std::vector<LinkId>& links) {
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  int most = 0;
  for (const LinkId link : links) {
    most = std::max(most, ++on_link_[link]);
  }
  used_.insert(used_.end(), links.begin(), links.end());
  return most;
}

void SharedLinks::clear() {
  for (const LinkId link : used_) {
    on_link_[link] = 0;
  }
  used_.clear();
}

double SharedLinks::groups_on_a_link(const std::vector<GroupMembers>& groups,
                                     const Extent& extent) {
  if (!crossing(extent)) {
    return 1;
  }
  int most = 1;
  for (const GroupMembers& group : groups) {
    std::vector<LinkId> links;
    for (const std::int64_t member : group) {
      const auto own =
          topology_.collective_links(member, extent.dimension, extent.count, extent.stride);
      links.insert(links.end(), own.begin(), own.end());
    }
    most = std::max(most, count(links));
  }
  clear();
  return most;
}

MessageWay SharedLinks::slowest(const std::vector<Pair>& messages) {
  MessageWay way;
  int most = 1;
  for (const Pair& message : messages) {
    Route route = topology_.route(message.from, message.to);
    way.latency = std::max(way.latency, route.latency + route.overhead);
    way.seconds_per_byte = std::max(way.seconds_per_byte, route.seconds_per_byte);
    way.dimension = std::max(way.dimension, route.dimension);
    if (crossing_) {
      most = std::max(most, count(route.links));
    }
  }
  clear();
  way.sharing = most;
  return way;
}

}  // namespace orrery::estimation
