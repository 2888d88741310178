// SPDX-License-Identifier: Apache-2.0
/// Mistakes of several inputs are collected, so that all of them are told at once.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"

namespace orrery {

/// Returns the value, or nothing after taking over the mistakes.
template <class T>
std::optional<T> kept(Result<T> result, Error& mistakes) {
  if (result) {
    return std::move(*result);
  }
  mistakes.add(std::move(result.error()));
  return std::nullopt;
}

/// Returns the value, or T{} after taking over the mistakes.
template <class T>
T collect(Result<T> result, Error& mistakes) {
  return kept(std::move(result), mistakes).value_or(T{});
}
inline void collect(Result<void> result, Error& mistakes) {
  if (!result) {
    mistakes.add(std::move(result.error()));
  }
}

/// Sets `into` to the value; after mistakes it stays.
template <class T>
void collect_into(T& into, Result<T> result, Error& mistakes) {
  if (auto value = kept(std::move(result), mistakes)) {
    into = std::move(*value);
  }
}

/// Returns the value where there is no mistake, else all mistakes.
template <class T>
Result<T> or_mistakes(T value, Error mistakes) {
  if (mistakes.empty()) {
    return value;
  }
  return fail(std::move(mistakes));
}
inline Result<void> or_mistakes(Error mistakes) {
  return mistakes.empty() ? Result<void>() : fail(std::move(mistakes));
}

/// Collects the mistakes of a file: of a flood the first ones, and how many more there are.
class FileMistakes {
 public:
  explicit FileMistakes(std::string file) : file_(std::move(file)) {}

  bool empty() const { return found_ == 0; }
  void add(Mistake mistake) {
    constexpr std::size_t kMost = 20;
    if (++found_ <= kMost) {
      error_.add(std::move(mistake));
    } else {
      more_ = {file_, {}, {}, "and " + std::to_string(found_ - kMost) + " more"};
    }
  }
  void add(Error error) {
    for (Mistake& mistake : error.mistakes) {
      add(std::move(mistake));
    }
  }
  Error take() {
    if (more_) {
      error_.add(std::move(*more_));
    }
    return std::move(error_);
  }

 private:
  std::string file_;
  Error error_;
  std::optional<Mistake> more_;
  std::size_t found_ = 0;
};

}  // namespace orrery
