// SPDX-License-Identifier: Apache-2.0
/// Assignments, builtins, redirections and the commands that are recorded.
#include <algorithm>
#include <array>
#include <cctype>

#include "base/reader.h"
#include "shell/runner.h"

namespace orrery::shell {
namespace {

/// NAME=value, NAME[i]=value, NAME+=value as written.
struct Assignment {
  std::string name;
  std::string index;
  bool adds = false;
  std::string_view value;
};

std::optional<Assignment> assignment_of(std::string_view raw) {
  Assignment found;
  std::size_t at = 0;
  while (at < raw.size() &&
         (std::isalnum(static_cast<unsigned char>(raw[at])) != 0 || raw[at] == '_')) {
    ++at;
  }
  if (at == 0 || std::isdigit(static_cast<unsigned char>(raw[0])) != 0) {
    return std::nullopt;
  }
  found.name = raw.substr(0, at);
  if (at < raw.size() && raw[at] == '[') {
    const std::size_t close = raw.find(']', at);
    if (close == raw.npos) {
      return std::nullopt;
    }
    found.index = raw.substr(at + 1, close - at - 1);
    at = close + 1;
  }
  found.adds = raw.substr(at).starts_with("+=");
  at += found.adds ? 1 : 0;
  if (at >= raw.size() || raw[at] != '=') {
    return std::nullopt;
  }
  found.value = raw.substr(at + 1);
  return found;
}

std::string file_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

bool is_redirection(std::string_view sign) {
  return sign.find_first_of("<>") != sign.npos;
}

/// Says whether a word is nothing but variables that nothing sets.
bool only_unset(const std::string& text) {
  return text.find(kUnset) != text.npos && without_unset(text).empty();
}

/// Programs that print: what they are given is no launch line.
bool prints(const std::string& name) {
  constexpr std::array<std::string_view, 6> kNames{"echo", "printf", "cat",
                                                   "log",  "logger", "grep"};
  return std::ranges::find(kNames, name) != kNames.end();
}

/// Returns whether the word at `at` is a text that a shell reads: `bash -c TEXT`, `ssh HOST TEXT`.
bool is_script_text(const std::vector<Word>& words, std::size_t at) {
  constexpr std::array<std::string_view, 8> kShells{"bash", "sh",    "zsh", "ssh",
                                                    "pdsh", "clush", "su",  "eval"};
  const std::string& text = words[at].text;
  const bool option = at > 0 && words[at - 1].text.starts_with("-") &&
                      words[at - 1].text.ends_with("c") && words[at - 1].text.size() <= 4;
  const bool starts = option || text.find(".py") != std::string::npos;
  if (text.find_first_of(" \t\n") == std::string::npos || !starts) {
    return false;
  }
  return at == 0 ||
         std::any_of(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at),
                     [&](const Word& word) {
                       return std::ranges::find(kShells, file_name(word.text)) != kShells.end();
                     });
}

}  // namespace

void Statements::redirection(bool run) {
  const Token sign = *token();
  ++at_;
  if (token() == nullptr || token()->kind != TokenKind::word) {
    return;
  }
  ++at_;
  if (!sign.text.starts_with("<<") || sign.text == "<<<" || !goes(run)) {
    return;
  }
  // cat <<EOF > FILE: the document is that file's.
  const bool literal = (*tokens_)[at_ - 1].text.find_first_of("'\"\\") != std::string::npos;
  std::string text = literal ? sign.document : document_text(run_.scope, sign.document, sign.line);
  document_ = text;
  std::size_t begin = at_ - 2;
  while (begin > 0 && (*tokens_)[begin - 1].text != "\n" && (*tokens_)[begin - 1].text != ";") {
    --begin;
  }
  for (std::size_t i = begin; i + 1 < tokens_->size() && (*tokens_)[i].text != "\n"; ++i) {
    if ((*tokens_)[i].text == ">" || (*tokens_)[i].text == ">>") {
      const Token& name = (*tokens_)[i + 1];
      run_.script.documents[shown(text_of(run_.scope, name.text, name.line))] = shown(text);
    }
  }
}

bool Statements::assignment(bool run, const Token& written) {
  const auto found = assignment_of(written.text);
  if (!found || !goes(run)) {
    return found.has_value();
  }
  Scope& scope = run_.scope;
  const std::string& name = found->name;
  if (found->value.starts_with('(')) {
    auto tokens =
        tokens_of(found->value.substr(1, found->value.size() - 2), run_.file, written.line);
    Value value{.items = {}, .is_array = true};
    if (found->adds && scope.find(name) != nullptr) {
      value.items = scope.variables[name].items;
    }
    for (const Token& item : tokens ? *tokens : std::vector<Token>{}) {
      if (item.kind == TokenKind::word) {
        std::ranges::move(fields_of(scope, item.text, item.line), std::back_inserter(value.items));
      }
    }
    scope.variables[name] = std::move(value);
    return true;
  }
  std::string text = text_of(scope, found->value, written.line);
  if (!found->index.empty()) {
    constexpr std::int64_t kMostItems = 4096;
    const auto index = arithmetic(scope, quoted_text(scope, found->index, written.line));
    if (index && *index >= 0 && *index < kMostItems) {
      Value& value = scope.variables[name];
      value.is_array = true;
      value.items.resize(std::max(value.items.size(), static_cast<std::size_t>(*index) + 1));
      value.items[static_cast<std::size_t>(*index)] = {std::move(text), written.line};
    }
    return true;
  }
  const Value* before = found->adds ? scope.find(name) : nullptr;
  if (before != nullptr && !before->items.empty() &&
      before->items[0].text.size() + text.size() <= kMostText) {
    text = before->items[0].text + text;
  }
  scope.set(name, std::move(text), written.line);
  return true;
}

Truth Statements::simple(bool run) {
  std::vector<Word> words;
  std::vector<Token> raw;
  document_.clear();
  while (token() != nullptr) {
    const Token& next = *token();
    if (next.kind == TokenKind::sign && is_redirection(next.text)) {
      redirection(run);
      continue;
    }
    if (next.kind != TokenKind::word) {
      break;
    }
    ++at_;
    if (words.empty() && assignment(run, next)) {
      continue;
    }
    if (goes(run)) {
      std::vector<Word> fields = fields_of(run_.scope, next.text, next.line);
      raw.resize(raw.size() + fields.size(), next);
      std::ranges::move(fields, std::back_inserter(words));
    } else {
      words.push_back({next.text, next.line});
    }
  }
  if (!goes(run)) {
    return Truth::unknown;
  }
  return words.empty() ? Truth::yes : builtin(std::move(words), raw);
}

void Statements::declare(const std::vector<Word>& words, const std::vector<Token>& raw) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!assignment(true, raw[i])) {
      const std::size_t equals = words[i].text.find('=');  // export "$KEY"="$VALUE"
      if (equals != std::string::npos && equals > 0) {
        run_.scope.set(words[i].text.substr(0, equals), words[i].text.substr(equals + 1),
                       words[i].line);
      }
    }
  }
}

Truth Statements::call(const std::string& name, std::vector<Word> words) {
  const Run::Function body = run_.functions[name];
  words.erase(words.begin());
  std::swap(words, run_.scope.arguments);
  Statements statements(run_, body.tokens, body.body);
  statements.body();
  stop_ = statements.stop_ == Stop::leave ? Stop::leave : stop_;
  std::swap(words, run_.scope.arguments);
  return Truth::unknown;
}

Truth Statements::builtin(std::vector<Word> words, const std::vector<Token>& raw) {
  const std::string name = words[0].text;
  if (run_.functions.contains(name)) {
    return call(name, std::move(words));
  }
  if (name == "export" || name == "declare" || name == "local" || name == "readonly" ||
      name == "typeset") {
    declare(words, raw);
  } else if (name == "exit") {
    stop_ = Stop::leave;
    run_.left_at = run_.file + ":" + std::to_string(words[0].line);
  } else if (name == "break" || name == "continue" || name == "return") {
    stop_ = name == "break"      ? Stop::leave_loop
            : name == "continue" ? Stop::next
                                 : Stop::leave_function;
  } else if (name == "eval") {
    std::string text;
    for (std::size_t i = 1; i < words.size(); ++i) {
      text += (i > 1 ? " " : "") + words[i].text;
    }
    run_text(run_, text, words[0].line);
  } else if (name == "shift") {
    auto& arguments = run_.scope.arguments;
    const auto count = words.size() > 1 ? parse_integer(words[1].text).value_or(1) : 1;
    const bool shifts = count >= 0 && count <= std::ssize(arguments) && !arguments.empty();
    arguments.erase(arguments.begin(), arguments.begin() + (shifts ? count : 0));
    return truth(shifts);
  } else if (name == "set") {
    if (words.size() > 1 && words[1].text == "--") {
      run_.scope.arguments.assign(words.begin() + 2, words.end());
    }
  } else if (name == "unset") {
    for (const Word& word : words) {
      run_.scope.variables.erase(word.text);
    }
  } else if (name == "false") {
    return Truth::no;
  } else if (name == "source" || name == ".") {
    run_.script.remarks.push_back(run_.file + ":" + std::to_string(words[0].line) + ": " + name +
                                  " " + (words.size() > 1 ? shown(words[1].text) : "") +
                                  " is not read; give its variables after --");
  } else if (name != "true" && name != ":") {
    record(std::move(words));
    return Truth::unknown;
  }
  return Truth::yes;
}

void Statements::record(std::vector<Word> words) {
  const std::string program = file_name(words[0].text);
  if (!document_.empty() && (program == "sbatch" || program == "bash" || program == "sh")) {
    const std::string text = std::move(document_);  // sbatch <<EOF: a script of its own
    run_text(run_, text, words[0].line);
    return;
  }
  const bool only_prints = prints(program);
  for (std::size_t i = 0; i < words.size() && !only_prints; ++i) {
    if (!is_script_text(words, i)) {
      continue;
    }
    const std::size_t before = run_.script.commands.size();
    run_text(run_, words[i].text, words[i].line);
    for (std::size_t k = before; k < run_.script.commands.size(); ++k) {
      Command& inner = run_.script.commands[k];
      for (std::size_t j = i; j-- > 0;) {  // srun -N 2 bash -c TEXT: whose launcher counts too
        inner.insert(inner.begin(), {shown(words[j].text), words[j].line});
      }
    }
    return;
  }
  Command command;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_value = i > 0 && words[i - 1].text.starts_with("-");
    if (!only_unset(words[i].text) || is_value) {
      command.push_back({shown(words[i].text), words[i].line});
    }
  }
  if (!command.empty() && !only_prints) {
    run_.script.commands.push_back(std::move(command));
  }
}

}  // namespace orrery::shell
