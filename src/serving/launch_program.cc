// SPDX-License-Identifier: Apache-2.0
#include "serving/launch_program.h"

#include <algorithm>
#include <iterator>

#include "base/reader.h"
#include "serving/launch_line.h"
#include "serving/launch_manifest.h"
#include "shell/shell.h"
#include "workload/zoo/hub_name.h"

namespace orrery::serving {

std::optional<SpokenFlag> spoken_flag(const std::string& word) {
  if (word == "-q") {  // vLLM's
    return SpokenFlag{"quantization", {}};
  }
  if (!word.starts_with("--") && !(word.starts_with("-") && word.size() > 2)) {
    return std::nullopt;
  }
  SpokenFlag flag{word.substr(word.starts_with("--") ? 2 : 1), {}};
  if (const std::size_t equals = flag.name.find('='); equals != std::string::npos) {
    flag.value = flag.name.substr(equals + 1);
    flag.name.resize(equals);
  }
  std::replace(flag.name.begin(), flag.name.end(), '_', '-');
  return flag;
}

std::string plain_number(const std::string& text) {
  constexpr std::string_view kDecimal = "kmgt";
  constexpr std::string_view kBinary = "KMGT";
  const auto number =
      text.size() > 1 ? parse_number(text.substr(0, text.size() - 1)) : parse_number("none");
  const char suffix = text.empty() ? ' ' : text.back();
  const std::size_t power = std::min(kDecimal.find(suffix), kBinary.find(suffix));
  if (!number || power == std::string_view::npos) {
    return text;
  }
  const double base = kBinary.find(suffix) != std::string_view::npos ? 1024 : 1000;
  double value = *number;
  for (std::size_t i = 0; i <= power; ++i) {
    value *= base;
  }
  constexpr double kMost = 1e15;
  return value == static_cast<double>(static_cast<std::int64_t>(std::min(value, kMost)))
             ? std::to_string(static_cast<std::int64_t>(value))
             : text;
}

bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9') && word[1] != '.';
}

bool names_server(const std::string& framework, const std::string& word) {
  const std::string name = word.substr(word.find_last_of('/') + 1);
  if (framework == "trtllm") {
    return name.starts_with("trtllm") || word.find("tensorrt-llm") != std::string::npos ||
           word.find("tensorrt_llm") != std::string::npos;
  }
  return name == framework || name.starts_with(framework + ".") ||
         name.starts_with(framework + "_router.launch_server") ||
         name.starts_with(framework + ":") || name.starts_with(framework + "-");
}

namespace {

/// Returns the place of a container's image that holds the server; 0 when there is none.
std::size_t after_image(const std::string& framework, const std::vector<std::string>& words) {
  const bool runs = std::ranges::find(words, "run") != words.end();
  const bool contains = std::ranges::any_of(words, [](const std::string& word) {
    return word == "docker" || word == "podman" || word == "nerdctl";
  });
  for (std::size_t i = words.size(); runs && contains && i-- > 1;) {
    const std::string& before = words[i - 1];
    const bool option = before == "-v" || before == "-e" || before == "--env" ||
                        before == "--volume" || before == "--name" || before == "--model" ||
                        before == "--model-path" || words[i].starts_with("-");
    if (!option && words[i].find('/') != std::string::npos && names_server(framework, words[i])) {
      return i;
    }
  }
  return 0;
}

}  // namespace

std::size_t after_launcher(const std::string& framework, const std::vector<std::string>& words) {
  std::size_t program = 0;
  for (std::size_t i = 0; i < words.size() && program == 0; ++i) {
    const bool value = i > 0 && words[i - 1].starts_with("--");
    program = !value && names_server(framework, words[i]) ? i : 0;
  }
  return std::max(program, after_image(framework, words));
}

namespace {

/// Returns the line with the settings of a file of options that the script writes, which the line
/// names (--extra_llm_api_options FILE, --config FILE).
Result<EngineWords> with_options(EngineWords line, const shell::Script& script,
                                 const std::string& file) {
  for (std::size_t i = 0; i + 1 < line.words.size(); ++i) {
    const auto flag = spoken_flag(line.words[i]);
    if (!flag || (flag->name != "extra-llm-api-options" && flag->name != "config")) {
      continue;
    }
    const auto written = script.documents.find(flag->value.value_or(line.words[i + 1]));
    if (written == script.documents.end()) {
      continue;
    }
    auto settings = setting_words(written->second, file + ": " + written->first);
    if (!settings) {
      return fail(std::move(settings.error()));
    }
    const auto at = static_cast<std::ptrdiff_t>(i);
    const std::ptrdiff_t end = at + (flag->value ? 1 : 2);
    line.words.erase(line.words.begin() + at, line.words.begin() + end);
    line.places.erase(line.places.begin() + at, line.places.begin() + end);
    std::ranges::move(settings->words, std::back_inserter(line.words));
    std::ranges::move(settings->places, std::back_inserter(line.places));
    break;
  }
  return line;
}

/// Says whether a command starts a server, not a client, a build or a download.
bool starts_server(const shell::Command& command) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i].text;
    const bool vllm = i > 0 && word == "serve" && names_server("vllm", command[i - 1].text);
    if (vllm || word.ends_with(".launch_server") || word.ends_with(".api_server") ||
        word == "trtllm-serve") {
      return true;
    }
  }
  return false;
}

}  // namespace

Result<EngineWords> launch_of(const std::string& framework, std::string_view text,
                              const std::string& file, const std::vector<std::string>& given) {
  if (is_manifest(text, file)) {
    return manifest_words(framework, text, file, given);
  }
  return shell::read_script(text, file, given).and_then([&](const shell::Script& script) {
    const auto serves = [&](const shell::Command& command) {
      return std::ranges::any_of(
          command, [&](const shell::Word& word) { return names_server(framework, word.text); });
    };
    auto command = std::ranges::find_if(script.commands, serves);
    command = command == script.commands.end() ? script.commands.begin() : command;
    EngineWords line;
    const auto servers = std::ranges::count_if(script.commands, starts_server);
    line.say_first_of(static_cast<std::size_t>(servers), file);
    for (std::size_t i = 0; command != script.commands.end() && i < command->size(); ++i) {
      line.words.push_back((*command)[i].text);
      line.places.push_back(file + ":" + std::to_string((*command)[i].line));
    }
    return with_options(std::move(line), script, file);
  });
}

std::string narrow_model(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    bool names = i > 0 && (words[i - 1] == "--model" || words[i - 1] == "--model-path" ||
                           words[i - 1] == "serve" || words[i - 1].ends_with("trtllm-serve"));
    for (const std::string_view flag : {"--model=", "--model-path="}) {
      if (word.starts_with(flag)) {
        word.erase(0, flag.size());
        names = true;
      }
    }
    word.resize(word.ends_with('/') ? word.size() - 1 : word.size());
    if (names && !zoo::format_of(word).empty()) {
      return word;
    }
  }
  return {};
}

}  // namespace orrery::serving
