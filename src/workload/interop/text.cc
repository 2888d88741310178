// SPDX-License-Identifier: Apache-2.0
#include "workload/interop/text.h"

#include <algorithm>

#include "base/reader.h"
#include "machine/machine.h"
#include "workload/plan/plan_lists.h"

namespace orrery::interop {

Result<void> check_degrees(const plan::Plan& plan) {
  if (auto texts = plan::check_texts(plan); !texts) {
    return texts;
  }
  Error error;
  for (const auto& [name, member] :
       {std::pair{"tp", &plan::Plan::tp}, std::pair{"pp", &plan::Plan::pp},
        std::pair{"dp", &plan::Plan::dp}, std::pair{"cp", &plan::Plan::cp},
        std::pair{"ep", &plan::Plan::ep}, std::pair{"chunks", &plan::Plan::chunks},
        std::pair{"microbatch", &plan::Plan::microbatch},
        std::pair{"cp_a2a", &plan::Plan::cp_a2a}}) {
    if (plan.*member < 1 || plan.*member > kMostDegree) {
      error.add({{}, name, std::to_string(plan.*member), "1 to " + std::to_string(kMostDegree)});
    }
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  const Bytes devices = Bytes(plan.tp) * plan.cp * plan.pp * plan.dp;  // saturates
  if (devices.value() > machine::kMostDevices) {
    return fail(Error(Mistake{{}, "tp x cp x pp x dp", {}, "at most 2^24 devices"}));
  }
  const std::int64_t together = plan.dp * plan.microbatch;
  if (plan.global_batch < 1 || plan.global_batch % together != 0) {
    return fail(Error(Mistake{{},
                              "global_batch",
                              std::to_string(plan.global_batch),
                              "a multiple of dp x microbatch = " + std::to_string(together)}));
  }
  return {};
}

namespace {

/// The end of what begins at `at`: a string, or a comment; `at` when it is neither.
std::size_t after_piece(const std::string& text, std::size_t at) {
  const std::string_view rest = std::string_view(text).substr(at);
  if (rest[0] == '"') {
    std::size_t end = at + 1;
    while (end < text.size() && text[end] != '"') {
      end += text[end] == '\\' ? 2 : 1;
    }
    return std::min(end + 1, text.size());
  }
  if (rest[0] == '#' || rest.starts_with("//")) {
    return std::min(text.find('\n', at), text.size());
  }
  if (rest.starts_with("/*")) {
    const std::size_t end = text.find("*/", at + 2);
    return end == std::string::npos ? text.size() : end + 2;
  }
  return at;
}

}  // namespace

std::string strict_json(std::string text) {
  std::size_t comma = std::string::npos;  // the last sign, if it is one
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::size_t end = after_piece(text, at);
    if (end > at && c != '"') {
      std::replace_if(
          text.begin() + static_cast<std::ptrdiff_t>(at),
          text.begin() + static_cast<std::ptrdiff_t>(end), [](char piece) { return piece != '\n'; },
          ' ');
    } else if (c == '}' || c == ']') {
      if (comma != std::string::npos) {
        text[comma] = ' ';
      }
      comma = std::string::npos;
    } else if (c == ',') {
      comma = at;
    } else if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
      comma = std::string::npos;
    }
    at = std::max(end, at + 1);
  }
  return text;
}

std::vector<std::int64_t> number_list(std::string_view text) {
  std::vector<std::int64_t> numbers;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    numbers.push_back(parse_integer(text.substr(0, comma)).value_or(0));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return numbers;
}

std::optional<std::int64_t> zero_stage_in(std::string_view file) {
  const std::string name = "_" + std::string(file.substr(file.find_last_of('/') + 1));
  for (const std::string_view word : {"zero_stage", "zero", "stage", "_z"}) {
    const std::size_t at = name.find(word);
    const std::size_t digit = at == name.npos ? at : name.find_first_not_of("_-", at + word.size());
    if (digit < name.size() && name[digit] >= '0' && name[digit] <= '3') {
      return name[digit] - '0';
    }
  }
  return std::nullopt;
}

}  // namespace orrery::interop
