// SPDX-License-Identifier: Apache-2.0
/// Enumerations whose values have names in files, flags and reports, from one constexpr table,
/// which stands in the enumeration's own namespace:
///
///   constexpr auto named_values(Recompute) {
///     return std::to_array<Named<Recompute>>({{Recompute::none, "none", "keep all"}, ...});
///   }
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

template <class E>
struct Named {
  E value;
  std::string_view name;
  std::string_view meaning;  ///< one sentence, for help texts
};

/// The table of E, found by argument-dependent lookup.
template <class E>
inline constexpr auto kNames = named_values(E{});

template <class E>
constexpr std::string_view name_of(E value) {
  for (const Named<E>& entry : kNames<E>) {
    if (entry.value == value) {
      return entry.name;
    }
  }
  return "?";
}

template <class E>
constexpr std::optional<E> value_of(std::string_view name) {
  for (const Named<E>& entry : kNames<E>) {
    if (entry.name == name) {
      return entry.value;
    }
  }
  return std::nullopt;
}

template <class E>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  names.reserve(kNames<E>.size());
  for (const Named<E>& entry : kNames<E>) {
    names.emplace_back(entry.name);
  }
  return names;
}

/// Returns "a, b, c".
template <class E>
std::string all_names() {
  std::string text;
  for (const Named<E>& entry : kNames<E>) {
    text += (text.empty() ? "" : ", ");
    text += entry.name;
  }
  return text;
}

/// Returns "a, b, c"; of more than a dozen the first of them and how many more there are.
std::string enumerated(const std::vector<std::string>& names);

/// Returns the closest candidate within a third of its length, or nullptr. Edit distance with
/// transpositions; ties go to the earlier candidate.
const std::string* closest(std::string_view found, const std::vector<std::string>& candidates);

/// Returns " (did you mean 'x'?)" for the closest candidate, else the shortest that holds `found`,
/// or "".
std::string did_you_mean(std::string_view found, const std::vector<std::string>& candidates);

}  // namespace orrery
