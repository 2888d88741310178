// SPDX-License-Identifier: Apache-2.0
/// Lists are mapped, item by item: to values, or to one text.
#pragma once

#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace orrery {

/// Returns what `of` (a function or a member) makes of each item, in their order: as T, or as what
/// it makes.
template <class T = void, class Items, class Of>
auto mapped(const Items& items, const Of& of) {
  using Made = std::remove_cvref_t<std::invoke_result_t<const Of&, decltype(*std::begin(items))>>;
  std::vector<std::conditional_t<std::is_void_v<T>, Made, T>> all;
  if constexpr (requires { std::size(items); }) {
    all.reserve(std::size(items));
  }
  for (const auto& item : items) {
    all.emplace_back(std::invoke(of, item));
  }
  return all;
}

/// Returns the texts or whole numbers that `of` makes of the items, `between` between them:
/// "a, b, c".
template <class Items, class Of = std::identity>
std::string joined(const Items& items, std::string_view between = ", ", const Of& of = {}) {
  std::string text;
  bool first = true;
  for (const auto& item : items) {
    text += first ? std::string_view() : between;
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(std::invoke(of, item))>>) {
      text += std::to_string(std::invoke(of, item));
    } else {
      text += std::invoke(of, item);
    }
    first = false;
  }
  return text;
}

}  // namespace orrery
