// SPDX-License-Identifier: Apache-2.0
/// Says which ranks form communicators, as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace orrery::graph {

/// Part of a rank number: rank / stride % size.
struct Digit {
  std::int64_t size = 1;
  std::int64_t stride = 1;

  std::int64_t of(std::int64_t rank) const { return rank / stride % size; }
  friend bool operator==(const Digit&, const Digit&) = default;
};

/// `rank` read as a number of these digits, innermost first.
std::int64_t coordinate_of(const std::vector<Digit>& digits, std::int64_t rank);
/// Returns `rank` with that number replaced.
std::int64_t replaced(const std::vector<Digit>& digits, std::int64_t rank, std::int64_t coordinate);
std::int64_t product_of(const std::vector<Digit>& digits);

/// A family of disjoint communicators. Either they stand by digits: the ranks that agree in all
/// other digits of their numbers form one, in the order of the number that the digits make; `only`
/// leaves all but some of those numbers out. Or they stand as a list of communicators, each a list
/// of ranks in its order.
struct Members {
  std::vector<Digit> digits;       ///< innermost first, none of size 1
  std::vector<std::int64_t> only;  ///< ascending; empty: all
  std::vector<std::vector<std::int64_t>> lists;
  std::vector<std::int32_t> list_of;  ///< by rank, where there are lists; -1: in none of them

  /// Requires ranks below `ranks`, each in at most one list.
  static Members listed(std::vector<std::vector<std::int64_t>> lists, std::int64_t ranks);

  bool by_digits() const { return lists.empty(); }
  /// Returns the size of the largest communicator; 1 when every rank is alone.
  std::int64_t size() const;
  /// Returns whether `rank` is in a communicator.
  bool holds(std::int64_t rank) const;
  /// Returns the communicator that holds `rank`, in order: `rank` alone or, where it is left out,
  /// nobody.
  std::vector<std::int64_t> group(std::int64_t rank) const;
  /// Return the number of `rank` in its communicator, and the member of a number. They require
  /// holds(rank).
  std::int64_t coordinate(std::int64_t rank) const;
  std::int64_t member(std::int64_t rank, std::int64_t coordinate) const;

  friend bool operator==(const Members&, const Members&) = default;
};

/// Returns the coarsest digits of which all `parts` are made, as far as they lie outside of
/// `whole`, and innermost first; nullopt when boundaries do not divide one another.
std::optional<std::vector<Digit>> refine(const std::vector<Digit>& parts,
                                         const std::vector<Digit>& whole, std::int64_t ranks);

}  // namespace orrery::graph
