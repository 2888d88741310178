// SPDX-License-Identifier: Apache-2.0
/// A Result is the answer to what the user can cause: either a value or every mistake found, each
/// naming where it is, what was found and what would be right. What only we can cause is an assert.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace orrery {

/// One mistake. Printed as `file:line: field: found 'x', expected y`; empty parts are left out.
struct Mistake {
  std::string where;     ///< "file.yaml:14", "--tp", or empty
  std::string field;     ///< dotted path such as "device.memory_bandwidth", or empty
  std::string found;     ///< what stands there; printed in quotes; empty when missing
  std::string expected;  ///< what would be right, or the whole sentence when `found` is empty
};

/// All mistakes of one input, in the order in which they were found. Never empty when returned.
struct Error {
  std::vector<Mistake> mistakes;

  Error() = default;
  explicit Error(Mistake mistake) { mistakes.push_back(std::move(mistake)); }
  /// Makes an error of a sentence without a place.
  explicit Error(std::string sentence) { mistakes.push_back({{}, {}, {}, std::move(sentence)}); }

  bool empty() const { return mistakes.empty(); }
  void add(Mistake mistake) { mistakes.push_back(std::move(mistake)); }
  void add(Error other) {
    for (Mistake& mistake : other.mistakes) {
      mistakes.push_back(std::move(mistake));
    }
  }
  /// Returns one line per mistake, no trailing newline; of a flood the first lines and how many
  /// more.
  std::string to_string() const;
};

template <class T>
using Result = tl::expected<T, Error>;

inline auto fail(Error error) {
  return tl::make_unexpected(std::move(error));
}
inline auto fail(std::string sentence) {
  return tl::make_unexpected(Error(std::move(sentence)));
}

}  // namespace orrery
