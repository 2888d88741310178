// SPDX-License-Identifier: Apache-2.0
#include "workload/interop/arguments.h"

#include <algorithm>

#include "base/names.h"
#include "base/reader.h"

namespace orrery::interop {
namespace {

/// "-1" and "-0.5" are values, not flags.
bool is_flag(const std::string& word) {
  return word.size() > 2 && word.starts_with("--");
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

}  // namespace

Arguments::Arguments(const std::vector<std::string>& words) {
  std::vector<std::string>* values = nullptr;
  for (const std::string& word : words) {
    if (is_flag(word)) {
      const std::size_t equals = word.find('=');
      std::string name = word.substr(0, equals);
      std::replace(name.begin(), name.end(), '_', '-');
      values = &given_[name];
      values->clear();
      if (equals != std::string::npos) {
        values->push_back(word.substr(equals + 1));
      }
    } else if (values != nullptr) {
      values->push_back(word);
    } else {
      error_.add({{}, {}, word, "a flag such as --tensor-model-parallel-size 8"});
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
  if (values != nullptr && !values->empty()) {
    reject(name, "no value: it is a switch");
  }
  return values != nullptr;
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
  error_.add(
      {std::string(name), {}, values == nullptr ? "" : joined(*values), std::move(expected)});
}

Error Arguments::take_mistakes() {
  Error taken = std::move(error_);
  error_ = {};
  return taken;
}

Error Arguments::finish() {
  const std::vector<std::string> names(known_.begin(), known_.end());
  for (const auto& [name, values] : given_) {
    if (!known_.contains(name)) {
      error_.add({name, {}, {}, "unknown flag" + did_you_mean(name, names)});
    }
  }
  return take_mistakes();
}

}  // namespace orrery::interop
