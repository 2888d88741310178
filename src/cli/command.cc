// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/printable.h"

namespace orrery::cli {

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
  option->type_name(kind)->take_last();
  if (!group_.empty()) {
    option->group(group_);
  }
}

void Options::output(const std::string& name, std::optional<std::string>& into,
                     const std::string& kind, const std::string& sentence) {
  value(name, into, kind, sentence);
  outputs_.push_back(app_.get_option(name.substr(name.rfind(',') + 1))->get_name());
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
  option->type_name("[" + kind + "]")->expected(0, 1)->take_last();
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

void Options::alias(const std::string& other, const std::string& name) {
  aliases_[other] = name;
  CLI::Option* option = app_.get_option(name);
  const std::string& sentence = option->get_description();
  option->description(sentence +
                      (sentence.find("; also --") == std::string::npos ? "; also " : ", ") + other);
}

void Options::footer(const std::string& text) {
  app_.footer(text);
}

void tell_notes(const std::vector<std::string>& notes, const char* mark) {
  for (const std::string& note : notes) {
    std::fputs((std::string(mark) + ": " + printable(note) + "\n").c_str(), stderr);
  }
}

}  // namespace orrery::cli
