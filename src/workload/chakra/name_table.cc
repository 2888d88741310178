// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/name_table.h"

#include <algorithm>
#include <cstring>

namespace orrery::chakra {
namespace {

// Odd numbers with as many ones as zeros, from the digits of pi.
constexpr std::uint64_t kFirst = 0x243F6A8885A308D3;
constexpr std::uint64_t kSecond = 0x9E3779B97F4A7C15;

std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace

std::uint64_t hash_mix(std::uint64_t hash, std::uint64_t value) {
  return fold(hash ^ kFirst, value ^ kSecond);
}

std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed) {
  if (bytes.size() >= 8 && bytes.size() <= 16) {  // names: first and last eight bytes
    std::uint64_t ends[2];
    std::memcpy(&ends[0], bytes.data(), 8);
    std::memcpy(&ends[1], bytes.data() + bytes.size() - 8, 8);
    return hash_mix(hash_mix(seed ^ bytes.size(), ends[0]), ends[1]);
  }
  std::uint64_t hash = hash_mix(seed, bytes.size());
  std::uint64_t other = kSecond;
  std::uint64_t word[2];
  while (bytes.size() >= sizeof word) {
    std::memcpy(word, bytes.data(), sizeof word);
    hash = hash_mix(hash, word[0]);
    other = hash_mix(other, word[1]);
    bytes.remove_prefix(sizeof word);
  }
  word[0] = word[1] = 0;
  if (!bytes.empty()) {
    std::memcpy(word, bytes.data(), bytes.size());
  }
  return hash_mix(hash_mix(hash, word[0]), hash_mix(other, word[1]));
}

void NameTable::clear() {
  text_.clear();
  offsets_.clear();
  hashes_.clear();
  std::fill(slots_.begin(), slots_.end(), 0U);
}

std::uint32_t NameTable::intern(std::string_view name) {
  if (2 * (offsets_.size() + 1) > slots_.size()) {
    grow();
  }
  const std::uint64_t hash = hash_bytes(name);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    const std::uint32_t number = slots_[slot] - 1;
    if (hashes_[number] == hash && (*this)[number] == name) {
      return number;
    }
  }
  const auto number = static_cast<std::uint32_t>(offsets_.size());
  slots_[slot] = number + 1;
  offsets_.push_back(static_cast<std::uint32_t>(text_.size()));
  hashes_.push_back(hash);
  text_.append(name);
  text_.push_back('\0');
  return number;
}

void NameTable::grow() {
  slots_.assign(std::max<std::size_t>(256, 2 * slots_.size()), 0U);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t number = 0; number < hashes_.size(); ++number) {
    std::size_t slot = hashes_[number] & mask;
    while (slots_[slot] != 0) {
      slot = (slot + 1) & mask;
    }
    slots_[slot] = number + 1;
  }
}

}  // namespace orrery::chakra
