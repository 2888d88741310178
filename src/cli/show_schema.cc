// SPDX-License-Identifier: Apache-2.0
#include "cli/show_schema.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "base/lists.h"
#include "base/names.h"
#include "cli/command.h"

namespace orrery::cli {
namespace {

/// Returns the folders that may hold schemas: beside installed configurations, and in a checkout.
std::vector<std::filesystem::path> schema_folders() {
  std::vector<std::filesystem::path> folders;
  for (const std::string& configs : config_folders()) {
    std::error_code ignored;
    const std::filesystem::path real = std::filesystem::canonical(configs, ignored);
    folders.push_back(real.parent_path() / "schema");
    folders.push_back(real.parent_path() / "docs/schema");
  }
  return folders;
}

}  // namespace

Result<std::string> show_schema(const std::string& name) {
  std::vector<std::string> names;
  for (const std::filesystem::path& folder : schema_folders()) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      if (entry.path().extension() != ".json") {
        continue;
      }
      if (entry.path().stem() == name) {
        return read_file(entry.path());
      }
      names.push_back(entry.path().stem());
    }
  }
  std::ranges::sort(names);
  return fail(Error(
      wrong_value("show schema", name, "one of " + joined(names) + did_you_mean(name, names))));
}

}  // namespace orrery::cli
