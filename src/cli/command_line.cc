// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string_view>

#include "base/names.h"
#include "cli/commands.h"

namespace orrery::cli {
namespace {

constexpr int kBadInput = 2;
constexpr std::size_t kHelpColumn = 34;  // where the sentences of a help text begin

constexpr const char* kExamples =
    "Examples:\n"
    "  orrery simulate --model gpt3-175b --machine dgx-a100-80g --devices 1024 \\\n"
    "                  --plan gpt3-175b-1024\n"
    "  orrery list machines\n"
    "  orrery show model gpt3-175b\n"
    "  orrery simulate --help\n";

/// Option names are declared with dashes; --global_batch means --global-batch.
std::string with_dashes(std::string argument) {
  if (argument.starts_with("--")) {
    const auto end = argument.begin() +
                     static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size()));
    std::replace(argument.begin(), end, '_', '-');
  }
  return argument;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

/// A mistake for every argument that no option took. A word right after an unknown flag is taken
/// for its value.
Error unknown_arguments(const CLI::App& app) {
  Error mistakes;
  bool after_flag = false;
  for (const std::string& argument : app.remaining()) {
    const bool is_flag = argument.size() > 1 && argument.front() == '-';
    if (is_flag) {
      const std::string name = argument.substr(0, argument.find('='));
      mistakes.add(Error("unknown option " + name + did_you_mean(name, option_names(app)) +
                         "; see orrery " + app.get_name() + " --help"));
    } else if (!after_flag) {
      mistakes.add(Error("unexpected argument '" + argument + "'"));
    }
    after_flag = is_flag && argument.find('=') == std::string::npos;
  }
  return mistakes;
}

Error unknown_command(const CLI::App& app) {
  std::vector<std::string> names;
  names.reserve(kCommands.size());
  for (const CommandEntry& entry : kCommands) {
    names.emplace_back(entry.name);
  }
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) {
    return Error("which command? see orrery --help");
  }
  const std::string& word = extras.front();
  return Error((word.front() == '-'
                    ? "unknown option " + word
                    : "unknown command '" + word + "'" + did_you_mean(word, names)) +
               "; see orrery --help");
}

int report_mistakes(const Error& mistakes) {
  std::fputs((mistakes.to_string() + "\n").c_str(), stderr);
  return kBadInput;
}

class CommandLine {
 public:
  /// Only commands that `arguments` name get their options: declaring one costs CLI11 as much as
  /// there are options before it.
  explicit CommandLine(const std::vector<std::string>& arguments)
      : app_("Simulator and planner for training large models on many accelerators") {
    app_.name("orrery");
    app_.set_version_flag("--version", "orrery " ORRERY_VERSION, "Print the version and exit");
    app_.get_formatter()->column_width(kHelpColumn);
    app_.footer(kExamples);
    app_.require_subcommand(0, 1);
    app_.allow_extras();
    for (const CommandEntry& entry : kCommands) {
      commands_.push_back(entry.make());
      Options options(*app_.add_subcommand(std::string(entry.name), std::string(entry.sentence)));
      if (std::find(arguments.begin(), arguments.end(), entry.name) != arguments.end()) {
        commands_.back()->declare(options);
      }
    }
  }

  /// `rest`: the words after "--", which are the command's own business.
  int run(std::vector<std::string> arguments, std::vector<std::string> rest) {
    try {
      std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
      app_.parse(std::move(arguments));
    } catch (const CLI::ParseError& error) {
      return stop(error);
    }
    const std::vector<CLI::App*> chosen = app_.get_subcommands();
    if (chosen.empty()) {
      return report_mistakes(unknown_command(app_));
    }
    for (std::size_t i = 0; i < kCommands.size(); ++i) {
      if (chosen.front()->get_name() == kCommands[i].name) {
        Error mistakes = unknown_arguments(*chosen.front());
        commands_[i]->take_rest(std::move(rest), mistakes);
        return run(std::move(mistakes), *commands_[i]);
      }
    }
    return kBadInput;
  }

 private:
  /// A request for help or the version, or arguments without or with too many values.
  int stop(const CLI::ParseError& error) const {
    if (error.get_exit_code() == 0) {
      std::ostringstream text;
      app_.exit(error, text, text);
      return write_out(text.str());
    }
    return report_mistakes(Error(error.what()));
  }

  static int run(Error mistakes, Command& command) {
    const Result<std::string> text = command.run(std::move(mistakes));
    if (!text) {
      return report_mistakes(text.error());
    }
    return write_out(*text);
  }

  /// The only writer to standard output: what does not reach it is no success.
  static int write_out(std::string_view text) {
    const bool written =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (!written) {
      std::fputs("orrery: cannot write to standard output\n", stderr);
    }
    return written ? 0 : 1;
  }

  CLI::App app_;
  std::vector<std::unique_ptr<Command>> commands_;
};

}  // namespace

void Options::positional(const std::string& name, std::string& into, const std::string& sentence) {
  app_.add_option(name, into, sentence);
}

void Options::positional(const std::string& name, std::optional<std::string>& into,
                         const std::string& sentence) {
  app_.add_option_function<std::string>(
      name, [&into](const std::string& text) { into = text; }, sentence);
}

void Options::positionals(const std::string& name, std::vector<std::string>& into,
                          const std::string& sentence) {
  app_.add_option(name, into, sentence);
}

void Options::flag(const std::string& name, bool& into, const std::string& sentence) {
  CLI::Option* option = app_.add_flag(name, into, sentence);
  if (!group_.empty()) {
    option->group(group_);
  }
}

void Options::value(const std::string& name, std::optional<std::string>& into,
                    const std::string& kind, const std::string& sentence) {
  CLI::Option* option = app_.add_option_function<std::string>(
      name, [&into](const std::string& text) { into = text; }, sentence);
  option->type_name(kind);
  if (!group_.empty()) {
    option->group(group_);
  }
}

void Options::boolean(const std::string& name, std::optional<std::string>& into,
                      const std::string& sentence) {
  value_or(name, into, "BOOL", "true", sentence);
}

void Options::value_or(const std::string& name, std::optional<std::string>& into,
                       const std::string& kind, const std::string& otherwise,
                       const std::string& sentence) {
  CLI::Option* option = app_.add_option_function<std::string>(
      name, [&into, otherwise](const std::string& text) { into = text.empty() ? otherwise : text; },
      sentence);
  option->type_name("[" + kind + "]")->expected(0, 1);
  if (!group_.empty()) {
    option->group(group_);
  }
}

void Options::values(const std::string& name, std::vector<std::string>& into,
                     const std::string& kind, const std::string& sentence) {
  CLI::Option* option = app_.add_option(name, into, sentence);
  option->type_name(kind)->allow_extra_args(false)->expected(1)->take_all();
  if (!group_.empty()) {
    option->group(group_);
  }
}

void Options::footer(const std::string& text) {
  app_.footer(text);
}

int run_command_line(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  std::vector<std::string> rest;
  int i = 1;
  for (; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    arguments.push_back(with_dashes(argv[i]));
  }
  for (++i; i < argc; ++i) {
    rest.emplace_back(argv[i]);
  }
  return CommandLine(arguments).run(std::move(arguments), std::move(rest));
}

}  // namespace orrery::cli
