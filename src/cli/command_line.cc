// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "base/letters.h"
#include "base/names.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/other_flags.h"
#include "cli/outputs.h"
#include "cli/questions.h"
#include "cli/stamp.h"

namespace orrery::cli {
namespace {

constexpr int kBadInput = 2;
constexpr std::size_t kHelpColumn = 34;  // where the sentences of a help text begin
constexpr const char* kHelp = "help";
constexpr const char* kOrreryExamples =
    "Examples:\n"
    "  orrery simulate --model gpt3-175b --machine dgx-a100-80g --devices 1024 \\\n"
    "                  --plan gpt3-175b-1024\n"
    "  orrery list machines\n"
    "  orrery show model gpt3-175b\n"
    "  orrery help simulate\n"
    "--big, with any command, reads files over the limits of size (docs/results.md)\n";

/// Option names are declared with dashes; --global_batch means --global-batch.
std::string with_dashes(std::string argument) {
  if (argument.starts_with("--")) {
    std::replace(argument.begin(), std::find(argument.begin(), argument.end(), '='), '_', '-');
  }
  return argument;
}

using Aliases = std::map<std::string, std::string>;  // own name by other name

std::vector<std::string> option_names(const CLI::App& app, const Aliases& aliases) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  for (const auto& [other, own] : aliases) {
    names.push_back(other);
  }
  return names;
}

/// Returns what the command has in place of a flag of other tools; "" of any other flag.
std::string_view hint_for(const CLI::App& app, const std::string& name) {
  const auto* const row = std::ranges::find_if(kOtherFlags, [&](const OtherFlags& flags) {
    return name.starts_with("--") && has_flag(flags, name) &&
           app.get_option_no_throw(std::string(flags.own)) != nullptr;
  });
  return row == kOtherFlags.end() ? "" : row->hint;
}

Error unknown_option(const CLI::App& app, const std::string& name,
                     const std::vector<std::string>& known) {
  const std::string_view hint = hint_for(app, name);
  const std::string instead =
      hint.empty() ? did_you_mean(name, known) : ": here " + std::string(hint);
  return Error("unknown option " + name + instead + "; see orrery " + app.get_name() + " --help");
}

/// Options of one command by the names under which they were declared. A misspelt one is a mistake,
/// and is read as what it may mean, so that only real mistakes are found besides.
class OwnNames {
 public:
  OwnNames(const CLI::App& app, const Aliases& aliases)
      : app_(app), aliases_(aliases), known_(option_names(app, aliases)) {}

  std::vector<std::string> of(const std::vector<std::string>& words, Error& mistakes) {
    for (const std::string& word : words) {
      stated_.insert(declared(word.substr(0, word.find('='))).value_or(""));
    }
    std::vector<std::string> named;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::size_t end = std::min(words[i].find('='), words[i].size());
      const std::string name = words[i].substr(0, end);
      if (!name.starts_with("--")) {
        named.push_back(words[i]);
        continue;
      }
      const bool value_follows =
          end < words[i].size() || (i + 1 < words.size() && !words[i + 1].starts_with("--"));
      const std::string own = own_name(name, value_follows, mistakes);
      const CLI::Option* option = app_.get_option_no_throw(own);
      const bool wants =
          option != nullptr && option->get_items_expected_min() > 0 && end == words[i].size();
      const bool has_value =
          i + 1 < words.size() && !declared(words[i + 1].substr(0, words[i + 1].find('=')));
      if (wants && !has_value) {
        mistakes.add({name, {}, {}, "missing; expected " + option->get_type_name() + " after it"});
        complete_ = false;
        continue;
      }
      named.push_back(own + words[i].substr(end));
      if (wants) {
        named.push_back(words[++i]);
      }
    }
    return named;
  }

  /// Returns whether every option that takes a value had one.
  bool complete() const { return complete_; }

  /// Names options in mistakes as they were given.
  Error as_given(Error mistakes) const {
    for (Mistake& mistake : mistakes.mistakes) {
      const auto given = given_.find(mistake.where);
      mistake.where = given == given_.end() ? mistake.where : given->second;
    }
    return mistakes;
  }

 private:
  std::string own_name(const std::string& name, bool value_follows, Error& mistakes) {
    if (const auto own = declared(name)) {
      once(*own, name, mistakes);
      return *own;
    }
    const std::string* meant = hint_for(app_, name).empty() ? closest(name, known_) : nullptr;
    std::string own = meant == nullptr ? "" : declared(*meant).value_or("");
    const CLI::Option* option = own.empty() ? nullptr : app_.get_option_no_throw(own);
    if (option == nullptr || stated_.contains(own) ||
        (value_follows ? option->get_items_expected_max() == 0
                       : option->get_items_expected_min() > 0)) {
      return name;  // unknown_arguments() says so
    }
    mistakes.add(unknown_option(app_, name, known_));
    return own;
  }

  /// The own name of an option or alias.
  std::optional<std::string> declared(const std::string& name) const {
    if (const auto alias = aliases_.find(name); alias != aliases_.end()) {
      return alias->second;
    }
    const bool known = name.starts_with("--") && app_.get_option_no_throw(name) != nullptr;
    return known ? std::optional(name) : std::nullopt;
  }

  /// Two names of one option contradict each other, or one name given twice does.
  void once(const std::string& own, const std::string& name, Error& mistakes) {
    const CLI::Option& option = *app_.get_option(own);
    const auto [first, is_new] = given_.emplace(own, name);
    if (!is_new && option.get_items_expected_max() > 0 &&
        option.get_multi_option_policy() != CLI::MultiOptionPolicy::TakeAll) {
      mistakes.add({name,
                    {},
                    {},
                    first->second == name
                        ? "given twice; give it once"
                        : "the same option as " + first->second + "; give one of them"});
      first->second = name;
    }
  }

  const CLI::App& app_;
  const Aliases& aliases_;
  std::vector<std::string> known_;
  std::set<std::string> stated_;  // own names of all options that are given
  bool complete_ = true;
  Aliases given_;  // the name under which each option was given last
};

/// Returns what is right in place of a word that no option took.
std::string instead_of_word(const CLI::App& app, const std::string& word) {
  const CLI::Option* const json = app.get_option_no_throw("--json");
  return json != nullptr && json->count() > 0 && word.ends_with(".json")
             ? "; --json prints to standard output: --json > " + word
             : "; see orrery " + app.get_name() + " --help";
}

/// Returns a mistake for every argument that no option took. A word right after an unknown flag is
/// taken for its value.
Error unknown_arguments(const CLI::App& app, const Aliases& aliases) {
  const std::vector<std::string> known = option_names(app, aliases);
  Error mistakes;
  bool after_flag = false;
  for (const std::string& argument : app.remaining()) {
    const bool is_flag = argument.size() > 1 && argument.front() == '-';
    if (is_flag) {
      mistakes.add(unknown_option(app, argument.substr(0, argument.find('=')), known));
    } else if (!after_flag) {
      mistakes.add(
          Error("unexpected argument '" + argument + "'" + instead_of_word(app, argument)));
    }
    after_flag = is_flag && argument.find('=') == std::string::npos;
  }
  return mistakes;
}

/// `word`: the first of the command line; "" where there is none.
Error unknown_command(const std::string& word) {
  std::vector<std::string> names{kHelp, "--version"};
  for (const CommandEntry& entry : kCommands) {
    names.emplace_back(entry.name);
  }
  if (word.empty()) {
    Error questions;
    for (const char* line : kQuestions) {
      questions.add(Error(std::string(line)));
    }
    return questions;
  }
  return Error((word.front() == '-'
                    ? "unknown option " + word
                    : "unknown command '" + word + "'" + did_you_mean(word, names)) +
               "; see orrery --help");
}

int report_mistakes(const Error& mistakes) {
  assert(!mistakes.empty() && "who fails says why");
  std::fputs((mistakes.to_string() + "\n").c_str(), stderr);
  return kBadInput;
}

/// The only writer to standard output: what does not reach it is no success.
int write_out(const Answer& answer) {
  const std::string& text = answer.text;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    std::fputs("orrery: cannot write to standard output\n", stderr);
    return 1;
  }
  if (!answer.late.empty()) {
    (void)report_mistakes(answer.late);
    return 1;
  }
  return answer.status;
}

/// `help` is --help, `help CMD` is `CMD --help`.
void ask_for_help(std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments.front() == kHelp) {
    arguments.front() = "--help";
    std::rotate(arguments.begin(), arguments.begin() + 1, arguments.end());
  }
}

class CommandLine {
 public:
  /// Only commands that `arguments` name get their options: declaring one costs CLI11 as much as
  /// there are options before it.
  explicit CommandLine(const std::vector<std::string>& arguments)
      : app_("Simulator and planner for training and serving large models on many accelerators") {
    app_.name("orrery");
    app_.set_version_flag("--version", "orrery " ORRERY_VERSION, "Print the version and exit");
    app_.get_formatter()->column_width(kHelpColumn);
    app_.footer(kOrreryExamples);
    app_.require_subcommand(0, 1);
    app_.allow_extras();
    for (const CommandEntry& entry : kCommands) {
      commands_.push_back(entry.make());
      Options options(*app_.add_subcommand(std::string(entry.name), std::string(entry.sentence)),
                      aliases_.emplace_back(), outputs_.emplace_back());
      if (std::find(arguments.begin(), arguments.end(), entry.name) != arguments.end()) {
        commands_.back()->declare(options);
      }
    }
  }

  /// `rest`: the words after "--", which are the command's own business.
  Result<Answer> run(std::vector<std::string> arguments, std::vector<std::string> rest) {
    Error mistakes;
    const std::size_t chosen = command_of(arguments);
    const std::string first = arguments.empty() ? "" : arguments.front();
    if (chosen == commands_.size() && !first.starts_with('-')) {
      return fail(unknown_command(first));
    }
    std::optional<OwnNames> names;
    if (chosen < commands_.size()) {
      names.emplace(app_of(chosen), aliases_[chosen]);
      arguments = names->of(arguments, mistakes);
      if (!names->complete()) {
        return fail(std::move(mistakes));
      }
    }
    try {
      std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
      app_.parse(std::move(arguments));
    } catch (const CLI::ParseError& error) {
      return stop(error);
    }
    if (chosen == commands_.size()) {
      return fail(unknown_command(first));
    }
    mistakes.add(unknown_arguments(app_of(chosen), aliases_[chosen]));
    mistakes.add(mistaken_outputs(app_of(chosen), outputs_[chosen]));
    commands_[chosen]->take_rest(std::move(rest), mistakes);
    const auto interrupt = Interrupt::around(commands_[chosen]->ends_early());
    // Names come from files: none of them reaches a terminal as a control sequence.
    auto answer = commands_[chosen]->run(std::move(mistakes)).map([&](std::string text) {
      text = stamped(std::move(text), app_of(chosen), outputs_[chosen]);
      return Answer{printable(text, "\n\t"), commands_[chosen]->status(),
                    commands_[chosen]->late()};
    });
    return answer ? std::move(answer) : fail(names->as_given(std::move(answer.error())));
  }

  std::vector<DeclaredOption> options_of(const std::string& command) const {
    const std::size_t chosen = command_of({command});
    std::vector<DeclaredOption> declared;
    if (chosen == commands_.size()) {
      return declared;
    }
    for (const CLI::Option* option : app_of(chosen).get_options()) {
      const bool positional = option->get_positional();
      std::string name = positional ? option->get_name(true) : option->get_lnames().front();
      if (name == kHelp) {
        continue;
      }
      name = lower_case(name);
      std::ranges::replace(name, '-', '_');
      declared.push_back(
          {.name = std::move(name),
           .kind = option->get_type_name(),
           .sentence = option->get_description(),
           .group = option->get_group() == "Options" ? "" : option->get_group(),
           .positional = positional,
           .flag = option->get_items_expected_max() == 0,
           .repeated = option->get_items_expected_max() > 1 ||
                       option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll,
           .output =
               std::ranges::find(outputs_[chosen], option->get_name()) != outputs_[chosen].end()});
    }
    return declared;
  }

 private:
  /// Returns the command that the first word names, or the number of commands.
  static std::size_t command_of(const std::vector<std::string>& arguments) {
    const std::string_view name = arguments.empty() ? "" : std::string_view(arguments.front());
    const auto* const entry = std::ranges::find(kCommands, name, &CommandEntry::name);
    return static_cast<std::size_t>(entry - kCommands.begin());
  }
  const CLI::App& app_of(std::size_t command) const {
    return *app_.get_subcommand(std::string(kCommands[command].name));
  }

  /// A request for help or the version, or arguments without or with too many values.
  Result<Answer> stop(const CLI::ParseError& error) const {
    if (error.get_exit_code() != 0) {
      return fail(std::string(error.what()));
    }
    std::ostringstream text;
    app_.exit(error, text, text);
    return Answer{printable(text.str(), "\n\t")};
  }

  CLI::App app_;
  std::vector<std::unique_ptr<Command>> commands_;
  std::vector<Aliases> aliases_;                   // of each command
  std::vector<std::vector<std::string>> outputs_;  // likewise
};

}  // namespace

Result<Answer> answer(std::vector<std::string> arguments) {
  std::ranges::transform(arguments, arguments.begin(), with_dashes);
  CommandLine line(arguments);
  return line.run(std::move(arguments), {});
}

std::vector<DeclaredOption> declared_options(const std::string& command) {
  return CommandLine({command}).options_of(command);
}

int run_command_line(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  int i = 1;
  for (; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    arguments.push_back(with_dashes(argv[i]));
  }
  ask_for_help(arguments);
  if (std::erase(arguments, "--big") > 0) {
    setenv("ORRERY_BIG", "1", 1);  // for whoever reads a file
  }
  CommandLine line(arguments);
  const auto answer = line.run(std::move(arguments), {argv + std::min(i + 1, argc), argv + argc});
  return Interrupt::status(answer ? write_out(*answer) : report_mistakes(answer.error()));
}

}  // namespace orrery::cli
