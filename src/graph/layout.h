// SPDX-License-Identifier: Apache-2.0
/// A tensor on a mesh of ranks.
///
/// Each axis of the mesh holds the tensor in one of four ways:
///
///   replicate  R     a whole copy on every rank
///   shard      S(d)  a part of it along dimension d
///   partial    P     a partial sum of full shape
///   only       c     only at coordinate c (a stage of a pipeline)
///
/// Axes that shard one dimension nest: the later axis of the mesh cuts first. Shards may be uneven:
/// of n elements over p ranks, rank i has those from floor(i n / p) to floor((i+1) n / p).
///
/// A tensor of a training step is held twice, as a value and as the gradient of the loss by it, and
/// not always alike: where every rank works on a copy (R) with its own samples, the gradient is a
/// partial sum (P) on each. Where an edge of the graph converts the value `from -> to`, its
/// backward pass converts the gradient `to -> from`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace orrery::graph {

struct MeshAxis {
  std::string name;  ///< "tp"
  std::int64_t size = 1;
};

/// Ranks by coordinates, the first axis the fastest.
struct Mesh {
  std::vector<MeshAxis> axes;

  std::int64_t ranks() const;
  std::int64_t stride(std::size_t axis) const;
  std::int64_t coordinate(std::int64_t rank, std::size_t axis) const {
    return rank / stride(axis) % axes[axis].size;
  }
};

/// Says how a tensor is placed on one axis of the mesh.
struct Placement {
  enum class Kind : std::uint8_t { replicate, shard, partial, only };
  Kind kind = Kind::replicate;
  int value = 0;  ///< shard: the tensor's dimension; only: the coordinate

  static constexpr Placement replicate() { return {}; }
  static constexpr Placement shard(int dimension) { return {Kind::shard, dimension}; }
  static constexpr Placement partial() { return {Kind::partial, 0}; }
  static constexpr Placement only(int coordinate) { return {Kind::only, coordinate}; }

  friend constexpr auto operator<=>(const Placement&, const Placement&) = default;
};

/// Holds a tensor's placement by axis of the mesh.
using Layout = std::vector<Placement>;

/// A value, and the gradient of the loss by it.
struct Held {
  Layout value;
  Layout gradient;

  friend bool operator==(const Held&, const Held&) = default;
};

/// Returns "tp summands, pp 0 only".
std::string to_string(const Layout& layout, const Mesh& mesh);

/// A Shape is what is laid out: extents and the size of an element.
struct Shape {
  static constexpr std::size_t kMost = 6;
  std::vector<std::int64_t> extents;  ///< 1 to kMost
  Bytes element{1};

  Bytes bytes() const;
};

/// Elements from `begin` to `end` (excluded) in every dimension.
struct Box {
  std::array<std::int64_t, Shape::kMost> begin{};
  std::array<std::int64_t, Shape::kMost> end{};

  std::int64_t elements() const;
  bool empty() const { return elements() == 0; }
  bool contains(const Box& inner) const;
  friend bool operator==(const Box&, const Box&) = default;
};
Box intersection(const Box& a, const Box& b);

/// Returns what `rank` holds: elements, or partial sums of them; empty for ranks where the
/// tensor is not.
Box held(const Shape& shape, const Mesh& mesh, const Layout& layout, std::int64_t rank);

}  // namespace orrery::graph
