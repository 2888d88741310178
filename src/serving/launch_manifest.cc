// SPDX-License-Identifier: Apache-2.0
#include "serving/launch_manifest.h"

#include <algorithm>
#include <vector>

#include "base/collect.h"
#include "base/config_node.h"
#include "base/printable.h"
#include "base/split.h"
#include "base/words.h"
#include "serving/launch_program.h"
#include "shell/shell.h"

namespace orrery::serving {
namespace {

constexpr std::string_view kBlanks = " \t\r";

/// Returns the documents of a file, each after as many empty lines as stand before it. Those of
/// comments and directives alone are left out: many a manifest begins with a line ---.
std::vector<std::string> documents_of(std::string_view text) {
  std::vector<std::string> documents(1);
  std::size_t lines = 0;
  for (const std::string_view line : split_at(text, '\n')) {
    ++lines;
    const bool begins =
        line.starts_with("---") && (line.size() == 3 || kBlanks.find(line[3]) != kBlanks.npos);
    if (begins) {
      documents.emplace_back(lines - 1, '\n');
    }
    documents.back() += std::string(line.substr(begins ? 3 : 0)) + "\n";
  }
  std::erase_if(documents, [](const std::string& document) {
    return std::ranges::all_of(split_at(document, '\n'), [](std::string_view line) {
      const std::vector<std::string_view> words = words_of(line);
      return words.empty() || words.front().starts_with('#') || line.starts_with('%');
    });
  });
  return documents;
}

/// Kubernetes' $(NAME), from the container's `env`: a list of names and values, or a map.
std::string expanded(std::string word, const ConfigNode* env) {
  const auto value_of = [&](const std::string& name) -> const ConfigNode* {
    for (const ConfigNode& item : env->items) {
      const ConfigNode* key = item.find("name");
      if (key != nullptr && key->text == name) {
        return item.find("value");
      }
    }
    return env->find(name);
  };
  std::size_t at = 0;
  while (env != nullptr && (at = word.find("$(", at)) != std::string::npos) {
    const std::size_t end = word.find(')', at);
    const ConfigNode* value =
        end == std::string::npos ? nullptr : value_of(word.substr(at + 2, end - at - 2));
    if (value == nullptr) {
      ++at;
    } else {
      word.replace(at, end + 1 - at, value->text);
      at += value->text.size();
    }
  }
  return word;
}

/// Returns the container's `env`, a list of names and values, as variables of its shell, then
/// `given`.
std::vector<std::string> variables_of(const ConfigNode& container,
                                      const std::vector<std::string>& given) {
  std::vector<std::string> variables;
  const ConfigNode* env = container.find("env");
  for (std::size_t i = 0; env != nullptr && i < env->items.size(); ++i) {
    const ConfigNode* name = env->items[i].find("name");
    const ConfigNode* value = env->items[i].find("value");
    if (name != nullptr && value != nullptr) {
      variables.push_back(name->text + "=" + value->text);
    }
  }
  variables.insert(variables.end(), given.begin(), given.end());
  return variables;
}

/// Returns a container's words as a line of a shell: those of a list are whole, a text is a line
/// itself. Mistakes: an item that is no word ("- --model: name" is a map).
Result<std::string> line_of(const ConfigNode& container) {
  std::string line;
  Error mistakes;
  const ConfigNode* env = container.find("env");
  env = env == nullptr ? container.find("environment") : env;
  for (const char* name : {"entrypoint", "command", "args"}) {
    const ConfigNode* part = container.find(name);
    if (part == nullptr) {
      continue;
    }
    if (part->kind == ConfigNode::Kind::map && container.find("image") != nullptr) {
      mistakes.add({part->where(), part->path, "a map", "a list of words, or a line of them"});
    }
    line += part->text.empty() ? "" : expanded(part->text, env) + " ";
    for (const ConfigNode& item : part->items) {
      if (item.kind != ConfigNode::Kind::scalar) {
        mistakes.add({item.where(), item.path, item.fields.empty() ? "" : item.fields.front().name,
                      "a word; a map, a list or nothing is none (quotes make a word of it)"});
      }
      line += shell_quoted(expanded(item.text, env)) + " ";
    }
  }
  std::ranges::replace(line, '\n', ' ');
  return or_mistakes(std::move(line), std::move(mistakes));
}

bool is_container(const ConfigNode& node) {
  return node.find("args") != nullptr || node.find("command") != nullptr ||
         (node.find("image") != nullptr && node.find("entrypoint") != nullptr);
}

void find_containers(const ConfigNode& node, std::vector<const ConfigNode*>& found) {
  if (is_container(node)) {
    found.push_back(&node);
  }
  for (const ConfigField& field : node.fields) {
    find_containers(field.value, found);
  }
  for (const ConfigNode& item : node.items) {
    find_containers(item, found);
  }
}

/// Returns the server's command of a container; no words where it starts none.
Result<EngineWords> launch_in(const std::string& framework, const ConfigNode& container,
                              const std::vector<std::string>& given) {
  const auto names = [&](const shell::Word& word) { return names_server(framework, word.text); };
  const ConfigNode* image = container.find("image");
  const bool in_image = image != nullptr && names_server(framework, image->text);
  auto script = line_of(container).and_then([&](const std::string& line) {
    return shell::read_script(line, container.file(), variables_of(container, given));
  });
  EngineWords words;
  if (!script) {
    return fail(std::move(script.error()));
  }
  auto command = std::ranges::find_if(script->commands, [&](const shell::Command& each) {
    return std::ranges::any_of(each, names);
  });
  const bool named = command != script->commands.end();
  if (!named && !in_image) {
    return words;
  }
  command = named ? command : script->commands.begin();
  if (!named) {
    words.words.push_back(image->text);
  }
  if (command != script->commands.end()) {
    for (const shell::Word& word : *command) {
      words.words.push_back(word.text);
    }
  }
  words.places.assign(words.words.size(), container.where());
  return words;
}

void add_settings(const ConfigNode& node, const std::string& name, EngineWords& words) {
  for (const ConfigField& field : node.fields) {
    add_settings(field.value, (name.empty() ? "--" : name + ".") + field.name, words);
  }
  if (node.fields.empty() && node.items.empty() && node.kind != ConfigNode::Kind::null) {
    words.words.push_back(name + "=" + node.text);
    words.places.push_back(node.where());
  }
}

}  // namespace

bool is_manifest(std::string_view text, const std::string& file) {
  return file.ends_with(".yaml") || file.ends_with(".yml") || text.starts_with("apiVersion:") ||
         text.find("\napiVersion:") != text.npos || text.starts_with("services:");
}

Result<EngineWords> setting_words(std::string_view text, const std::string& file) {
  return parse_config(text, file, ConfigSyntax::yaml).map([](const ConfigNode& node) {
    EngineWords words;
    add_settings(node, "", words);
    return words;
  });
}

Result<EngineWords> manifest_words(const std::string& framework, std::string_view text,
                                   const std::string& file, const std::vector<std::string>& given) {
  bool contains = false;
  Error torn;
  std::vector<EngineWords> servers;
  for (const std::string& document : documents_of(text)) {
    auto node = parse_config(document, file, ConfigSyntax::yaml);
    if (!node) {
      return fail(std::move(node.error()));
    }
    std::vector<const ConfigNode*> containers;
    find_containers(*node, containers);
    contains = contains || !containers.empty();
    for (const ConfigNode* container : containers) {
      auto words = launch_in(framework, *container, given);
      if (!words) {
        torn.add(words.error());
      } else if (!words->words.empty()) {
        servers.push_back(std::move(*words));
      }
    }
  }
  if (!servers.empty()) {
    servers.front().say_first_of(servers.size(), file);
    return std::move(servers.front());
  }
  if (!torn.empty()) {
    return fail(std::move(torn));
  }
  if (contains || text.find("apiVersion:") != text.npos) {
    return fail(Error({file + ":1",
                       {},
                       {},
                       "no container whose command or arguments start " + framework +
                           ", by their own words or their image"}));
  }
  return setting_words(text, file);
}

}  // namespace orrery::serving
