// SPDX-License-Identifier: Apache-2.0
#include "cli/outputs.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <utility>

#include "cli/command.h"

namespace orrery::cli {
namespace {

/// Returns the file that a path means, through links; empty for what is no regular file, such as a
/// device.
std::filesystem::path meant_file(const std::string& path) {
  std::error_code problem;
  const auto status = std::filesystem::status(path, problem);
  const bool special = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  return special
             ? std::filesystem::path()
             : std::filesystem::weakly_canonical(std::filesystem::absolute(path, problem), problem);
}

}  // namespace

Error mistaken_outputs(const CLI::App& command, const std::vector<std::string>& outputs) {
  std::vector<std::pair<std::string, std::string>> given;  // flag and text
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& text : option->results()) {
      given.emplace_back(option->get_name(), text);
    }
  }
  Error mistakes;
  std::error_code problem;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto& [flag, text] = given[i];
    const std::filesystem::path file = meant_file(text);
    if (std::ranges::find(outputs, flag) == outputs.end() || text.empty() || file.empty()) {
      continue;
    }
    const std::filesystem::path folder = file.parent_path();
    if (!std::filesystem::is_directory(folder, problem) || access(folder.c_str(), W_OK) != 0) {
      mistakes.add(wrong_value(flag, text, "a file in a folder that can be written"));
    }
    for (std::size_t other = 0; other < given.size(); ++other) {
      const bool writes = std::ranges::find(outputs, given[other].first) != outputs.end();
      const bool names =
          other != i &&
          (writes ? other < i : std::filesystem::exists(given[other].second, problem));
      if (names && meant_file(given[other].second) == file) {
        mistakes.add(wrong_value(flag, text, "another file than " + given[other].first + "'s"));
      }
    }
  }
  return mistakes;
}

}  // namespace orrery::cli
