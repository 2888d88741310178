// SPDX-License-Identifier: Apache-2.0
/// A plain struct's fields, declared once and used for YAML, flags, help texts and reports: a
/// struct offers `template <class V> static void fields(V&& visit)` calling visit("name",
/// &Struct::member, "one sentence") for each field.
#pragma once

#include <string>
#include <string_view>

#include "base/reader.h"

namespace orrery {

/// Fills the fields that the map gives; others keep their value in `value`.
template <class T>
void read_fields(Reader& read, T& value) {
  T::fields([&](std::string_view name, auto member, std::string_view) {
    value.*member = read.optional(name, value.*member);
  });
}

}  // namespace orrery
