// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/plan.h"

#include <fmt/format.h>

#include <array>
#include <type_traits>

#include "base/file.h"

namespace orrery::plan {
namespace {

struct Scale {
  std::int64_t factor;
  std::string_view unit;
};

/// The largest unit of which `value` is a whole number, so that reading it back is exact.
template <std::size_t N>
std::string exact(std::int64_t value, const std::array<Scale, N>& scales) {
  for (const Scale& scale : scales) {
    if (value % scale.factor == 0 && value != 0) {
      return fmt::format("{} {}", value / scale.factor, scale.unit);
    }
  }
  return "0";
}

constexpr std::array kByteScales{Scale{std::int64_t{1} << 30, "GiB"},
                                 Scale{std::int64_t{1} << 20, "MiB"},
                                 Scale{std::int64_t{1} << 10, "KiB"}, Scale{1, "B"}};
constexpr std::array kTimeScales{Scale{1'000'000'000'000, "s"}, Scale{1'000'000'000, "ms"},
                                 Scale{1'000'000, "us"}, Scale{1'000, "ns"}, Scale{1, "ps"}};

/// A double-quoted YAML scalar.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
    }
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte == 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }
  return result + '"';
}

template <class T>
std::string shown(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return quoted(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(name_of(value));
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return exact(value.value(), kByteScales);
  } else if constexpr (std::is_same_v<T, Time>) {
    return exact(value.value(), kTimeScales);
  } else {
    return fmt::format("{}", value);
  }
}

}  // namespace

Result<Plan> parse_plan(const ConfigNode& node) {
  Reader read(node);
  Plan plan;
  read_fields(read, plan);
  return read.finish(plan);
}

Result<Plan> load_plan(const std::string& name_or_path) {
  const Result<std::string> path = find_config("plans", name_or_path);
  if (!path) {
    return fail(path.error());
  }
  const Result<ConfigNode> node = load_config(*path);
  if (!node) {
    return fail(node.error());
  }
  return parse_plan(*node);
}

std::string to_yaml(const Plan& plan) {
  std::string text;
  Plan::fields([&](std::string_view name, auto member, std::string_view help) {
    text += fmt::format("{:<40} # {}\n", fmt::format("{}: {}", name, shown(plan.*member)), help);
  });
  return text;
}

}  // namespace orrery::plan
