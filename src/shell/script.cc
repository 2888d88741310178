// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/reader.h"
#include "shell/runner.h"

namespace orrery::shell {
namespace {

/// Returns a number of a line "#SBATCH --nodes=4", "-N 4", "--gres=gpu:a100:8".
std::optional<std::int64_t> batch_number(std::string_view line,
                                         std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const std::size_t at = line.find(std::string(" ") + std::string(name));
    if (at == line.npos) {
      continue;
    }
    std::string_view value = line.substr(at + 1 + name.size());
    const std::size_t begin = value.find_first_not_of(" =");
    value = value.substr(std::min(begin, value.size()));
    value = value.substr(0, value.find_first_of(" \t\r#"));
    value = value.substr(value.find_last_of(':') == value.npos ? 0 : value.find_last_of(':') + 1);
    if (const auto number = parse_integer(value)) {
      return *number;
    }
  }
  return std::nullopt;
}

/// SLURM's variables of the job that #SBATCH lines ask for.
void read_batch_lines(Scope& scope, std::string_view text) {
  std::int64_t nodes = 0;
  std::int64_t tasks = 0;
  const auto set = [&](std::string_view name, std::int64_t value) {
    scope.set(std::string(name), std::to_string(value), 1);
  };
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with("#SBATCH")) {
      continue;
    }
    if (const auto found = batch_number(line, {"--nodes", "-N"})) {
      nodes = *found;
      set("SLURM_NNODES", nodes);
      set("SLURM_JOB_NUM_NODES", nodes);
    }
    if (const auto found = batch_number(line, {"--ntasks-per-node"})) {
      tasks = *found;
      set("SLURM_NTASKS_PER_NODE", tasks);
    }
    if (const auto found = batch_number(line, {"--gpus-per-node", "--gres"})) {
      set("SLURM_GPUS_ON_NODE", *found);
      set("SLURM_GPUS_PER_NODE", *found);
    }
  }
  if (nodes > 0 && tasks > 0 && nodes < (1 << 20) && tasks < (1 << 20)) {
    set("SLURM_NTASKS", nodes * tasks);
    set("SLURM_NPROCS", nodes * tasks);
  }
}

/// "lines 3, 9 and 12 more" of sorted numbers.
std::string lines_text(std::vector<int> lines) {
  std::ranges::sort(lines);
  const auto [first, last] = std::ranges::unique(lines);
  lines.erase(first, last);
  constexpr std::size_t kShown = 8;
  std::string text = lines.size() == 1 ? "line " : "lines ";
  for (std::size_t i = 0; i < std::min(lines.size(), kShown); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(lines[i]);
  }
  return text + (lines.size() > kShown ? " ..." : "");
}

bool is_program(const Command& command) {
  return std::ranges::any_of(command, [](const Word& word) {
    return word.text.ends_with(".py") || word.text == "megatron";
  });
}

}  // namespace

void run_text(Run& run, std::string_view text, int line) {
  constexpr int kMostTexts = 16;
  if (run.texts >= kMostTexts) {
    run.error.add({run.file + ":" + std::to_string(line), {}, "eval", "texts that do not nest"});
    return;
  }
  auto tokens = tokens_of(text, run.file, line);
  if (!tokens) {
    run.error.add(std::move(tokens.error()));
    return;
  }
  ++run.texts;
  Statements(run, std::make_shared<const std::vector<Token>>(std::move(*tokens))).all();
  --run.texts;
}

Result<Script> read_script(std::string_view text, const std::string& file,
                           const std::vector<std::string>& given) {
  Run run;
  run.file = file;
  read_batch_lines(run.scope, text);
  for (const std::string& word : given) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const bool sets = equals != std::string::npos && !name.empty() &&
                      name.find_first_not_of(
                          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                          "0123456789_") == std::string::npos;
    if (sets) {
      run.scope.given[name] = word.substr(equals + 1);
      run.scope.set(name, word.substr(equals + 1), 0);
    } else {
      run.scope.arguments.push_back({word, 0});
    }
  }
  run_text(run, text, 1);
  const bool launches = std::ranges::any_of(run.script.commands, is_program);
  if (run.error.empty() && !run.left_at.empty() && !launches) {
    std::string example;
    for (const std::string& name : run.scope.missing) {
      example += name + "=value ";
    }
    run.error.add({run.left_at,
                   {},
                   "exit",
                   "variables and arguments with which the script goes on to its launch, such as: "
                   "FILE -- " +
                       (example.empty() ? "NNODES=2 ARGUMENT" : example + "(it asks for these)")});
  }
  if (!run.error.empty()) {
    return fail(std::move(run.error));
  }
  for (const std::string name : {"NPROC_PER_NODE", "NNODES", "SLURM_NTASKS"}) {
    if (const Value* value = run.scope.find(name); value != nullptr && !value->items.empty()) {
      run.script.processes[name] = value->items[0].text;
    }
  }
  if (!run.unknowns.empty()) {
    run.script.remarks.push_back(
        file + ": conditions on what commands print count as false: " + lines_text(run.unknowns));
  }
  if (!run.files.empty()) {
    run.script.remarks.push_back(
        file + ": files that are tested count as there: " + lines_text(run.files));
  }
  return std::move(run.script);
}

bool unresolved(std::string_view word) {
  const std::size_t at = word.find('$');
  return at != word.npos && at + 1 < word.size() &&
         (std::isalnum(static_cast<unsigned char>(word[at + 1])) != 0 || word[at + 1] == '_' ||
          word[at + 1] == '(' || word[at + 1] == '{');
}

}  // namespace orrery::shell
