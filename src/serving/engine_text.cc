// SPDX-License-Identifier: Apache-2.0
/// An engine's fields as a file has them.
#include <fmt/format.h>

#include <type_traits>

#include "base/format.h"
#include "base/reader.h"
#include "serving/engine.h"

namespace orrery::serving {
namespace {

template <class T>
std::string shown(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyz0123456789_.-";
    const bool plain = value.find_first_not_of(kPlain) == std::string::npos && value != "null";
    return plain ? value : exact_text(value);
  } else {
    return exact_text(value);
  }
}

}  // namespace

std::string field_text(const Engine& engine, std::string_view path) {
  std::string text;
  Engine::fields([&](std::string_view section, std::string_view field, auto member,
                     std::string_view) {
    if (path == fmt::format("{}.{}", section, field)) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(engine.*member)>, std::string>) {
        text = engine.*member;
      } else {
        text = exact_text(engine.*member);
      }
    }
  });
  return text;
}

std::string to_yaml(const Engine& engine, bool of_checkpoint) {
  const Engine usual = load_engine(engine.name).value_or(Engine());
  std::string text = fmt::format("engine: {}\n", engine.name);
  std::string open;
  Engine::fields(
      [&](std::string_view section, std::string_view field, auto member, std::string_view meaning) {
        if (of_checkpoint && section == "precision" && engine.*member == usual.*member) {
          return;
        }
        if (section != open) {
          text += fmt::format("{}:\n", section);
          open = section;
        }
        const std::string line = fmt::format("  {}: {}", field, shown(engine.*member));
        text += fmt::format("{:<44}# {}\n", line, meaning);
      });
  return text;
}

}  // namespace orrery::serving
