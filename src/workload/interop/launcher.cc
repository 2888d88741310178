// SPDX-License-Identifier: Apache-2.0
#include "workload/interop/launcher.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/reader.h"
#include "shell/shell.h"

namespace orrery::interop {
namespace {

using LaunchTokens = std::vector<std::string>;

class Launcher {
 public:
  /// `known`: the user states the devices; counts that nothing sets are then left out.
  Launcher(LaunchTokens words, bool known) : words_(std::move(words)), known_(known) {}

  std::int64_t devices() {
    if (const auto per_node = count({"--nproc-per-node", "--num-gpus"})) {
      return *per_node * count({"--nnodes", "--num-nodes"}).value_or(1);
    }
    if (const auto per_node = count({"--ntasks-per-node"})) {
      return *per_node * count({"--nodes", "-N"}).value_or(1);
    }
    return count({"--ntasks", "-n", "-np", "--np", "--worker-num"}).value_or(0);
  }
  Error& mistakes() { return error_; }

 private:
  std::optional<std::int64_t> count(std::initializer_list<std::string_view> names) {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::size_t equals = words_[i].find('=');
      std::string name = words_[i].substr(0, equals);
      std::replace(name.begin(), name.end(), '_', '-');
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        continue;
      }
      const std::string text = equals != std::string::npos ? words_[i].substr(equals + 1)
                               : i + 1 < words_.size()     ? words_[i + 1]
                                                           : "";
      constexpr std::int64_t kMost = std::int64_t{1} << 20;
      const auto number = parse_integer(text);
      if (number && *number >= 1 && *number <= kMost) {
        return *number;
      }
      if (known_ && shell::unresolved(text)) {
        return 0;
      }
      error_.add(
          {name,
           {},
           text,
           "a number of at least 1 (or leave it out and give --devices)" +
               std::string(shell::unresolved(text) ? "; or set it: FILE -- NAME=value" : "")});
      return 0;
    }
    return std::nullopt;
  }

  LaunchTokens words_;
  bool known_;
  Error error_;
};

}  // namespace

Result<LaunchLine> split_launch_line(const LaunchWords& line, std::int64_t devices) {
  const LaunchTokens& words = line.words;
  const auto script = std::find_if(words.begin(), words.end(),
                                   [](const std::string& word) { return word.ends_with(".py"); });
  if (script == words.end()) {
    if (words.empty() || words.front().starts_with("--")) {
      return LaunchLine{.devices = 0, .program = {}, .arguments = words, .places = line.places};
    }
    return fail(Error(Mistake{line.places.empty() ? "" : line.places.front(),
                              {},
                              words.front(),
                              "flags, or a launch line with a script: torchrun ... pretrain_gpt.py "
                              "--tensor-model-parallel-size 8 ..."}));
  }
  Launcher launcher(LaunchTokens(words.begin(), script), devices != 0);
  LaunchLine split{.devices = launcher.devices(),
                   .program = script->substr(script->find_last_of('/') + 1),
                   .arguments = LaunchTokens(script + 1, words.end()),
                   .places = {}};
  if (!line.places.empty()) {
    split.places.assign(line.places.begin() + (script - words.begin()) + 1, line.places.end());
  }
  if (!launcher.mistakes().empty()) {
    return fail(std::move(launcher.mistakes()));
  }
  return split;
}

}  // namespace orrery::interop
