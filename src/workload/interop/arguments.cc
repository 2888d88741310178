// SPDX-License-Identifier: Apache-2.0
#include "workload/interop/arguments.h"

#include <algorithm>

#include "base/letters.h"
#include "base/lists.h"
#include "base/names.h"
#include "base/reader.h"
#include "shell/shell.h"

namespace orrery::interop {
namespace {

constexpr std::size_t kMostMeant = 100;  // more mistakes than a message shows

/// "-1" and "-0.5" are values, not flags.
bool is_flag(const std::string& word) {
  return word.size() > 2 && word.starts_with("--");
}

/// A value that a script quotes twice keeps its inner quotes: '([0]*3+[1]*58)'.
std::string unquoted(const std::string& word) {
  const bool quoted = word.size() > 1 && (word.front() == '\'' || word.front() == '"') &&
                      word.back() == word.front();
  return quoted ? word.substr(1, word.size() - 2) : word;
}

}  // namespace

Arguments::Arguments(const std::vector<std::string>& words,
                     const std::vector<std::string>& places) {
  std::vector<std::string>* values = nullptr;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (is_flag(word)) {
      const std::size_t equals = word.find('=');
      std::string name = word.substr(0, equals);
      std::replace(name.begin(), name.end(), '_', '-');
      values = &given_[name];
      values->clear();
      places_[name] = i < places.size() ? places[i] : "";
      if (equals != std::string::npos) {
        values->push_back(word.substr(equals + 1));
      }
    } else if (values != nullptr) {
      if (values->empty() || !shell::unresolved(word)) {
        values->push_back(unquoted(word));
      }
    } else if (!shell::unresolved(word)) {
      error_.add({i < places.size() ? places[i] : "",
                  {},
                  word,
                  "a flag such as --tensor-model-parallel-size 8"});
    }
  }
}

const std::vector<std::string>* Arguments::find(std::string_view name) {
  known_.emplace(name);
  const auto at = given_.find(name);
  return at == given_.end() ? nullptr : &at->second;
}

bool Arguments::has(std::string_view name) {
  return find(name) != nullptr;
}

bool Arguments::flag(std::string_view name) {
  const auto* values = find(name);
  if (values != nullptr && values->size() == 1) {
    const std::string text = lower_case(values->front());  // Python's True as well
    if (passes_unknown_ && (text == "1" || text == "0")) {
      return text == "1";  // of a dump
    }
    if (const auto said = parse_bool(text)) {
      return *said;
    }
  }
  if (values != nullptr && !values->empty() && !shell::unresolved(values->front())) {
    reject(name, "no value, true or false: it is a switch");
  }
  return values != nullptr;
}

void Arguments::rename(std::string_view name, std::string_view as) {
  const auto at = given_.find(name);
  if (at != given_.end() && !given_.contains(as)) {
    given_.emplace(as, std::move(at->second));
    places_.emplace(as, places_[std::string(name)]);
    given_.erase(at);
  }
  known_.emplace(name);
}

std::optional<std::string> Arguments::word(std::string_view name) {
  const auto* values = find(name);
  if (values == nullptr) {
    return std::nullopt;
  }
  if (values->size() != 1) {
    reject(name, "one value");
    return std::nullopt;
  }
  return values->front();
}

std::optional<std::int64_t> Arguments::number(std::string_view name, std::int64_t least) {
  const auto text = word(name);
  if (!text) {
    return std::nullopt;
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 40;  // products of a few still fit 64 bits
  const auto value = parse_integer(*text);
  if (!value || *value < least || *value > kMost) {
    reject(name, "a whole number of at least " + std::to_string(least));
    return std::nullopt;
  }
  return *value;
}

std::optional<double> Arguments::real(std::string_view name) {
  const auto text = word(name);
  if (!text) {
    return std::nullopt;
  }
  const auto value = parse_number(*text);
  if (!value) {
    reject(name, value.error());
    return std::nullopt;
  }
  return *value;
}

std::vector<std::string> Arguments::words(std::string_view name) {
  const auto* values = find(name);
  return values == nullptr ? std::vector<std::string>{} : *values;
}

void Arguments::reject(std::string_view name, std::string expected) {
  if (!wrong_.emplace(name).second) {
    return;  // one mistake per flag
  }
  const auto* values = find(name);
  add_mistake(name, values == nullptr ? "" : joined(*values, " "), std::move(expected));
}

void Arguments::add_mistake(std::string_view name, std::string found, std::string expected) {
  const auto place = places_.find(name);
  const bool known = place != places_.end() && !place->second.empty();
  if (shell::unresolved(found)) {
    expected += "; give what the script does not set, such as: FILE -- NAME=value";
  }
  error_.add({known ? place->second : std::string(name), known ? std::string(name) : "",
              std::move(found), std::move(expected)});
}

Error Arguments::take_mistakes() {
  Error taken = std::move(error_);
  error_ = {};
  return taken;
}

Error Arguments::finish() {
  const std::vector<std::string> names(known_.begin(), known_.end());
  std::size_t unknown = 0;
  for (const auto& [name, values] : given_) {
    if (!known_.contains(name)) {
      const bool shown = ++unknown <= kMostMeant;
      const std::string sentence = "unknown flag" + (shown ? did_you_mean(name, names) : "");
      if (passes_unknown_ && !places_[name].starts_with("override")) {
        note(name, sentence + ": left out");
      } else {
        add_mistake(name, {}, sentence);
      }
    }
  }
  return take_mistakes();
}

}  // namespace orrery::interop
