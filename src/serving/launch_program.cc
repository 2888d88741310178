// SPDX-License-Identifier: Apache-2.0
#include "serving/launch_program.h"

#include <algorithm>

#include "serving/launch_line.h"
#include "shell/shell.h"

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
         name.starts_with(framework + ":") || name.starts_with(framework + "-");
}

namespace {

/// The place of a container's image that holds the server; 0 when there is none.
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

Result<EngineWords> launch_of(const std::string& framework, std::string_view text,
                              const std::string& file, const std::vector<std::string>& given) {
  return shell::read_script(text, file, given).map([&](const shell::Script& script) {
    const auto serves = [&](const shell::Command& command) {
      return std::ranges::any_of(
          command, [&](const shell::Word& word) { return names_server(framework, word.text); });
    };
    auto command = std::ranges::find_if(script.commands, serves);
    command = command == script.commands.end() ? script.commands.begin() : command;
    EngineWords line;
    for (std::size_t i = 0; command != script.commands.end() && i < command->size(); ++i) {
      line.words.push_back((*command)[i].text);
      line.places.push_back(file + ":" + std::to_string((*command)[i].line));
    }
    return line;
  });
}

}  // namespace orrery::serving
