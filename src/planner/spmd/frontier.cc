// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/frontier.h"

namespace orrery::spmd {
namespace {

constexpr std::size_t kFirstTable = 64;

std::uint64_t hash_of(const Key& key) {
  std::uint64_t hash = 0;
  for (const std::uint64_t word : key.words) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15U;  // 2^64 / golden ratio
    hash ^= hash >> 32;
  }
  return hash;
}

/// Returns whether `a` can stand for `b`.
bool stands_for(const StageRule& rule, const Entry& a, const Entry& b) {
  return (a.full || !b.full) && no_later(rule, a.clock, b.clock);
}

}  // namespace

std::size_t Frontier::slot_of(const Key& key) const {
  std::size_t slot = hash_of(key) & (table_.size() - 1);
  while (table_[slot] >= 0 && !(keys_[static_cast<std::size_t>(table_[slot])] == key)) {
    slot = (slot + 1) & (table_.size() - 1);
  }
  return slot;
}

void Frontier::grow() {
  table_.assign(table_.empty() ? kFirstTable : 4 * table_.size(), -1);
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    table_[slot_of(keys_[i])] = static_cast<int>(i);
  }
}

void Frontier::add(const StageRule& rule, const Key& key, const Entry& entry) {
  if (2 * keys_.size() >= table_.size()) {
    grow();
  }
  int& state = table_[slot_of(key)];
  if (state < 0) {
    state = static_cast<int>(keys_.size());
    keys_.push_back(key);
    first_.push_back(-1);
  }
  int* link = &first_[static_cast<std::size_t>(state)];
  for (int i = *link; i >= 0; i = entries_[static_cast<std::size_t>(i)].next) {
    if (stands_for(rule, entries_[static_cast<std::size_t>(i)], entry)) {
      return;
    }
  }
  while (*link >= 0) {
    Entry& other = entries_[static_cast<std::size_t>(*link)];
    if (stands_for(rule, entry, other)) {
      *link = other.next;
    } else {
      link = &other.next;
    }
  }
  *link = static_cast<int>(entries_.size());
  entries_.push_back(entry);
}

int Frontier::find(const Key& key) const {
  for (int i = 0; i < states(); ++i) {
    if (keys_[static_cast<std::size_t>(i)] == key) {
      return i;
    }
  }
  return -1;
}

int Frontier::find(int state, const Clock& clock, bool full) const {
  for (int i = first(state); i >= 0; i = entry(i).next) {
    const Entry& e = entry(i);
    if (e.clock.elapsed == clock.elapsed && e.clock.debt == clock.debt && e.full == full) {
      return i;
    }
  }
  return -1;
}

int Frontier::entries_of(int state) const {
  int count = 0;
  for (int i = first(state); i >= 0; i = entry(i).next) {
    ++count;
  }
  return count;
}

bool Frontier::repeats(const Frontier& before, Time shift) const {
  if (states() != before.states()) {
    return false;
  }
  for (int state = 0; state < states(); ++state) {
    // The order of states follows from that of equal work, so it repeats as well.
    if (!(key(state) == before.key(state)) || entries_of(state) != before.entries_of(state)) {
      return false;
    }
    for (int i = first(state); i >= 0; i = entry(i).next) {
      const Clock then{entry(i).clock.elapsed - shift, entry(i).clock.debt};
      if (before.find(state, then, entry(i).full) < 0) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace orrery::spmd
