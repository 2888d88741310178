// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <iostream>

#include "base/lists.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "mcp/server.h"

namespace orrery::cli {
namespace {

constexpr const char* kMcpExamples =
    "An agent starts this command and speaks the Model Context Protocol with it, revision "
    "2025-06-18 "
    "or\n"
    "2026-07-28, one JSON-RPC message a line: tools simulate, plan, serve, explain and show, "
    "whose\n"
    "arguments are these commands' options. No tool writes a file (docs/mcp.md).\n"
    "Examples:\n"
    "  orrery mcp\n"
    "  echo '{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/list\"}' | orrery mcp\n";

constexpr std::array kTools{"simulate", "plan", "serve", "explain", "show"};

std::string sentence_of(std::string_view command) {
  const auto* const entry = std::ranges::find(kCommands, command, &CommandEntry::name);
  return std::string(entry->sentence);
}

/// Returns whether an agent may give the option: not what writes files, nor another form than JSON.
bool is_offered(const DeclaredOption& option) {
  constexpr std::array kForms{"json", "csv", "yaml", "svg", "verbose"};
  return !option.output && std::ranges::find(kForms, option.name) == kForms.end();
}

std::string kind_of(const DeclaredOption& option) {
  return option.flag || option.kind == "[BOOL]" ? "BOOL" : option.kind;
}

/// Standard input is the protocol's.
Result<std::vector<NamedText>> checked_texts(const std::vector<DeclaredOption>& options,
                                             const std::vector<mcp::GivenArgument>& given) {
  std::vector<NamedText> texts;
  Error mistakes;
  for (const mcp::GivenArgument& argument : given) {
    const auto option = std::ranges::find(options, argument.name, &DeclaredOption::name);
    if (option != options.end() && !is_offered(*option)) {
      mistakes.add({argument.name, {}, {}, "is not for agents"});
    } else if (argument.text == "-") {
      mistakes.add({argument.name, {}, "-", "a name or a file"});
    } else {
      texts.push_back({argument.name, argument.text});
    }
  }
  texts.push_back({"json", "true"});
  return or_mistakes(std::move(texts), std::move(mistakes));
}

mcp::Tool tool_of(const std::string& command) {
  mcp::Tool tool{.name = command, .sentence = sentence_of(command)};
  const std::vector<DeclaredOption> options = declared_options(command);
  for (const DeclaredOption& option : options) {
    if (is_offered(option)) {
      tool.arguments.push_back({.name = option.name,
                                .kind = kind_of(option),
                                .sentence = option.sentence,
                                .required = option.name == "kind" && option.positional,
                                .repeated = option.repeated});
    }
  }
  tool.call = [command, options](const std::vector<mcp::GivenArgument>& given) {
    return checked_texts(options, given)
        .and_then([&](const std::vector<NamedText>& texts) { return arguments_of(command, texts); })
        .and_then([](std::vector<std::string> arguments) { return answer(std::move(arguments)); })
        .map([](const Answer& answer) { return answer.text; });
  };
  return tool;
}

class Mcp : public Command {
 public:
  void declare(Options& options) override { options.footer(kMcpExamples); }

  Result<std::string> run(Error mistakes) override {
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    std::vector<mcp::Tool> tools =
        mapped(kTools, [&](const char* const command) { return tool_of(command); });
    mcp::Server(ORRERY_VERSION, std::move(tools)).serve(std::cin, std::cout);
    return std::string();
  }
};

}  // namespace

std::unique_ptr<Command> make_mcp() {
  return std::make_unique<Mcp>();
}

}  // namespace orrery::cli
