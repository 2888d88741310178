// SPDX-License-Identifier: Apache-2.0
#include "shell/expand.h"

#include <algorithm>
#include <cctype>

#include "shell/lexer.h"
#include "shell/parameter.h"

namespace orrery::shell {
namespace {

bool starts_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool in_name(char c) {
  return starts_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// Collects the fields of one word.
class Fields {
 public:
  explicit Fields(int line) : line_(line) {}

  void add(std::string_view text) {
    if (text_.size() + text.size() <= kMostText) {
      text_ += text;
    }
    open_ = true;
  }
  /// Splits at blanks, whose newlines count the lines from `line`.
  void split(std::string_view text, int line) {
    bool marked = false;
    for (const char c : text) {
      if (c == kContinued || c == '\n') {
        ++line;
      }
      marked = (marked || c == kUnset || c == kUnknown) && c != kEnd;
      if (c == kContinued) {
        continue;
      }
      if (!marked && std::isspace(static_cast<unsigned char>(c)) != 0) {
        end();
      } else {
        line_ = open_ ? line_ : line;
        add({&c, 1});
      }
    }
  }
  void items(const std::vector<Word>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) {
        end();
      }
      line_ = open_ ? line_ : items[i].line;
      add(items[i].text);
    }
  }
  void end() {
    if (open_) {
      done_.push_back({std::move(text_), line_});
    }
    text_.clear();
    open_ = false;
  }
  std::vector<Word> take() {
    end();
    return std::move(done_);
  }
  void quoted() { open_ = true; }
  void at_line(int line) { line_ = open_ ? line_ : line; }

 private:
  int line_;
  std::string text_;
  bool open_ = false;
  std::vector<Word> done_;
};

/// Walks a word as written.
class Expansion {
 public:
  Expansion(Scope& scope, std::string_view raw, int line, bool splits)
      : scope_(scope), raw_(raw), line_(line), splits_(splits), fields_(line) {}

  std::vector<Word> run(bool quoted, bool document = false) {
    in_quotes_ = quoted;
    document_ = document;
    while (at_ < raw_.size()) {
      step();
    }
    return fields_.take();
  }

 private:
  void step() {
    const char c = raw_[at_];
    line_ += c == '\n' ? 1 : 0;
    if (!in_quotes_) {
      fields_.at_line(line_);
    }
    if (c == '\\') {
      escape();
    } else if (c == '\'' && !in_quotes_) {
      const std::size_t end = std::min(after_quote(raw_, at_), raw_.size());
      fields_.add(raw_.substr(at_ + 1, end - at_ - 2));
      at_ = end;
    } else if (c == '"' && !document_) {
      if (in_quotes_ && !vanished_) {
        fields_.quoted();
      }
      in_quotes_ = !in_quotes_;
      vanished_ = false;
      ++at_;
    } else if (c == '`') {
      const std::size_t end = std::min(after_quote(raw_, at_), raw_.size());
      command(raw_.substr(at_ + 1, end - at_ - 2));
      at_ = end;
    } else if (c == '$' && at_ + 1 < raw_.size()) {
      dollar();
    } else {
      fields_.add({&raw_[at_], 1});
      ++at_;
    }
  }

  void escape() {
    const char next = at_ + 1 < raw_.size() ? raw_[at_ + 1] : '\\';
    at_ += 2;
    if (next == '\n') {
      ++line_;
      if (in_quotes_) {
        fields_.add({&kContinued, 1});
      }
    } else if (in_quotes_ && std::string_view("$`\"\\").find(next) == std::string_view::npos) {
      fields_.add("\\");
      fields_.add({&next, 1});
    } else {
      fields_.add({&next, 1});
    }
  }

  void dollar() {
    const char next = raw_[at_ + 1];
    if (next == '(' || next == '{') {
      const std::size_t end = std::min(after_bracket(raw_, at_ + 1), raw_.size());
      const std::string_view inner = raw_.substr(at_ + 2, end - at_ - 3);
      at_ = end;
      if (next == '{') {
        parameter(inner);
      } else if (inner.starts_with('(') && inner.ends_with(')')) {
        sum(inner.substr(1, inner.size() - 2));
      } else {
        command(inner);
      }
      return;
    }
    std::size_t end = at_ + 1;
    while (end < raw_.size() && in_name(raw_[end]) && starts_name(next)) {
      ++end;
    }
    if (end == at_ + 1 &&
        std::string_view("0123456789@*#?$!-").find(next) != std::string_view::npos) {
      ++end;
    }
    const std::string_view name = raw_.substr(at_ + 1, end - at_ - 1);
    at_ = end;
    if (name.empty()) {
      fields_.add("$");
    } else {
      parameter(name);
    }
  }

  void parameter(std::string_view inner) {
    const Expanded found = expand_parameter(scope_, inner, line_, in_quotes_);
    if (found.list) {
      if (!splits_) {
        fields_.add(joined(found.items));
      } else if (in_quotes_) {
        vanished_ = found.items.empty();  // "${none[@]}" is no field
        fields_.items(found.items);
      } else {
        for (const Word& item : found.items) {
          fields_.split(item.text, item.line);
          fields_.end();
        }
      }
      return;
    }
    const int line = found.items.empty() ? 0 : found.items.front().line;
    put(joined(found.items), line > 0 ? line : line_);
  }

  /// A value: split where it is not quoted.
  void put(std::string text, int line) {
    if (splits_ && !in_quotes_) {
      fields_.split(text, line);
      return;
    }
    std::erase(text, kContinued);  // its lines are those of another place
    fields_.add(text);
  }

  void sum(std::string_view text) {
    const std::string filled = quoted_text(scope_, text, line_);
    if (const auto value = arithmetic(scope_, filled)) {
      fields_.add(std::to_string(*value));
      return;
    }
    const std::size_t mark = filled.find_first_of({kUnset, kUnknown});
    if (mark != std::string::npos) {
      fields_.add(filled.substr(mark, filled.find(kEnd, mark) - mark + 1));
    } else {
      fields_.add(kUnknown + std::string("arithmetic") + kEnd);
    }
  }

  /// Expands what a command prints: `echo` alone is known, which prints its words.
  void command(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
      text.remove_prefix(1);
    }
    if (text.starts_with("echo ") && text.find_first_of("|&;<>()-\n") == text.npos) {
      put(joined(fields_of(scope_, text.substr(5), line_)), line_);
      return;
    }
    const std::size_t end = std::min(text.find_first_of(" \t\n|;"), text.size());
    fields_.add(kUnknown + std::string(text.substr(0, end)) + kEnd);
  }

  static std::string joined(const std::vector<Word>& items) {
    std::string text;
    for (std::size_t i = 0; i < items.size(); ++i) {
      text += (i > 0 ? " " : "") + items[i].text;
    }
    return text;
  }

  Scope& scope_;
  std::string_view raw_;
  int line_;
  bool splits_;
  Fields fields_;
  std::size_t at_ = 0;
  bool vanished_ = false;
  bool in_quotes_ = false;
  bool document_ = false;
};

}  // namespace

void Scope::set(const std::string& name, std::string text, int line) {
  if (const auto known = given.find(name); known != given.end()) {
    text = known->second;
  }
  variables[name] = Value{.items = {{std::move(text), line}}};
}

const Value* Scope::find(std::string_view name) const {
  const auto at = variables.find(name);
  return at == variables.end() ? nullptr : &at->second;
}

std::vector<Word> fields_of(Scope& scope, std::string_view raw, int line) {
  return Expansion(scope, raw, line, true).run(false);
}

std::string text_of(Scope& scope, std::string_view raw, int line) {
  const auto fields = Expansion(scope, raw, line, false).run(false);
  return fields.empty() ? std::string() : fields.front().text;
}

std::string quoted_text(Scope& scope, std::string_view inner, int line) {
  const auto fields = Expansion(scope, inner, line, false).run(true);
  return fields.empty() ? std::string() : fields.front().text;
}

std::string document_text(Scope& scope, std::string_view lines, int line) {
  const auto fields = Expansion(scope, lines, line, false).run(true, true);
  return fields.empty() ? std::string() : fields.front().text;
}

std::string without_unset(std::string_view text) {
  std::string rest;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == kUnset) {
      i = std::min(text.find(kEnd, i), text.size());
    } else if (text[i] != kContinued) {
      rest += text[i];
    }
  }
  return rest;
}

std::string shown(std::string_view text) {
  std::string result;
  bool command = false;
  for (const char c : text) {
    if (c == kUnset || c == kUnknown) {
      result += c == kUnset ? "$" : "$(";
      command = c == kUnknown;
    } else if (c == kEnd) {
      result += command ? "...)" : "";
    } else if (c != kContinued) {
      result += c;
    }
  }
  return result;
}

bool matches(std::string_view pattern, std::string_view text) {
  // The last star and the place in the text that it has reached.
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t reached = 0;
  while (t < text.size()) {
    const std::size_t close =
        p < pattern.size() && pattern[p] == '[' ? pattern.find(']', p + 1) : std::string_view::npos;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      reached = t;
    } else if (close != std::string_view::npos) {
      bool inside = false;
      for (std::size_t i = p + 1; i < close; ++i) {
        const bool range = i + 2 < close && pattern[i + 1] == '-';
        inside = inside || (range ? text[t] >= pattern[i] && text[t] <= pattern[i + 2]
                                  : text[t] == pattern[i]);
        i += range ? 2 : 0;
      }
      if (inside) {
        p = close + 1;
        ++t;
      } else if (star != std::string_view::npos) {
        p = star + 1;
        t = ++reached;
      } else {
        return false;
      }
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++reached;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace orrery::shell
