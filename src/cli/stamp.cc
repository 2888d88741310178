// SPDX-License-Identifier: Apache-2.0
#include "cli/stamp.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>

#include "base/file.h"
#include "report/json_writer.h"
#include "study/sweep/input_hash.h"

namespace orrery::cli {
namespace {

struct NamedKind {
  std::string_view flag;
  const char* kind;  ///< of find_config
};
constexpr std::array kNamedKinds{NamedKind{"--model", "models"}, NamedKind{"--machine", "machines"},
                                 NamedKind{"--plan", "plans"}, NamedKind{"--table", "validation"}};

/// Commands whose objects are descriptions, which other commands read, and no results.
constexpr std::array<std::string_view, 4> kDescribing{"export", "import", "list", "show"};

/// Returns the file that an argument means; "" where it means none.
std::string file_of(const std::string& flag, const std::string& text) {
  std::error_code problem;
  if (std::filesystem::is_regular_file(text, problem)) {
    return text;
  }
  const auto* const named = std::ranges::find(kNamedKinds, flag, &NamedKind::flag);
  return named == kNamedKinds.end() ? "" : find_config(named->kind, text).value_or("");
}

void write_inputs(report::JsonWriter& json, const CLI::App& command,
                  const std::vector<std::string>& outputs) {
  json.begin_array();
  for (const CLI::Option* option : command.get_options()) {
    const std::string flag = option->get_name();
    if (std::ranges::find(outputs, flag) != outputs.end()) {
      continue;
    }
    for (const std::string& text : option->results()) {
      const std::string file = file_of(flag, text);
      const auto content = file.empty() ? fail(std::string("no file")) : read_file(file);
      if (content) {
        json.begin_object();
        json.key("flag").value(flag).key("name").value(text);
        json.key("hash").value(sweep::input_hash(*content));
        json.end_object();
      }
    }
  }
  json.end_array();
}

}  // namespace

std::string stamped(std::string text, const CLI::App& command,
                    const std::vector<std::string>& outputs) {
  const CLI::Option* json = command.get_option_no_throw("--json");
  if (json == nullptr || json->count() == 0 || !text.starts_with('{') ||
      std::ranges::find(kDescribing, command.get_name()) != kDescribing.end()) {
    return text;
  }
  std::string stamp = report::json_text([&](report::JsonWriter& writer) {
    writer.begin_object().key("version").value(ORRERY_VERSION);
    write_inputs(writer.key("inputs"), command, outputs);
    writer.end_object();
  });
  while (stamp.ends_with('\n')) {
    stamp.pop_back();
  }
  for (std::size_t at = stamp.find('\n'); at != std::string::npos; at = stamp.find('\n', at + 1)) {
    stamp.insert(at + 1, "  ");
  }
  const bool alone = text.find_first_not_of(" \n", 1) == text.find('}');
  return text.insert(1, "\n  \"orrery\": " + stamp + (alone ? "" : ","));
}

}  // namespace orrery::cli
