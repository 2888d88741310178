// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/config_node.h"
#include "base/reader.h"
#include "base/split.h"
#include "shell/shell.h"
#include "workload/interop/interop.h"

namespace orrery::interop {
namespace {

bool is_script(const shell::Word& word) {
  return word.text.ends_with(".py");
}

/// Gives the module that a launcher runs (`torchrun --module NAME`, `python -m NAME`) its file's
/// name, unless it is a launcher itself.
void name_module(shell::Command& command) {
  if (std::ranges::any_of(command, is_script)) {
    return;
  }
  for (std::size_t i = 0; i + 1 < command.size(); ++i) {
    std::string& module = command[i + 1].text;
    if ((command[i].text == "--module" || command[i].text == "-m") && !module.starts_with("-") &&
        !module.starts_with("torch.")) {
      module += ".py";
      return;
    }
  }
}

/// Returns whether the command starts a program with flags of a model or its batch.
bool trains(const shell::Command& command) {
  constexpr std::array<std::string_view, 6> kFlags{
      "--micro-batch-size",           "--num-layers", "--hidden-size",
      "--tensor-model-parallel-size", "--seq-length", "--batch-size"};
  const auto script = std::ranges::find_if(command, is_script);
  return std::any_of(script, command.end(), [&](const shell::Word& word) {
    std::string name = word.text.substr(0, word.text.find('='));
    std::replace(name.begin(), name.end(), '_', '-');
    return std::ranges::find(kFlags, name) != kFlags.end();
  });
}

/// Returns whether the command is ms-swift's `megatron sft ...`.
bool is_swift(const shell::Command& command) {
  return command.size() > 1 && command[0].text == "megatron" && !command[1].text.starts_with("-");
}

/// Adds what ms-swift states, behind its program and before the flags of the line. Source: ms-swift
/// 3, swift/megatron/argument/megatron_args.py.
void add_swift_defaults(shell::Command& command, std::size_t program) {
  const int at = command.front().line;
  shell::Command defaults;
  for (const char* word :
       {"--micro-batch-size", "1", "--global-batch-size", "16", "--bf16", "--recompute-granularity",
        "selective", "--use-distributed-optimizer", "--expert-tensor-parallel-size", "1"}) {
    defaults.push_back({word, at});
  }
  command.insert(command.begin() + static_cast<std::ptrdiff_t>(program) + 1, defaults.begin(),
                 defaults.end());
}

/// Adds them where the command starts ms-swift's program (swift/cli/_megatron/sft.py) itself.
bool add_swift_defaults(shell::Command& command) {
  const auto program = std::ranges::find_if(command, [](const shell::Word& word) {
    return is_script(word) && word.text.find("swift/cli/_megatron/") != std::string::npos;
  });
  if (program != command.end()) {
    add_swift_defaults(command, static_cast<std::size_t>(program - command.begin()));
    return true;
  }
  return false;
}

/// The line that ms-swift's `megatron sft ...` becomes: torchrun with the processes that variables
/// state, and its own defaults before the flags. Source: ms-swift 3, swift/cli/_megatron/main.py.
shell::Command swift_line(const shell::Command& command, const shell::Script& script) {
  const int at = command.front().line;
  shell::Command line{{"torchrun", at}};
  for (const auto& [variable, flag] :
       {std::pair{"NPROC_PER_NODE", "--nproc-per-node"}, std::pair{"NNODES", "--nnodes"}}) {
    if (const auto stated = script.processes.find(variable); stated != script.processes.end()) {
      line.insert(line.end(), {{flag, at}, {stated->second, at}});
    }
  }
  line.push_back({command[1].text + ".py", at});
  add_swift_defaults(line, line.size() - 1);
  line.insert(line.end(), command.begin() + 2, command.end());
  return line;
}

void append(LaunchWords& line, const shell::Command& command, const std::string& file) {
  for (const shell::Word& word : command) {
    line.words.push_back(word.text);
    line.places.push_back(file + ":" + std::to_string(word.line));
  }
}

LaunchWords chosen(const shell::Script& script, const std::string& file) {
  LaunchWords line;
  const auto& commands = script.commands;
  const auto first = std::ranges::find_if(commands, trains);
  if (first != commands.end()) {
    append(line, *first, file);
    const auto others = std::count_if(first + 1, commands.end(), trains);
    if (others > 0) {
      line.remarks.push_back({file, "the first of " + std::to_string(others + 1) +
                                        " launches is read, of line " +
                                        std::to_string(first->front().line)});
    }
    return line;
  }
  // Words pasted without `\` at the ends of lines.
  const auto program = std::ranges::find_if(commands, [](const shell::Command& command) {
    return std::ranges::any_of(command, is_script);
  });
  if (program != commands.end()) {
    append(line, *program, file);
  }
  for (auto at = program == commands.end() ? commands.begin() : program + 1; at != commands.end();
       ++at) {
    if (at->front().text.starts_with("-")) {
      append(line, *at, file);
    }
  }
  if (line.words.empty() && !commands.empty()) {
    append(line, commands.front(), file);
  }
  return line;
}

/// Returns the flags of the map MODEL_ARGS, as Megatron-LM's functional tests state them: true is a
/// switch, false and null are left out, a value with blanks or in brackets is several. Shells
/// read the values, one after the other, so `\` and `\\` before a sign stand for the sign.
Result<LaunchWords> mapped_words(const ConfigNode& node) {
  LaunchWords line;
  const auto add = [&](std::string word, const ConfigNode& at) {
    line.words.push_back(std::move(word));
    line.places.push_back(at.where());
  };
  const ConfigNode* arguments = node.find("MODEL_ARGS");
  if (arguments != nullptr && arguments->kind != ConfigNode::Kind::map) {
    return fail(Error({arguments->where(), "MODEL_ARGS", arguments->shown(), "a map of flags"}));
  }
  for (const auto& [name, value] : arguments == nullptr ? node.fields : arguments->fields) {
    const bool off = value.kind == ConfigNode::Kind::null || value.text == "false";
    if (off && value.items.empty()) {
      continue;
    }
    add(name, value);
    for (const ConfigNode& item : value.items) {
      add(item.text, item);
    }
    std::string stated = value.text == "true" ? std::string() : value.text;
    std::erase(stated, '\\');
    const bool words =
        stated.starts_with("[") && stated.find_first_of("0123456789") == std::string::npos;
    if (words) {
      std::erase_if(stated, [](char letter) { return letter == '[' || letter == ']'; });
    }
    const bool one = stated.starts_with("(") || stated.starts_with("[");
    for (const std::string_view part : split_at(stated, one ? '\n' : ' ')) {
      if (!part.empty()) {
        add(std::string(part), value);
      }
    }
  }
  return line;
}

}  // namespace

Result<LaunchWords> launch_words(std::string_view text, const std::string& file,
                                 const std::vector<std::string>& given) {
  const auto flags =
      std::ranges::find_if(given, [](const std::string& word) { return word.starts_with("--"); });
  if (text.starts_with("MODEL_ARGS:") || text.find("\nMODEL_ARGS:") != text.npos) {
    return parse_config(text, file, ConfigSyntax::yaml)
        .and_then(mapped_words)
        .map([&](LaunchWords&& line) {
          line.words.insert(line.words.end(), flags, given.end());
          return std::move(line);
        });
  }
  const std::vector<std::string> of_script(given.begin(), flags);
  return shell::read_script(text, file, of_script).map([&](shell::Script&& script) {
    bool swift = false;
    for (shell::Command& command : script.commands) {
      name_module(command);
      if (is_swift(command)) {
        command = swift_line(command, script);
        swift = true;
      } else {
        swift = add_swift_defaults(command) || swift;
      }
    }
    LaunchWords line = chosen(script, file);
    if (swift) {
      line.remarks.push_back({"megatron",
                              "states --bf16, --use-distributed-optimizer, selective "
                              "recompute and batches of 1 and 16 unless the line does"});
    }
    line.words.insert(line.words.end(), flags, given.end());
    for (std::string& sentence : script.remarks) {
      line.remarks.push_back({"script", std::move(sentence)});
    }
    line.documents = std::move(script.documents);
    if (const auto tasks = script.processes.find("SLURM_NTASKS"); tasks != script.processes.end()) {
      line.tasks = parse_integer(tasks->second).value_or(0);
    }
    return line;
  });
}

}  // namespace orrery::interop
