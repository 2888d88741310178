// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/trace_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace orrery::chakra {
namespace {

bool is_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

Result<TraceFiles> find_trace_files(const std::string& prefix) {
  std::string tried;
  for (const char* extension : {".et", ".json"}) {
    TraceFiles files{prefix, extension, {}};
    if (is_file(files.of(0))) {
      return files;
    }
    tried += fmt::format("{}, ", files.of(0));
    for (const std::string& one : {prefix + ".all" + extension, prefix + extension}) {
      if (is_file(one)) {
        files.one = one;
        return files;
      }
      tried += one + ", ";
    }
  }
  if (is_file(prefix)) {
    const char* extension = prefix.ends_with(".json")  ? ".json"
                            : prefix.ends_with(".txt") ? ".txt"
                                                       : ".et";
    return TraceFiles{prefix, extension, prefix};
  }
  return fail(Error(Mistake{prefix, {}, {}, "no traces; looked for " + tried + "and " + prefix}));
}

Result<std::int64_t> count_trace_files(const std::string& prefix) {
  const auto files = find_trace_files(prefix);
  if (!files) {
    return fail(files.error());
  }
  std::int64_t count = 0;
  while (files->one.empty() && is_file(files->of(count))) {
    ++count;
  }
  return count;
}

Result<FileIdentity> identify(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const std::string why = errno == ENOENT ? "no such file" : std::strerror(errno);
    return fail(Error(Mistake{path, {}, {}, why}));
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(Error(Mistake{path, {}, {}, "not a regular file"}));
  }
  return FileIdentity{static_cast<std::uint64_t>(status.st_dev),
                      static_cast<std::uint64_t>(status.st_ino),
                      static_cast<std::uint64_t>(status.st_size)};
}

}  // namespace orrery::chakra
