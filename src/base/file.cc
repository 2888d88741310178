// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "base/names.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

bool is_config(const fs::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml" || path.extension() == ".json";
}

Error cannot(const std::string& path, const std::string& what) {
  return Error(Mistake{path, {}, {}, what});
}

Result<void> write_through(const std::string& path, std::string_view content) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
  stream.close();  // the disk may be full only now
  if (!stream) {
    return fail(cannot(path, "a path that can be written"));
  }
  return {};
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (!fs::exists(status)) {
    return fail(cannot(path, "no such file"));
  }
  if (fs::is_directory(status)) {
    return fail(cannot(path, "a file; this is a folder"));
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    return fail(cannot(path, "a readable file"));
  }
  std::string content;
  constexpr std::size_t kBlock = std::size_t{1} << 16;
  std::string block(kBlock, '\0');
  while (stream.read(block.data(), static_cast<std::streamsize>(kBlock)) || stream.gcount() > 0) {
    content.append(block.data(), static_cast<std::size_t>(stream.gcount()));
    if (content.size() > limit) {
      return fail(cannot(path, "a file of at most " + std::to_string(limit) + " bytes"));
    }
  }
  return content;
}

Result<void> write_file(const std::string& path, std::string_view content) {
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    // A device or pipe such as /dev/stdout is written to; renaming would replace it by a file.
    return fs::is_directory(status) ? fail(cannot(path, "a file; this is a folder"))
                                    : write_through(path, content);
  }
  // A link keeps pointing where it does. The temporary file is beside its target, so that the
  // rename stays on one file system, and has the process in its name, so that two runs do not mix.
  const fs::path target = fs::exists(status) ? fs::canonical(path, problem) : fs::path(path);
  const std::string temporary = target.string() + "." + std::to_string(getpid()) + ".tmp";
  std::error_code ignored;
  if (auto written = write_through(temporary, content); !written) {
    fs::remove(temporary, ignored);
    return fail(cannot(path, "a path that can be written"));
  }
  fs::rename(temporary, target, problem);
  if (problem) {
    fs::remove(temporary, ignored);
    return fail(cannot(path, "a path that can be written (" + problem.message() + ")"));
  }
  return {};
}

std::vector<std::string> config_folders() {
  std::vector<std::string> folders;
  if (const char* given = std::getenv("ORRERY_CONFIGS"); given != nullptr && *given != '\0') {
    folders.emplace_back(given);
  }
  std::error_code problem;
  const fs::path binary = fs::read_symlink("/proc/self/exe", problem);
  if (!problem) {
    folders.push_back((binary.parent_path().parent_path() / "share/orrery/configs").string());
  }
  folders.emplace_back(ORRERY_SOURCE_CONFIGS);
  return folders;
}

Result<std::string> find_config(const std::string& kind, const std::string& name) {
  if (name.find('/') != std::string::npos || is_config(name)) {
    std::error_code problem;
    return fs::exists(name, problem) ? Result<std::string>(name)
                                     : fail(cannot(name, "no such file"));
  }
  for (const std::string& folder : config_folders()) {
    for (const char* extension : {".yaml", ".yml", ".json"}) {
      const fs::path path = fs::path(folder) / kind / (name + extension);
      std::error_code problem;
      if (!name.empty() && fs::exists(path, problem)) {
        return path.string();
      }
    }
  }
  const std::vector<std::string> known = list_configs(kind);
  std::string all;
  for (const std::string& each : known) {
    all += (all.empty() ? "" : ", ") + each;
  }
  return fail(
      Error(Mistake{{}, kind, name, "a file or one of: " + all + did_you_mean(name, known)}));
}

std::vector<std::string> list_configs(const std::string& kind) {
  std::set<std::string> names;
  for (const std::string& folder : config_folders()) {
    std::error_code problem;
    fs::directory_iterator entry(fs::path(folder) / kind, problem);
    for (; !problem && entry != fs::directory_iterator(); entry.increment(problem)) {
      if (is_config(entry->path())) {
        names.insert(entry->path().stem().string());
      }
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace orrery
