// SPDX-License-Identifier: Apache-2.0
/// Small pieces of text output. Internal to this folder.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/result.h"
#include "workload/plan/plan.h"

namespace orrery::interop {

inline constexpr std::int64_t kMostDegree = std::int64_t{1} << 20;
/// recompute_modules of a plan that torchtitan calls selective_ac_option "op".
inline constexpr std::string_view kSelectiveOp = "every_other_gemm";

/// One JSON object, a field a line; nested objects are fields with an object's text.
class JsonObject {
 public:
  template <class T>
    requires std::integral<T> || std::floating_point<T>
  void field(std::string_view name, T value) {
    raw(name, exact_text(value));
  }
  void field(std::string_view name, std::string_view text) {
    raw(name, "\"" + std::string(text) + "\"");  // names and numbers only: nothing to escape
  }
  void field(std::string_view name, const char* text) { field(name, std::string_view(text)); }
  void field(std::string_view name, const JsonObject& object) { raw(name, object.text("  ")); }
  void raw(std::string_view name, const std::string& value) {
    lines_.push_back("\"" + std::string(name) + "\": " + value);
  }
  bool empty() const { return lines_.empty(); }

  /// `indent` is that of the line on which the object begins.
  std::string text(const std::string& indent = "") const {
    std::string result = "{\n";
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      result += indent + "  " + lines_[i] + (i + 1 < lines_.size() ? ",\n" : "\n");
    }
    return result + indent + "}";
  }

 private:
  std::vector<std::string> lines_;
};

/// Checks what every format needs of a plan: text fields that read (plan::check_texts), degrees in
/// 1 .. 2^20, at most 2^24 devices, whole micro-batches.
Result<void> check_degrees(const plan::Plan& plan);

/// Reads "12,13" as {12, 13}; items that are no numbers become 0.
std::vector<std::int64_t> number_list(std::string_view text);

/// Returns the ZeRO stage that the name of a DeepSpeed configuration states: 3 of "ds_z3.json"
/// and "zero3_bf16.json".
std::optional<std::int64_t> zero_stage_in(std::string_view file);

}  // namespace orrery::interop
