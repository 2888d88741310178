// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <system_error>

#include "base/big.h"
#include "base/names.h"

namespace orrery {
/// See cmake/installed_configs.cc, which takes this one's place where there is an installation.
__attribute__((weak)) const char* installed_configs();
const char* installed_configs() {
  return ORRERY_INSTALLED_CONFIGS;
}

namespace {

namespace fs = std::filesystem;

bool is_config(const fs::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml" || path.extension() == ".json";
}

constexpr const char* kStandardInput = "-";
constexpr const char* kShared = "share/orrery/configs";

/// Returns the folder that the user has set; "" when there is none.
std::string given_folder() {
  const char* given = std::getenv("ORRERY_CONFIGS");
  return given == nullptr ? "" : given;
}

/// Adds the nearest folder of shared configurations in a folder above `binary`.
void add_shared(const fs::path& binary, std::vector<std::string>& folders) {
  std::error_code problem;
  for (fs::path above = binary.parent_path(); above.has_relative_path();
       above = above.parent_path()) {
    const std::string shared = (above / kShared).string();
    if (fs::is_directory(shared, problem)) {
      if (std::ranges::find(folders, shared) == folders.end()) {
        folders.push_back(shared);
      }
      return;
    }
  }
}

/// Returns the program or shared library that this code is in; "" where that is a bare argv[0].
fs::path own_file() {
  Dl_info own{};
  std::error_code problem;
  const bool found = dladdr(reinterpret_cast<const void*>(&config_folders), &own) != 0 &&
                     std::string_view(own.dli_fname).find('/') != std::string_view::npos;
  return found ? fs::absolute(own.dli_fname, problem) : fs::path();
}

/// meta-llama/Llama-3.1-8B -> Llama-3.1-8B, my/dgx-h100.yaml -> dgx-h100.
std::string bare_name(const fs::path& path) {
  return (is_config(path) ? path.stem() : path.filename()).string();
}

Error cannot(const std::string& path, const std::string& what) {
  return Error(Mistake{path, {}, {}, what});
}

Result<void> write_through(const std::string& path, std::string_view content) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
  stream.close();  // the disk may be full only now
  if (!stream) {
    return fail(cannot(path, "cannot be written"));
  }
  return {};
}

std::size_t lifted(std::size_t limit) {
  return limits_lifted() ? std::string().max_size() : limit;
}

/// Reads the rest of a stream.
Result<std::string> read_stream(std::istream& stream, const std::string& path, std::size_t limit,
                                std::size_t expected = 0) {
  std::string content;
  content.reserve(std::min(expected, limit));
  constexpr std::size_t kBlock = std::size_t{1} << 16;
  std::string block(expected > 0 ? std::min(kBlock, expected + 1) : kBlock, '\0');
  const auto size = static_cast<std::streamsize>(block.size());
  while (stream.read(block.data(), size) || stream.gcount() > 0) {
    content.append(block.data(), static_cast<std::size_t>(stream.gcount()));
    if (content.size() > limit) {
      return fail(cannot(path, "larger than " + std::to_string(limit) +
                                   " bytes, the most that is read of such a file without --big"));
    }
  }
  if (stream.bad()) {
    return fail(cannot(path, "cannot be read (" + std::generic_category().message(errno) + ")"));
  }
  return content;
}

/// Returns the folders that belong to the program, in the order in which they are searched.
std::vector<std::string> shipped_folders() {
  std::vector<std::string> folders;
  std::error_code problem;
  add_shared(own_file(), folders);
  add_shared(fs::read_symlink("/proc/self/exe", problem), folders);
  folders.emplace_back(installed_configs());
  return folders;
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  limit = lifted(limit);
  if (path == kStandardInput) {
    return std::cin.eof() ? fail(cannot(path, "standard input was read before; name it once"))
                          : read_stream(std::cin, path, limit);
  }
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (!fs::exists(status)) {
    return fail(cannot(path, "no such file"));
  }
  if (fs::is_directory(status)) {
    return fail(cannot(path, "is a folder; expected a file"));
  }
  if (!fs::is_regular_file(status)) {  // reading could wait, or never end
    return fail(cannot(path, "is a device or a pipe; expected a file, or - for standard input"));
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    return fail(cannot(path, "cannot be read (" + std::generic_category().message(errno) + ")"));
  }
  const std::uintmax_t size = fs::file_size(path, problem);
  return read_stream(stream, path, limit, problem ? 0 : size);
}

Result<void> write_file(const std::string& path, std::string_view content) {
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    // A device or pipe such as /dev/stdout is written to; renaming would replace it by a file.
    return fs::is_directory(status) ? fail(cannot(path, "is a folder; expected a file"))
                                    : write_through(path, content);
  }
  // A link keeps pointing where it does. The temporary file is beside its target, so that the
  // rename stays on one file system, and has a random name, so that two runs do not mix.
  const fs::path target = fs::exists(status) ? fs::canonical(path, problem) : fs::path(path);
  std::string temporary = target.string() + ".XXXXXX";
  const int descriptor = mkstemp(temporary.data());  // a new file, through no link
  if (descriptor < 0) {
    return fail(cannot(path, "cannot be written (" + std::generic_category().message(errno) + ")"));
  }
  const mode_t mask = umask(0);  // which only setting tells
  umask(mask);
  fchmod(descriptor,
         fs::exists(status) ? static_cast<mode_t>(status.permissions()) : mode_t{0666} & ~mask);
  close(descriptor);
  std::error_code ignored;
  if (auto written = write_through(temporary, content); !written) {
    fs::remove(temporary, ignored);
    return fail(cannot(path, "cannot be written"));
  }
  fs::rename(temporary, target, problem);
  if (problem) {
    fs::remove(temporary, ignored);
    return fail(cannot(path, "cannot be written (" + problem.message() + ")"));
  }
  return {};
}

std::vector<std::string> config_folders() {
  static const std::vector<std::string> shipped = shipped_folders();
  std::vector<std::string> folders = shipped;
  if (const std::string given = given_folder(); !given.empty()) {
    std::erase(folders, given);
    folders.insert(folders.begin(), given);
  }
  return folders;
}

Result<void> check_config_folders() {
  std::error_code problem;
  const std::string given = given_folder();
  if (given.empty() || fs::is_directory(given, problem)) {
    return {};
  }
  return fail(Error(Mistake{"ORRERY_CONFIGS", {}, given, "a folder of configurations"}));
}

Result<std::string> find_config(const std::string& kind, const std::string& name) {
  if (name == kStandardInput) {
    return name;
  }
  if (name.find('/') != std::string::npos || is_config(name)) {
    std::error_code problem;
    return fs::exists(name, problem)
               ? Result<std::string>(name)
               : fail(cannot(name,
                             "no such file" + did_you_mean(bare_name(name), list_configs(kind))));
  }
  if (auto ok = check_config_folders(); !ok) {
    return fail(std::move(ok.error()));
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
  std::error_code problem;
  if (fs::exists(name, problem)) {
    return name;  // a folder, or a file with another ending: who reads it says what is wrong
  }
  std::vector<std::string> known = list_configs(kind);
  const std::string guess = did_you_mean(name, known);
  const auto begins = [&](const std::string& other) { return other.starts_with(name); };
  std::string others;
  if (!name.empty() && std::ranges::any_of(known, begins)) {
    const std::size_t count =
        std::erase_if(known, [&](const std::string& other) { return !begins(other); });
    others = count == 0 ? "" : ", or " + std::to_string(count) + " that begin otherwise";
  }
  return fail(Error(
      Mistake{{},
              kind,
              name,
              known.empty()
                  ? "a file: no shipped " + kind + " are found (ORRERY_CONFIGS names their folder)"
                  : "a file or one of: " + enumerated(known) + others + guess}));
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
