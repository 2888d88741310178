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
#include "workload/interop/interop.h"

namespace orrery::interop {

/// Each flag takes the words up to the next flag; a flag that stands twice counts as its last, as
/// in argparse. `--a_b` is `--a-b`, `--a=b` is `--a b`; the beginning of one flag's name alone is
/// that flag. A variable that nothing sets (`$X`) counts as no value beside a switch or behind a
/// value. Everything that is wrong is collected.
class Arguments {
 public:
  /// Takes words. `places`: "run.sh:12" of each word, for messages; empty = unknown.
  explicit Arguments(const std::vector<std::string>& words,
                     const std::vector<std::string>& places = {});

  /// Unknown flags become notes, but for those of an override: a program's dump has many.
  void pass_unknown() { passes_unknown_ = true; }

  /// Returns whether a switch is there; a value after it is a mistake.
  bool flag(std::string_view name);
  /// Returns whether the flag stands there, whatever its values.
  bool has(std::string_view name);
  /// Returns the one value; nothing when the flag is not there or wrong.
  std::optional<std::string> word(std::string_view name);
  std::optional<std::int64_t> number(std::string_view name, std::int64_t least = 0);
  std::int64_t number_or(std::string_view name, std::int64_t fallback, std::int64_t least = 1) {
    return number(name, least).value_or(fallback);
  }
  std::optional<double> real(std::string_view name);
  std::vector<std::string> words(std::string_view name);

  /// Gives the flag `name` the name `as`, unless that stands there too.
  void rename(std::string_view name, std::string_view as);
  /// Notes a sentence about a flag that is there, for who reads the result.
  void note(std::string_view name, std::string sentence) {
    notes_.push_back({std::string(name), std::move(sentence)});
  }
  std::vector<Remark> take_notes() { return std::move(notes_); }

  /// Adds a mistake about a flag that was given or is missing.
  void reject(std::string_view name, std::string expected);
  void require(bool ok, std::string_view name, std::string expected) {
    if (!ok) {
      reject(name, std::move(expected));
    }
  }
  /// Takes the mistakes found so far and a mistake for each flag that nobody asked for.
  Error finish();
  /// Returns the mistakes so far only, which are then forgotten.
  Error take_mistakes();

 private:
  const std::vector<std::string>* find(std::string_view name);

  void add_mistake(std::string_view name, std::string found, std::string expected);

  std::map<std::string, std::vector<std::string>, std::less<>> given_;
  std::map<std::string, std::string, std::less<>> places_;
  std::set<std::string, std::less<>> known_;
  std::set<std::string, std::less<>> wrong_;
  std::vector<Remark> notes_;
  bool passes_unknown_ = false;
  Error error_;
};

}  // namespace orrery::interop
