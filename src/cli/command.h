// SPDX-License-Identifier: Apache-2.0
/// A Command is one command of `orrery`. One file per command; the table is in commands.h.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/collect.h"
#include "base/reader.h"
#include "base/result.h"

namespace CLI {
class App;
}  // namespace CLI

namespace orrery::cli {

/// Options are what one command accepts. Every `into` must outlive the parsing and keeps its value
/// when the option is not given. Flags are written with dashes or underscores.
class Options {
 public:
  /// `aliases` gets what alias() is given, by the other name, `outputs` the names of output().
  Options(CLI::App& app, std::map<std::string, std::string>& aliases,
          std::vector<std::string>& outputs)
      : app_(app), aliases_(aliases), outputs_(outputs) {}

  /// Options declared from here on are listed under `title` in the help text.
  void group(std::string title) { group_ = std::move(title); }
  void positional(const std::string& name, std::string& into, const std::string& sentence);
  /// Declares a positional that may be missing.
  void positional(const std::string& name, std::optional<std::string>& into,
                  const std::string& sentence);
  /// Declares any number of words.
  void positionals(const std::string& name, std::vector<std::string>& into,
                   const std::string& sentence);
  void flag(const std::string& name, bool& into, const std::string& sentence);
  /// --name KIND; `kind` names the value in the help text.
  void value(const std::string& name, std::optional<std::string>& into, const std::string& kind,
             const std::string& sentence);
  /// Declares a file that is written. Before the command runs it is a mistake if its folder cannot
  /// be written, or if another argument names the same file: outputs never eat inputs.
  void output(const std::string& name, std::optional<std::string>& into, const std::string& kind,
              const std::string& sentence);
  /// --name, --name true or --name false.
  void boolean(const std::string& name, std::optional<std::string>& into,
               const std::string& sentence);
  /// --name or --name KIND; without a value `otherwise`.
  void value_or(const std::string& name, std::optional<std::string>& into, const std::string& kind,
                const std::string& otherwise, const std::string& sentence);
  /// --name KIND, any number of times.
  void values(const std::string& name, std::vector<std::string>& into, const std::string& kind,
              const std::string& sentence);
  /// `other` means the option `name`, which was declared before; giving both is a mistake.
  void alias(const std::string& other, const std::string& name);
  /// Sets the text after the options; examples first of all.
  void footer(const std::string& text);

 private:
  CLI::App& app_;
  std::map<std::string, std::string>& aliases_;
  std::vector<std::string>& outputs_;
  std::string group_;
};

class Command {
 public:
  Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  virtual ~Command() = default;

  virtual void declare(Options& options) = 0;
  /// Takes the words after `--`, as they stand. Most commands have no use for any.
  virtual void take_rest(std::vector<std::string> words, Error& mistakes) {
    if (!words.empty()) {
      mistakes.add(Error("unexpected argument '" + words.front() + "' after --"));
    }
  }
  /// Returns the text for standard output; mistakes go to standard error with exit status 2.
  /// `mistakes` are those of the command line itself: when there are any, a command adds what else
  /// it can find and fails.
  virtual Result<std::string> run(Error mistakes) = 0;
  /// Returns whether a signal ends run() early, which then prints what there is (interrupt.h).
  virtual bool ends_early() const { return false; }
  /// Exit status of a run that has a text: not 0 where the text says that there is no answer.
  virtual int status() const { return 0; }
  /// Returns what could not be written beside the text, which is printed all the same; then the
  /// exit status is 1.
  const Error& late() const { return late_; }

 protected:
  /// Takes the result of writing a file beside the text.
  void keep(const Result<void>& written) const {
    if (!written) {
      late_.add(written.error());
    }
  }

 private:
  mutable Error late_;  // files are written where the text is made, which changes nothing else
};

struct CommandEntry {
  std::string_view name;
  std::string_view sentence;
  std::unique_ptr<Command> (*make)();
};

/// Returns "--global-batch" of the field global_batch.
inline std::string flag_of(std::string_view field) {
  std::string flag = "--" + std::string(field);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

/// Returns "--tp: found 'two', expected a whole number", also for an empty value.
inline Mistake wrong_value(std::string_view flag, const std::string& found,
                           const std::string& expected) {
  return {
      std::string(flag), {}, found, (found.empty() ? "found nothing, expected " : "") + expected};
}

/// A flag beside others, and whether it was given.
struct GivenFlag {
  GivenFlag(std::string name, bool is_given) : flag(std::move(name)), given(is_given) {}
  GivenFlag(std::string name, const std::optional<std::string>& text)
      : flag(std::move(name)), given(text.has_value()) {}
  std::string flag;
  bool given;
};

/// Adds the mistake "FLAG: sentence" for every flag that was given, and of no other.
inline void refuse_given(const std::vector<GivenFlag>& flags, const std::string& sentence,
                         Error& mistakes) {
  for (const GivenFlag& each : flags) {
    if (each.given) {
      mistakes.add({each.flag, {}, {}, sentence});
    }
  }
}

/// Takes the value of a flag that was given; adds a mistake, and leaves `into` as it was, when it
/// is not a T.
template <class T>
void take(std::string_view flag, const std::optional<std::string>& text, T& into, Error& mistakes) {
  if (text) {
    if (const auto value = parse_value<T>(*text)) {
      into = *value;
    } else {
      mistakes.add(wrong_value(flag, *text, value.error()));
    }
  }
}

/// Returns the error for a name that the user gave as `flag`: an unknown name is a mistake of that
/// flag.
inline Error of_flag(std::string_view flag, const std::string& name, Error error) {
  for (Mistake& mistake : error.mistakes) {
    if (mistake.where.empty() && mistake.found == name) {
      mistake = wrong_value(flag, name, mistake.expected);
    }
  }
  return error;
}

/// Tells on the error output, a line each, after `mark` and a colon.
void tell_notes(const std::vector<std::string>& notes, const char* mark = "note");

/// Returns load(name), for a name that the user gave as `flag`; tells the notes of what has some.
template <class T>
T load_named(std::string_view flag, const std::string& name,
             Result<T> (*load)(const std::string& name_or_path), Error& mistakes) {
  Result<T> loaded = load(name);
  if (loaded) {
    if constexpr (requires { loaded->notes; }) {
      tell_notes(loaded->notes);
    }
    return std::move(*loaded);
  }
  mistakes.add(of_flag(flag, name, std::move(loaded.error())));
  return T{};
}

}  // namespace orrery::cli
