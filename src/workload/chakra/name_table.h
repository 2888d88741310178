// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::chakra {

/// Returns a 64-bit hash of bytes, eight at a time (multiply and fold, as wyhash does). The same on
/// every run; no defence against chosen input, so what is equal by hash is always compared.
std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed = 0);
/// Adds a number to a hash.
std::uint64_t hash_mix(std::uint64_t hash, std::uint64_t value);

/// Equal names stored once, in order of first use. Open addressing; used for file after file.
class NameTable {
 public:
  void clear();
  /// Number of the name, counted from 0 in order of first use.
  std::uint32_t intern(std::string_view name);
  /// All names, each with '\0' behind it.
  const std::string& text() const { return text_; }
  std::uint32_t offset(std::uint32_t number) const { return offsets_[number]; }
  std::string_view operator[](std::uint32_t number) const {
    const std::size_t end = number + 1 < offsets_.size() ? offsets_[number + 1] : text_.size();
    return std::string_view(text_).substr(offsets_[number], end - offsets_[number] - 1);
  }
  std::size_t size() const { return offsets_.size(); }

 private:
  void grow();

  std::string text_;
  std::vector<std::uint32_t> offsets_;
  std::vector<std::uint64_t> hashes_;  ///< by number
  std::vector<std::uint32_t>
      slots_;  ///< number + 1; 0 is free; a power of two, less than half used
};

}  // namespace orrery::chakra
