// SPDX-License-Identifier: Apache-2.0
/// Command-line flags of a Python program (argparse), read by name. Internal to this folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace orrery::interop {

/// Each flag takes the words up to the next flag; a flag that stands twice counts as its last, as
/// in argparse. `--a_b` is `--a-b`, `--a=b` is `--a b`. Everything that is wrong is collected.
class Arguments {
 public:
  explicit Arguments(const std::vector<std::string>& words);

  /// A switch; a value after it is a mistake.
  bool flag(std::string_view name);
  /// Whether the flag stands there, whatever its values.
  bool has(std::string_view name);
  /// The one value; nothing when the flag is not there or wrong.
  std::optional<std::string> word(std::string_view name);
  std::optional<std::int64_t> number(std::string_view name, std::int64_t least = 0);
  std::int64_t number_or(std::string_view name, std::int64_t fallback, std::int64_t least = 1) {
    return number(name, least).value_or(fallback);
  }
  std::optional<double> real(std::string_view name);
  std::vector<std::string> words(std::string_view name);

  /// Adds a mistake about a flag that was given or is missing.
  void reject(std::string_view name, std::string expected);
  void require(bool ok, std::string_view name, std::string expected) {
    if (!ok) {
      reject(name, std::move(expected));
    }
  }
  /// Takes the mistakes found so far and a mistake for each flag that nobody asked for.
  Error finish();
  /// The mistakes so far only, which are then forgotten.
  Error take_mistakes();

 private:
  const std::vector<std::string>* find(std::string_view name);

  std::map<std::string, std::vector<std::string>, std::less<>> given_;
  std::set<std::string, std::less<>> known_;
  std::set<std::string, std::less<>> wrong_;
  Error error_;
};

}  // namespace orrery::interop
