// SPDX-License-Identifier: Apache-2.0
/// Runs the built `orrery` as a user's shell would.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace orrery::testing {

struct Outcome {
  int status = -1;  ///< exit status; 128 + signal when killed
  std::string out;
  std::string err;
};

/// A fresh folder, gone with the object.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_cli_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return *this / name;
  }

 private:
  std::filesystem::path path_;
};

inline std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// `orrery ARGUMENTS` through the shell.
inline Outcome orrery(const std::string& arguments) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string err = folder / "err";
  const std::string command =
      std::string(ORRERY_BINARY) + " " + arguments + " >" + out + " 2>" + err;
  const int raw = std::system(command.c_str());
  Outcome outcome;
  outcome.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  outcome.out = content(out);
  outcome.err = content(err);
  return outcome;
}

}  // namespace orrery::testing
