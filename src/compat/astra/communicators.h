// SPDX-License-Identifier: Apache-2.0
/// Communicators say who takes part in a collective, and where each member stands.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compat/astra/phase.h"
#include "compat/astra/quirks.h"
#include "compat/astra/wires.h"
#include "workload/chakra/trace.h"

namespace orrery::astra {

/// Form of a communicator; many share one.
struct Shape {
  std::uint32_t id = 0;
  std::int64_t members = 1;
  /// The axes by network dimension (size 1: takes no part), or a single logical axis over all
  /// members.
  std::vector<Axis> axes;
  bool logical = false;
  /// A group that runs as one ring in file order, with its own endpoint delay (Quirk::group_ring).
  bool group_ring = false;
};

/// World collectives that leave dimensions out run in *lines*: the ranks that agree in the
/// coordinates of the dimensions left out. A *kind* is a pair of group slot and dimensions as they
/// occur in the programs; a rank has one communicator of each kind.
class Communicators {
 public:
  struct Kind {
    std::uint32_t slot = 0;
    std::uint32_t dimensions = 0;  ///< bit d; of a group: all
  };
  struct Communicator {
    std::uint32_t shape = 0;
    std::int64_t first_rank = 0;      ///< of a line
    std::uint32_t dimensions = 0;     ///< of a line
    std::vector<std::int64_t> ranks;  ///< of a group, by local index; empty for a line
    std::int64_t stride = 0;          ///< of a line in dimensions next to each other; else 0
  };
  struct Membership {
    std::uint32_t communicator = kUnknown;
    std::uint32_t local = 0;            ///< index among the members
    std::uint32_t sequence = 0;         ///< of the next collective
    std::uint32_t custom_sequence = 0;  ///< of the next that the user brings
  };
  static constexpr std::uint32_t kUnknown = 0xffffffff;

  Communicators(const chakra::TraceSet& traces, const Wires& wires, const Quirks& quirks);

  /// Returns the kind of a collective node of a program. Nodes of other types have none.
  std::uint32_t kind(std::uint32_t program, std::uint32_t node) const;
  const std::vector<Kind>& kinds() const { return kinds_; }

  /// Returns the communicator of a rank, and its local index (sequence is 0).
  Membership find(std::int64_t rank, std::uint32_t kind);

  std::size_t count() const { return communicators_.size(); }
  const Shape& shape_of(std::uint32_t communicator) const {
    return shapes_[communicators_[communicator].shape];
  }
  const Communicator& communicator(std::uint32_t index) const { return communicators_[index]; }
  std::int64_t rank_of(std::uint32_t communicator, std::uint32_t local) const;

 private:
  void collect_kinds();
  Kind kind_of(const chakra::Node& collective) const;
  /// Finds a communicator in a line. `group`: the world, or one of as many ranks, which is a
  /// communicator of its own.
  Membership find_in_line(std::int64_t rank, std::uint32_t dimensions, std::uint32_t group);
  Membership find_in_group(std::int64_t rank, std::uint32_t group);
  std::uint32_t open_line(std::int64_t first_rank, std::uint32_t dimensions);
  std::uint32_t open_group(std::uint32_t group);
  std::uint32_t shape_of_line(std::uint32_t dimensions);
  /// Returns the group as a grid: its axes, and its ranks in grid order. A single logical axis if
  /// it is none.
  Shape grid_of(std::vector<std::int64_t>& ranks) const;
  std::uint32_t add(Shape shape);

  const chakra::TraceSet& traces_;
  const Wires& wires_;
  const Quirks& quirks_;
  std::vector<Kind> kinds_;
  std::unordered_map<std::uint64_t, std::uint32_t> kinds_by_key_;  ///< slot and dimensions
  std::uint32_t every_dimension_ = 0;                              ///< of more than one rank
  std::vector<Shape> shapes_;
  std::vector<Communicator> communicators_;
  std::map<std::uint32_t, std::uint32_t> line_shapes_;  ///< by dimensions
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, std::uint32_t> lines_;
  std::map<std::uint32_t, std::uint32_t> groups_;
  /// Each group opened has its ranks and local indices here, ascending.
  std::map<std::uint32_t, std::vector<std::pair<std::int64_t, std::uint32_t>>> places_;
};

}  // namespace orrery::astra
