// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <span>

#include "collective/steps.h"

namespace orrery::collective {
namespace {

/// Members along one axis of a grid.
struct Run {
  std::int64_t size = 1;  ///< of the axis
  std::int64_t count = 1;
  std::int64_t stride = 1;
  bool whole() const { return count * stride == size; }
};

/// The axes over which a group runs, innermost first.
struct Runs {
  static constexpr int kMost = 8;
  std::array<Run, kMost> run;
  int count = 0;
  int axes = 0;          ///< of the dimension, with more than one device
  bool aligned = false;  ///< the group is the product of the runs

  std::span<const Run> all() const { return {run.data(), static_cast<std::size_t>(count)}; }
};

Runs runs_of(const Extent& extent, std::span<const std::int64_t> shape) {
  Runs runs;
  std::int64_t stride = extent.stride;
  std::int64_t left = extent.count;
  bool aligned = true;
  for (const std::int64_t size : shape) {
    runs.axes += size > 1 ? 1 : 0;
    if (left == 1 || !aligned) {
      continue;
    }
    if (stride >= size) {
      aligned = stride % size == 0;
      stride /= size;
      continue;
    }
    const std::int64_t here = std::min(left, size / stride);
    aligned = size % stride == 0 && left % here == 0 && runs.count < Runs::kMost;
    if (aligned && here > 1) {
      runs.run[static_cast<std::size_t>(runs.count++)] = {size, here, stride};
    }
    left /= here;
    stride = 1;
  }
  runs.aligned = aligned && left == 1;
  return runs;
}

/// Members one after the other along one open line, whatever the shape.
Fabric line_of(const Extent& extent, double links) {
  const auto members = static_cast<double>(extent.count);
  const auto stride = static_cast<double>(extent.stride);
  return {.form = Fabric::Form::line,
          .links = links,
          .longest = extent.count,
          .hops = stride,
          .wrap_hops = (members - 1) * stride,
          .span = (members - 1) * stride,
          .diameter = (members - 1) * stride,
          .ring_load = links};
}

/// A product of rings has as many edge-disjoint Hamiltonian cycles as factors (Foregger, Discrete
/// Mathematics 24, 1978; Alspach, Bermond, Sotteau 1990), each used in both directions; a mesh with
/// an even number of devices and two axes or more has one.
Fabric grid_of(const Extent& extent, std::span<const std::int64_t> shape, bool closed) {
  const Runs runs = runs_of(extent, shape);
  const bool pair = shape.size() == 1 && shape[0] == 2;  // one link between them
  Fabric fabric = line_of(extent, pair ? 1 : 2.0 * std::max(runs.axes, 1));
  if (!runs.aligned) {
    return fabric;
  }
  bool whole = true;
  double halfway = 0;
  fabric.span = 0;
  fabric.longest = 1;
  fabric.hops = 1;
  for (const Run& run : runs.all()) {
    whole = whole && run.whole();
    const auto stride = static_cast<double>(run.stride);
    fabric.longest = std::max(fabric.longest, run.count);
    fabric.hops = std::max(fabric.hops, stride);
    fabric.span += static_cast<double>(run.count - 1) * stride;
    const std::int64_t half = run.count / 2;
    halfway += static_cast<double>(half) * stride;
  }
  fabric.wrap_hops = fabric.span;
  fabric.diameter = fabric.span;
  if (closed && whole && extent.count > 2) {
    fabric.form = Fabric::Form::cycle;
    fabric.wrap_hops = fabric.hops;
    fabric.diameter = halfway;
    fabric.ring_load = static_cast<double>(runs.axes) / runs.count;
  } else if (whole && runs.count > 1 && extent.count % 2 == 0) {
    fabric.wrap_hops = fabric.hops;
    fabric.ring_load = runs.axes;
  }
  return fabric;
}

/// The complete directed graph of p members splits into p-1 Hamiltonian cycles, except p = 4 and 6
/// (Tillson, Journal of Combinatorial Theory B 29, 1980), where p-2 remain (Walecki).
Fabric complete_of(const Extent& extent, const topology::NetworkDimension& dimension) {
  const std::int64_t members = extent.count;
  const std::int64_t rings = members == 4 || members == 6 ? members - 2 : members - 1;
  const auto links = static_cast<double>(std::max(dimension.size, members) - 1);
  return {.form = Fabric::Form::complete,
          .links = links,
          .longest = members,
          .ring_load = links / static_cast<double>(rings)};
}

}  // namespace

Fabric fabric_of(const Extent& extent, const topology::NetworkDimension& dimension) {
  const std::int64_t devices = std::max(dimension.size, extent.count * extent.stride);
  const std::array<std::int64_t, 1> one_axis{devices};
  const bool shaped = !dimension.shape.empty();
  switch (dimension.kind) {
    case topology::DimensionKind::switched:
      return {};
    case topology::DimensionKind::fully_connected:
      return complete_of(extent, dimension);
    case topology::DimensionKind::ring:
      return grid_of(extent, one_axis, true);
    case topology::DimensionKind::torus:
      return grid_of(extent, shaped ? std::span(dimension.shape) : std::span(one_axis), true);
    case topology::DimensionKind::mesh:
      return grid_of(extent, shaped ? std::span(dimension.shape) : std::span(one_axis), false);
  }
  return {};
}

}  // namespace orrery::collective
