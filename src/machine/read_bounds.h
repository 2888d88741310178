// SPDX-License-Identifier: Apache-2.0
/// Readers of a machine file's parts share these: upper bounds of values, names.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/fields.h"
#include "base/format.h"
#include "base/reader.h"
#include "base/units.h"

namespace orrery::machine {

inline constexpr const char* kShare = "a share above 0 and at most 1";

/// Returns the largest value of a field's type: beyond it a value is a slip of the unit, and below,
/// products of two stay finite.
template <class T>
std::optional<T> largest() {
  if constexpr (std::is_same_v<T, double>) {
    return 1e9;
  } else if constexpr (std::is_same_v<T, Time>) {
    return 1000_s;
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return Bytes(std::int64_t{1} << 60);
  } else if constexpr (std::is_same_v<T, Bandwidth>) {
    return Bandwidth(1e18);
  } else if constexpr (std::is_same_v<T, FlopRate>) {
    return FlopRate(1e24);
  } else if constexpr (std::is_same_v<T, Power>) {
    return Power(1e9);
  } else if constexpr (std::is_same_v<T, EnergyPerByte>) {
    return EnergyPerByte(1);
  } else if constexpr (std::is_same_v<T, Energy>) {
    return Energy(1);
  } else if constexpr (std::is_same_v<T, Money>) {
    return Money(1e6);
  }
  return std::nullopt;
}

template <class T>
void require_bounded(Reader& read, std::string_view name, const T& value) {
  if constexpr (requires { exact_text(value); }) {
    if (const std::optional<T> most = largest<T>()) {
      read.require(value <= *most, name, "at most " + exact_text(*most));
    }
  }
}

/// Reads fields as read_fields() does, with upper bounds.
template <class T>
void read_bounded_fields(Reader& read, T& value) {
  read_fields(read, value);
  T::fields([&](std::string_view name, auto member, std::string_view) {
    require_bounded(read, name, value.*member);
  });
}

/// Every field of `names` must be given.
inline void require_given(Reader& read, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    read.child(name, true);
  }
}

/// Names are parts of dotted fields.
inline void check_name(Reader& read, const std::string& name, std::set<std::string>& others) {
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
  read.require(plain, "name", "a name of letters, digits, '_' and '-'");
  read.require(others.insert(name).second, "name", "a name that no other entry of the list has");
}

}  // namespace orrery::machine
