// SPDX-License-Identifier: Apache-2.0
#include "graph/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/lists.h"

namespace orrery::graph {

std::int64_t Mesh::ranks() const {
  return stride(axes.size());
}

std::int64_t Mesh::stride(std::size_t axis) const {
  std::int64_t product = 1;
  for (std::size_t i = 0; i < axis; ++i) {
    product *= axes[i].size;
  }
  return product;
}

std::string to_string(const Layout& layout, const Mesh& mesh) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const std::string& name = mesh.axes[i].name;
    switch (layout[i].kind) {
      case Placement::Kind::replicate:
        parts.push_back(name + " copies");
        break;
      case Placement::Kind::shard:
        parts.push_back(fmt::format("{} slices of dimension {}", name, layout[i].value));
        break;
      case Placement::Kind::partial:
        parts.push_back(name + " summands");
        break;
      case Placement::Kind::only:
        parts.push_back(fmt::format("{} {} only", name, layout[i].value));
        break;
    }
  }
  return joined(parts);
}

Bytes Shape::bytes() const {
  Bytes product = element;
  for (const std::int64_t extent : extents) {
    product = product * extent;
  }
  return product;
}

std::int64_t Box::elements() const {
  std::int64_t product = 1;
  for (std::size_t d = 0; d < begin.size(); ++d) {
    product *= std::max<std::int64_t>(0, end[d] - begin[d]);
  }
  return product;
}

bool Box::contains(const Box& inner) const {
  return inner.empty() || intersection(*this, inner) == inner;
}

Box intersection(const Box& a, const Box& b) {
  Box both;
  for (std::size_t d = 0; d < both.begin.size(); ++d) {
    both.begin[d] = std::max(a.begin[d], b.begin[d]);
    both.end[d] = std::max(both.begin[d], std::min(a.end[d], b.end[d]));
  }
  return both;
}

Box held(const Shape& shape, const Mesh& mesh, const Layout& layout, std::int64_t rank) {
  Box box;
  box.end.fill(1);
  std::copy(shape.extents.begin(), shape.extents.end(), box.end.begin());
  for (std::size_t axis = layout.size(); axis-- > 0;) {
    const std::int64_t at = mesh.coordinate(rank, axis);
    const Placement& placement = layout[axis];
    if (placement.kind == Placement::Kind::only && placement.value != at) {
      return {};
    }
    if (placement.kind == Placement::Kind::shard) {
      const auto d = static_cast<std::size_t>(placement.value);
      const std::int64_t first = box.begin[d];
      const std::int64_t length = box.end[d] - first;
      const std::int64_t size = mesh.axes[axis].size;
      box.begin[d] = first + at * length / size;
      box.end[d] = first + (at + 1) * length / size;
    }
  }
  return box;
}

}  // namespace orrery::graph
