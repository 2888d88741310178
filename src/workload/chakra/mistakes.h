// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace orrery::chakra {

/// Mistakes of one file, the first ten of them: a broken file has one per node.
class Mistakes {
 public:
  static constexpr std::size_t kLimit = 10;
  static constexpr std::size_t kFlood = 1000;

  void begin(std::string file) {
    file_ = std::move(file);
    error_ = {};
    left_out_ = 0;
  }
  /// Further mistakes are of this file.
  void name(std::string file) { file_ = std::move(file); }
  const std::string& file() const { return file_; }
  bool empty() const { return error_.empty(); }
  bool full() const { return error_.mistakes.size() >= kLimit; }
  /// Returns whether there are so many that reading on tells nothing new.
  bool flooded() const { return left_out_ >= kFlood; }

  void add(std::string field, std::string found, std::string expected) {
    if (full()) {
      ++left_out_;
      return;
    }
    error_.add(Mistake{file_, std::move(field), std::move(found), std::move(expected)});
  }
  /// Returns the mistakes, of which a last one says how many were left out.
  Error take() {
    if (left_out_ > 0) {
      error_.add(Mistake{file_, {}, {}, std::to_string(left_out_) + " further mistakes"});
    }
    left_out_ = 0;
    return std::exchange(error_, {});
  }

 private:
  std::string file_;
  Error error_;
  std::size_t left_out_ = 0;
};

/// Returns "node 3 'qkv'".
inline std::string node_label(std::uint64_t id, std::string_view name) {
  return "node " + std::to_string(id) + (name.empty() ? "" : " '" + std::string(name) + "'");
}

}  // namespace orrery::chakra
