// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/communicators.h"

#include <algorithm>
#include <bit>
#include <set>

namespace orrery::astra {
namespace {

Axis logical_axis(std::int64_t members) {
  return {.queue = 0, .size = members, .local_stride = 1, .uniform = false};
}

std::uint64_t key(const Communicators::Kind& kind) {
  return std::uint64_t{kind.slot} << 32 | kind.dimensions;
}

}  // namespace

Communicators::Communicators(const chakra::TraceSet& traces, const Wires& wires,
                             const Quirks& quirks)
    : traces_(traces), wires_(wires), quirks_(quirks) {
  collect_kinds();
}

void Communicators::collect_kinds() {
  for (int d = 0; d < wires_.dimensions(); ++d) {
    every_dimension_ |= wires_.size(d) > 1 ? 1U << d : 0;
  }
  for (const chakra::Program& program : traces_.programs) {
    for (const chakra::Node& node : program.nodes) {
      if (node.type != chakra::NodeType::comm_coll) {
        continue;
      }
      const Kind kind = kind_of(node);
      if (kinds_by_key_.try_emplace(key(kind), static_cast<std::uint32_t>(kinds_.size())).second) {
        kinds_.push_back(kind);
      }
    }
  }
}

Communicators::Kind Communicators::kind_of(const chakra::Node& collective) const {
  const bool some = collective.group == chakra::kWorldSlot && collective.has_involved;
  return {collective.group, some ? collective.involved & every_dimension_ : every_dimension_};
}

std::uint32_t Communicators::kind(std::uint32_t program, std::uint32_t node) const {
  const chakra::Node& of = traces_.programs[program].nodes[node];
  return of.type == chakra::NodeType::comm_coll ? kinds_by_key_.at(key(kind_of(of))) : kUnknown;
}

Communicators::Membership Communicators::find(std::int64_t rank, std::uint32_t kind) {
  const Kind& wanted = kinds_[kind];
  const std::uint32_t group = traces_.group(rank, wanted.slot);
  const std::vector<std::int64_t>& ranks = traces_.groups[group].ranks;
  const bool world = ranks.empty() || static_cast<std::int64_t>(ranks.size()) == wires_.npus();
  return world ? find_in_line(rank, wanted.dimensions, group) : find_in_group(rank, group);
}

Communicators::Membership Communicators::find_in_line(std::int64_t rank, std::uint32_t dimensions,
                                                      std::uint32_t group) {
  std::int64_t first = rank;
  std::int64_t local = 0;
  std::int64_t stride = 1;
  for (int d = 0; d < wires_.dimensions(); ++d) {
    if ((dimensions >> d & 1U) != 0) {
      const std::int64_t coordinate = wires_.coordinate(rank, d);
      first -= coordinate * wires_.stride(d);
      local += coordinate * stride;
      stride *= wires_.size(d);
    }
  }
  const auto [place, added] = lines_.try_emplace({group, dimensions, first}, 0);
  if (added) {
    place->second = open_line(first, dimensions);
  }
  return {place->second, static_cast<std::uint32_t>(local), 0};
}

Communicators::Membership Communicators::find_in_group(std::int64_t rank, std::uint32_t group) {
  const auto [place, added] = groups_.try_emplace(group, 0);
  if (added) {
    place->second = open_group(group);
  }
  const auto& places = places_[group];
  const auto found = std::lower_bound(places.begin(), places.end(), std::pair{rank, 0U});
  return {place->second, found->second, 0};
}

std::uint32_t Communicators::open_line(std::int64_t first_rank, std::uint32_t dimensions) {
  communicators_.push_back({shape_of_line(dimensions), first_rank, dimensions, {}});
  const int lowest = std::countr_zero(dimensions);
  if (dimensions != 0 && std::has_single_bit((dimensions >> lowest) + 1)) {
    communicators_.back().stride = wires_.stride(lowest);
  }
  return static_cast<std::uint32_t>(communicators_.size() - 1);
}

std::uint32_t Communicators::open_group(std::uint32_t group) {
  std::vector<std::int64_t> ranks = traces_.groups[group].ranks;
  Shape shape;
  if (quirks_[Quirk::group_ring]) {
    shape.axes = {logical_axis(static_cast<std::int64_t>(ranks.size()))};
    shape.logical = true;
    shape.group_ring = true;
  } else {
    shape = grid_of(ranks);
  }
  shape.members = static_cast<std::int64_t>(ranks.size());
  std::vector<std::pair<std::int64_t, std::uint32_t>>& places = places_[group];
  for (std::uint32_t local = 0; local < ranks.size(); ++local) {
    places.emplace_back(ranks[local], local);
  }
  std::sort(places.begin(), places.end());
  communicators_.push_back({add(std::move(shape)), 0, 0, std::move(ranks)});
  return static_cast<std::uint32_t>(communicators_.size() - 1);
}

std::uint32_t Communicators::add(Shape shape) {
  for (const Shape& known : shapes_) {
    const auto same_axis = [](const Axis& a, const Axis& b) {
      return a.queue == b.queue && a.size == b.size && a.local_stride == b.local_stride &&
             a.uniform == b.uniform;
    };
    if (known.members == shape.members && known.logical == shape.logical &&
        known.group_ring == shape.group_ring &&
        std::equal(known.axes.begin(), known.axes.end(), shape.axes.begin(), shape.axes.end(),
                   same_axis)) {
      return known.id;
    }
  }
  shape.id = static_cast<std::uint32_t>(shapes_.size());
  shapes_.push_back(std::move(shape));
  return shapes_.back().id;
}

std::uint32_t Communicators::shape_of_line(std::uint32_t dimensions) {
  const auto [place, added] = line_shapes_.try_emplace(dimensions, 0);
  if (added) {
    Shape shape;
    for (int d = 0; d < wires_.dimensions(); ++d) {
      const std::int64_t size = (dimensions >> d & 1U) != 0 ? wires_.size(d) : 1;
      shape.axes.push_back({d, size, static_cast<std::uint32_t>(shape.members), true});
      shape.members *= size;
    }
    place->second = add(std::move(shape));
  }
  return place->second;
}

Shape Communicators::grid_of(std::vector<std::int64_t>& ranks) const {
  Shape shape;
  std::vector<std::int64_t> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  std::int64_t product = 1;
  for (int d = 0; d < wires_.dimensions(); ++d) {
    std::set<std::int64_t> coordinates;
    for (std::int64_t rank : sorted) {
      coordinates.insert(wires_.coordinate(rank, d));
    }
    const auto size = static_cast<std::int64_t>(coordinates.size());
    shape.axes.push_back({d, size, static_cast<std::uint32_t>(product), size == wires_.size(d)});
    product *= size;
  }
  if (product == static_cast<std::int64_t>(ranks.size())) {
    ranks = std::move(sorted);  // ascending ranks are grid order: dimension 0 is the fastest
  } else {
    shape.axes = {logical_axis(static_cast<std::int64_t>(ranks.size()))};
    shape.logical = true;
  }
  return shape;
}

std::int64_t Communicators::rank_of(std::uint32_t communicator, std::uint32_t local) const {
  const Communicator& of = communicators_[communicator];
  if (!of.ranks.empty()) {
    return of.ranks[local];
  }
  if (of.stride > 0) {
    return of.first_rank + local * of.stride;
  }
  std::int64_t rank = of.first_rank;
  std::int64_t left = local;
  for (int d = 0; d < wires_.dimensions(); ++d) {
    if ((of.dimensions >> d & 1U) != 0) {
      rank += left % wires_.size(d) * wires_.stride(d);
      left /= wires_.size(d);
    }
  }
  return rank;
}

}  // namespace orrery::astra
