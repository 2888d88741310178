// SPDX-License-Identifier: Apache-2.0
/// Rows of a workload's tables.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace orrery::graph {

/// Row of one of a workload's tables. Who makes workloads may name rows by an enum of its own: one
/// for which `row_of(E) -> Row` is declared turns into the index of equal value.
template <class Row>
class Index {
 public:
  constexpr Index() = default;
  constexpr explicit Index(std::size_t row) : row_(static_cast<std::uint16_t>(row)) {}
  template <class E>
    requires requires(E e) { requires std::same_as<decltype(row_of(e)), Row>; }
  constexpr Index(E row) : row_(static_cast<std::uint16_t>(row)) {}  // NOLINT: names a row

  constexpr std::size_t operator*() const { return row_; }
  constexpr bool none() const { return row_ == kNone; }
  friend constexpr auto operator<=>(const Index&, const Index&) = default;

 private:
  static constexpr std::uint16_t kNone = 0xffff;
  std::uint16_t row_ = kNone;
};
struct GroupRow {};
struct StreamRow {};
struct PhaseRow {};
struct CategoryRow {};
struct MemoryRow {};
using GroupIndex = Index<GroupRow>;
using StreamIndex = Index<StreamRow>;
using PhaseIndex = Index<PhaseRow>;
using CategoryIndex = Index<CategoryRow>;
using MemoryIndex = Index<MemoryRow>;

}  // namespace orrery::graph
