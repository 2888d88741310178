// SPDX-License-Identifier: Apache-2.0
#include "serving/kv_tiers.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/reader.h"
#include "base/split.h"

namespace orrery::serving {
namespace {

/// A tier of the machine by its name; no capacity: it is no such tier.
KvTier tier_named(std::string_view name, const machine::Machine& machine) {
  KvTier tier{.name = std::string(name)};
  const std::vector<compute::MemoryTier>& memory = machine.device.memory;
  for (std::size_t i = 1; i < memory.size(); ++i) {
    if (memory[i].name == name) {
      tier.capacity = memory[i].capacity;
      tier.bandwidth = memory[i].bandwidth;
      tier.latency = memory[i].latency;
    }
  }
  if (name == kRemoteTier && !machine.network.empty()) {
    const topology::NetworkDimension& way = machine.network.back();
    tier.bandwidth = way.bandwidth;
    tier.latency = way.latency + way.message_overhead;
  }
  return tier;
}

}  // namespace

Result<std::vector<NamedTier>> named_tiers(const std::string& text) {
  std::vector<NamedTier> tiers;
  Error error;
  if (text.empty()) {
    return tiers;
  }
  for (const std::string_view part : split_at(text, ',')) {
    const std::size_t colon = part.find(':');
    NamedTier tier{.name = std::string(part.substr(0, colon)), .size = {}, .store = {}};
    if (colon != std::string_view::npos) {
      const std::string_view size = part.substr(colon + 1);
      const std::size_t at = size.find('@');
      tier.size = parse_bytes(size.substr(0, at)).value_or(Bytes(0));
      if (at != std::string_view::npos) {
        tier.store =
            parse_value<Bandwidth>(std::string(size.substr(at + 1))).value_or(Bandwidth(0));
      }
    }
    if (tier.name.empty() || tier.size == Bytes(0)) {
      error.add({"", "cache.tiers", std::string(part), "a name, or one and a size as 'host:2 TB'"});
    } else if (tier.store && (*tier.store == Bandwidth(0) || tier.name != kRemoteTier)) {
      error.add({"", "cache.tiers", std::string(part),
                 "a rate above 0 behind the size of a store, as 'remote:2 TB@20 GB/s'"});
    }
    tiers.push_back(std::move(tier));
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return tiers;
}

Result<std::vector<KvTier>> kv_tiers_of(const std::string& text, const machine::Machine& machine) {
  auto named = named_tiers(text);
  if (!named) {
    return fail(std::move(named.error()));
  }
  std::string known(kRemoteTier);
  for (std::size_t i = 1; i < machine.device.memory.size(); ++i) {
    known += ", " + machine.device.memory[i].name;
  }
  std::vector<KvTier> tiers;
  Error error;
  for (const NamedTier& part : *named) {
    KvTier tier = tier_named(part.name, machine);
    tier.capacity = part.size.value_or(tier.capacity);
    tier.store = part.store.value_or(Bandwidth(0));
    if (tier.bandwidth == Bandwidth(0)) {
      error.add({"", "cache.tiers", part.name, "tiers of the machine: " + known});
    } else if (tier.capacity <= Bytes(0)) {
      error.add({"", "cache.tiers", part.name, "a name and a size such as 'remote:2 TB'"});
    }
    tiers.push_back(std::move(tier));
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return tiers;
}

void KvStore::expect(Time at, std::vector<std::uint64_t> keys, Bytes block) {
  coming_.push({.at = at, .order = order_++, .block = block, .keys = std::move(keys)});
}

void KvStore::advance(Time now) {
  for (; next() <= now && !coming_.empty(); coming_.pop()) {
    // Last block first: where the tier is full the beginning of a sequence stays longest.
    const Coming& there = coming_.top();
    for (auto key = there.keys.rbegin(); key != there.keys.rend(); ++key) {
      use(*key, there.block);
    }
  }
}

Time KvStore::moved(Time begin, Bytes bytes) {
  if (own_ == Bandwidth(0)) {
    return begin;
  }
  free_ = std::max(begin, free_) + bytes / own_;
  return free_;
}

KvTiers::KvTiers(const std::vector<KvTier>& tiers, Bytes block, std::int64_t ranks)
    : block_(block), ranks_(ranks) {
  for (const KvTier& tier : tiers) {
    tiers_.push_back({.is = tier,
                      .store = std::make_shared<KvStore>(tier.capacity, tier.store),
                      .block = block,
                      .coming = {}});
  }
}

void KvTiers::share(const std::shared_ptr<KvStore>& store, Bytes block) {
  for (Tier& tier : tiers_) {
    if (tier.is.name == kRemoteTier) {
      tier.store = store;
      tier.block = block;
    }
  }
}

bool KvTiers::holds(std::uint64_t key) const {
  return std::any_of(tiers_.begin(), tiers_.end(),
                     [&](const Tier& tier) { return tier.store->holds(key); });
}

Time KvTiers::next() const {
  Time first = copies_.empty() ? Time::max() : copies_.top().end;
  for (const Tier& tier : tiers_) {
    first = std::min(first, tier.store->next());
  }
  return first;
}

Time KvTiers::copied(Tier& tier, Time at, std::size_t blocks) const {
  const Bytes bytes = block_ * static_cast<std::int64_t>(blocks);
  const Time begin = std::max(at, tier.free);
  tier.free = tier.is.latency +
              std::max(begin + bytes / tier.is.bandwidth, tier.store->moved(begin, bytes * ranks_));
  return tier.free;
}

void KvTiers::fetch(Time at, const scheduler::Fetch& fetch) {
  std::vector<std::size_t> blocks(tiers_.size(), 0);
  for (const std::uint64_t key : fetch.keys) {
    const auto tier = std::find_if(tiers_.begin(), tiers_.end(),
                                   [&](const Tier& each) { return each.store->holds(key); });
    tier->store->use(key, tier->block);
    ++blocks[static_cast<std::size_t>(tier - tiers_.begin())];
  }
  Time end = at;
  std::size_t last = 0;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (blocks[i] > 0) {
      end = std::max(end, copied(tiers_[i], at, blocks[i]));
      last = i;
    }
  }
  copies_.push({.end = end,
                .order = order_++,
                .tier = last,
                .request = fetch.request,
                .fetches = true,
                .asked = at,
                .keys = {}});
}

bool KvTiers::write(Time at, scheduler::RequestIndex request,
                    const std::vector<std::uint64_t>& keys) {
  return write_to(0, at, request, keys);
}

bool KvTiers::write_to(std::size_t index, Time at, scheduler::RequestIndex request,
                       const std::vector<std::uint64_t>& keys) {
  Tier& tier = tiers_[index];
  Copy copy{.order = order_, .tier = index, .request = request, .asked = at, .keys = {}};
  for (const std::uint64_t key : keys) {
    if (!tier.store->holds(key) && tier.coming.insert(key).second) {
      copy.keys.push_back(key);
    }
  }
  if (copy.keys.empty()) {
    return false;
  }
  ++order_;
  copy.end = copied(tier, at, copy.keys.size());
  tier.store->expect(copy.end, copy.keys, tier.block);
  copies_.push(std::move(copy));
  return true;
}

std::vector<KvTiers::Done> KvTiers::advance(Time now) {
  std::vector<Done> done;
  const auto land = [&](Time until) {
    for (const Tier& tier : tiers_) {
      tier.store->advance(until);
    }
  };
  while (!copies_.empty() && copies_.top().end <= now) {
    const Copy copy = copies_.top();
    copies_.pop();
    land(copy.end);
    if (copy.request >= 0) {
      done.push_back({.request = copy.request, .fetched = copy.fetches, .asked = copy.asked});
    }
    if (copy.fetches) {
      continue;
    }
    Tier& tier = tiers_[copy.tier];
    for (const std::uint64_t key : copy.keys) {
      tier.coming.erase(key);
    }
    written_ += static_cast<std::int64_t>(copy.keys.size());
    if (copy.tier + 1 < tiers_.size()) {
      write_to(copy.tier + 1, copy.end, -1, copy.keys);
    }
  }
  land(now);
  return done;
}

}  // namespace orrery::serving
