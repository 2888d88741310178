// SPDX-License-Identifier: Apache-2.0
/// The communicators of traces as families of which every rank has at most one, as rows of a
/// workload's table of groups need them.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/members.h"
#include "workload/chakra/trace.h"

namespace orrery::chakra {

/// A GroupUse is what a collective node of a program names: a slot, and of the world some
/// dimensions only.
struct GroupUse {
  static constexpr std::uint32_t kAllDimensions = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t slot = kWorldSlot;
  std::uint32_t dimensions = kAllDimensions;  ///< bit d
  friend auto operator<=>(const GroupUse&, const GroupUse&) = default;
};

/// Communicators that one slot of one program names on different ranks are one family, and so are
/// those of two slots that name one communicator; unless two of them share a rank: then each of
/// these goes, by the order of the groups, to the first family that has none of its ranks yet.
/// Families of one kind of digits on different ranks (the same axis in several stages) are one.
class Families {
 public:
  struct Family {
    std::string name;                               ///< "group 3", after the first; "world"
    std::vector<std::vector<std::int64_t>> groups;  ///< ranks ascending, by order of the groups
    graph::Members members;  ///< of the world and parts of it, else for those by digits
  };
  /// A Place is where a rank stands: the family of a use, and how many members its communicator
  /// there has.
  struct Place {
    std::size_t family = 0;
    std::int64_t members = 1;
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  /// uses: by program, ascending. dimensions: sizes, innermost first, of which uses name bits.
  Families(const TraceSet& traces, const std::vector<std::vector<GroupUse>>& uses,
           const std::vector<std::int64_t>& dimensions);

  std::size_t size() const { return families_.size(); }
  Place place(std::int64_t rank, const GroupUse& use) const;
  /// Takes the families: those that are lists become digits where they can, or some values of the
  /// digits of roles.
  std::vector<Family> take(const std::vector<graph::Digit>& roles);

 private:
  void add_world(const GroupUse& use, const std::vector<std::int64_t>& dimensions);
  void add_groups(const std::vector<std::uint32_t>& groups);
  void add_to(std::size_t family, std::uint32_t group, std::vector<std::int64_t> ranks);
  void join_alike(std::size_t last);
  std::size_t first_free(std::size_t first, const std::vector<std::int64_t>& ranks) const;
  std::vector<std::int64_t> sorted_ranks(std::uint32_t group) const;

  const TraceSet& traces_;
  std::vector<Family> families_;
  std::map<std::uint32_t, std::size_t> of_world_;  ///< by dimensions
  std::vector<std::size_t> of_group_;              ///< by group
  std::vector<std::vector<bool>> taken_;           ///< [family][rank]
};

}  // namespace orrery::chakra
