// SPDX-License-Identifier: Apache-2.0
/// Flags, JSON and text of plain structs by their fields (base/fields.h): what a command asks and
/// answers has the same names everywhere.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/format.h"
#include "cli/command.h"
#include "report/json_writer.h"

namespace orrery::cli {

/// Returns the help text's word for a value of a struct's field.
template <class T, class Struct>
std::string kind_of_field(T Struct::* /*field*/) {
  if constexpr (std::is_same_v<T, bool>) {
    return "[BOOL]";
  } else if constexpr (std::is_same_v<T, Time> || std::is_same_v<T, Duration>) {
    return "TIME";
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return "BYTES";
  } else if constexpr (std::is_same_v<T, Bandwidth>) {
    return "RATE";
  } else if constexpr (std::is_enum_v<T>) {
    std::string names;
    for (const Named<T>& entry : kNames<T>) {
      names += (names.empty() ? "{" : ",") + std::string(entry.name);
    }
    return names + "}";
  } else if constexpr (std::is_integral_v<T>) {
    return "INT";
  } else if constexpr (std::is_floating_point_v<T>) {
    return "NUMBER";
  } else {
    return "TEXT";
  }
}

/// Declares the flag of a struct's field.
template <class T, class Struct>
void declare_field(Options& options, const std::string& flag, std::optional<std::string>& text,
                   T Struct::*field, std::string_view meaning) {
  if constexpr (std::is_same_v<T, bool>) {
    options.boolean(flag, text, std::string(meaning));
  } else {
    options.value(flag, text, kind_of_field(field), std::string(meaning));
  }
}

/// The texts of a struct's flags, and the struct of them.
template <class Query>
class FieldFlags {
 public:
  void declare(Options& options) {
    Query::fields([&](std::string_view name, auto member, std::string_view meaning) {
      declare_field(options, flag_of(name), given_[std::string(name)], member, meaning);
    });
  }
  Query read(Error& mistakes) const {
    Query query;
    Query::fields([&](std::string_view name, auto member, std::string_view) {
      take(flag_of(name), given_.find(name)->second, query.*member, mistakes);
    });
    return query;
  }
  bool has(std::string_view name) const { return given_.contains(name); }
  bool given(std::string_view name) const { return given_.find(name)->second.has_value(); }
  /// Adds the mistake "--FIELD: sentence" for every field that was given.
  void refuse(const std::string& sentence, Error& mistakes) const {
    for (const auto& [name, text] : given_) {
      refuse_given({{flag_of(name), text}}, sentence, mistakes);
    }
  }
  /// Returns what says whether a field was given and its text is none of the mistakes, so that its
  /// value says something.
  std::function<bool(std::string_view)> well_given(const Error& mistakes) const {
    return [this, &mistakes](std::string_view name) {
      return given(name) &&
             std::none_of(mistakes.mistakes.begin(), mistakes.mistakes.end(),
                          [&](const Mistake& one) { return one.where == flag_of(name); });
    };
  }
  /// Mistakes of the struct's fields, of the machine and the model, with flags as their places.
  Error placed(Error error) const {
    for (Mistake& mistake : error.mistakes) {
      const bool beside = mistake.field == "machine" || mistake.field == "model";
      if (mistake.where.empty() && (beside || given_.contains(mistake.field))) {
        mistake.where = flag_of(mistake.field);
        mistake.field.clear();
      }
    }
    return error;
  }

 private:
  std::map<std::string, std::optional<std::string>, std::less<>> given_;
};

/// Writes the members of the open object: times in seconds as name_s, sizes as name_bytes, rates as
/// name_bytes_per_s; others as they are.
template <class T>
void write_fields(report::JsonWriter& json, const T& value) {
  T::fields([&](std::string_view name, auto member, std::string_view) {
    const auto& field = value.*member;
    using F = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<F, Time>) {
      json.key(fmt::format("{}_s", name)).value(to_seconds(field));
    } else if constexpr (std::is_same_v<F, Duration>) {
      json.key(fmt::format("{}_s", name)).value(field.value());
    } else if constexpr (std::is_same_v<F, Bytes>) {
      json.key(fmt::format("{}_bytes", name)).value(field.value());
    } else if constexpr (std::is_same_v<F, Bandwidth>) {
      json.key(fmt::format("{}_bytes_per_s", name)).value(field.value());
    } else if constexpr (std::is_enum_v<F>) {
      json.key(name).value(name_of(field));
    } else {
      json.key(name).value(field);
    }
  });
}

/// Returns the field as people read it.
template <class F>
std::string shown_field(const F& field) {
  if constexpr (std::is_same_v<F, bool>) {
    return field ? "yes" : "no";
  } else if constexpr (std::is_enum_v<F>) {
    return std::string(name_of(field));
  } else if constexpr (std::is_floating_point_v<F>) {
    return fmt::format("{:.4g}", field);
  } else if constexpr (std::is_integral_v<F>) {
    return std::to_string(field);
  } else if constexpr (std::is_same_v<F, std::string>) {
    return field;
  } else {
    return to_string(field);
  }
}

/// Returns a line per field: name, value, meaning.
template <class T>
std::string fields_text(const T& value) {
  std::string text;
  T::fields([&](std::string_view name, auto member, std::string_view meaning) {
    text += fmt::format("  {:<20} {:>14}  {}\n", name, shown_field(value.*member), meaning);
  });
  return text;
}

/// Returns a column per field: of the rows of a table; `header`: their names.
template <class T>
std::string fields_header() {
  std::string text;
  T::fields(
      [&](std::string_view name, auto, std::string_view) { text += fmt::format(" {:>15}", name); });
  return text + "\n";
}
template <class T>
std::string fields_row(const T& value) {
  std::string text;
  T::fields([&](std::string_view, auto member, std::string_view) {
    text += fmt::format(" {:>15}", shown_field(value.*member));
  });
  return text + "\n";
}

}  // namespace orrery::cli
