// SPDX-License-Identifier: Apache-2.0
#include "serving/scheduler/kv_book.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace orrery::scheduler {

KvBook::KvBook(std::int64_t blocks, std::int64_t block_size, bool prefix_cache)
    : blocks_(blocks), block_size_(block_size), prefix_cache_(prefix_cache), free_(blocks) {}

void KvBook::push_free(BlockIndex block) {
  if (queued_ == queue_.size()) {
    compact();
  }
  queue_[tail_] = block;
  at(block).place = static_cast<std::int32_t>(tail_);
  tail_ = after(tail_);
  ++queued_;
  ++free_;
}

void KvBook::compact() {
  constexpr std::size_t kLeast = 64;
  std::vector<BlockIndex> kept;
  for (std::size_t left = queued_; left > 0; --left, head_ = after(head_)) {
    if (const BlockIndex block = queue_[head_]; block != kTaken) {
      at(block).place = static_cast<std::int32_t>(kept.size());
      kept.push_back(block);
    }
  }
  head_ = 0;
  tail_ = queued_ = kept.size();
  kept.resize(std::max(kLeast, 2 * kept.size()));
  queue_ = std::move(kept);
}

BlockIndex KvBook::pop_free() {
  --free_;
  if (queued_ == 0 || (prefix_cache_ && std::ssize(pool_) < blocks_)) {
    pool_.emplace_back();
    keys_.resize(prefix_cache_ ? pool_.size() : 0);
    return static_cast<BlockIndex>(pool_.size() - 1);
  }
  if (!prefix_cache_) {
    tail_ = before(tail_);
    --queued_;
    return queue_[tail_];
  }
  BlockIndex block = kTaken;
  while (block == kTaken) {
    block = queue_[head_];
    head_ = after(head_);
    --queued_;
  }
  if (keyed_ > 0 && key_at(block) != 0) {
    const std::uint64_t key = std::exchange(key_at(block), 0);
    --keyed_;
    const auto found = found_.find(key);
    if (found != found_.end() && found->second == block) {
      found_.erase(found);
      if (changes_ != nullptr) {
        changes_->push_back({.key = key});
      }
    }
  }
  return block;
}

void KvBook::take(BlockIndex block) {
  if (at(block).references++ == 0) {
    queue_[static_cast<std::size_t>(at(block).place)] = kTaken;
    --free_;
  }
}

std::uint64_t KvBook::key_of(const SharedPrefix& prefix, std::int64_t index) const {
  const std::int64_t end = (index + 1) * block_size_;
  if (end > prefix.tokens) {
    return 0;
  }
  // A block that several ids share has the content of all up to the last of them.
  const std::int64_t id = (end - 1) / prefix.id_tokens;
  const std::uint64_t key =
      mixed(prefix.ids[static_cast<std::size_t>(id)] ^ mixed(static_cast<std::uint64_t>(index)));
  return key == 0 ? 1 : key;
}

KvBook::Hit KvBook::find(const RequestState& request, RequestIndex index) const {
  Hit hit;
  if (!prefix_cache_) {
    return hit;
  }
  const std::int64_t most = (request.known - 1) / block_size_;
  const std::int64_t own = request.former_tokens / block_size_;
  for (std::int64_t i = 0; i < most; ++i) {
    BlockIndex block = -1;
    if (i < own) {
      const BlockIndex candidate = request.former[static_cast<std::size_t>(i)];
      if (at(candidate).owner == index && at(candidate).position == i) {
        block = candidate;
      }
    }
    if (block < 0) {
      const std::uint64_t key = key_of(request.spec.prefix, i);
      const auto found = key == 0 ? found_.end() : found_.find(key);
      if (found == found_.end()) {
        break;
      }
      block = found->second;
    }
    hit.resting += at(block).references == 0 ? 1 : 0;
    hit.blocks.push_back(block);
  }
  return hit;
}

bool KvBook::grow(RequestState& request, RequestIndex index, std::int64_t tokens) {
  const auto whole = static_cast<std::size_t>(request.spec.fixed_blocks);
  const auto held = static_cast<std::int64_t>(request.blocks.size() + request.fixed.size());
  const std::int64_t more = blocks_of(request.spec, tokens) - held;
  if (more > free_) {
    return false;
  }
  while (request.fixed.size() < whole) {
    request.fixed.push_back(give(kNobody, 0));
  }
  const auto length = static_cast<std::size_t>(blocks_of(tokens));
  while (request.blocks.size() < length) {
    request.blocks.push_back(give(index, request.blocks.size()));
  }
  return true;
}

BlockIndex KvBook::give(RequestIndex owner, std::size_t position) {
  const BlockIndex block = pop_free();
  Block& taken = at(block);
  taken.references = 1;
  taken.owner = owner;
  taken.position = static_cast<std::int32_t>(position);
  return block;
}

bool KvBook::reserve(RequestState& request, RequestIndex index, const Hit& hit,
                     std::int64_t tokens) {
  assert(request.blocks.empty() && "a hit is what a request starts with");
  const auto hits = static_cast<std::int64_t>(hit.blocks.size());
  if (blocks_of(request.spec, tokens) - hits > free_ - hit.resting) {
    return false;
  }
  for (const BlockIndex block : hit.blocks) {
    take(block);
  }
  request.blocks = hit.blocks;
  const bool enough = reserve(request, index, tokens);
  assert(enough && "counted above");
  return enough;
}

void KvBook::publish_full(const RequestState& request, std::int64_t tokens) {
  const std::int64_t full = std::min(tokens, request.spec.prefix.tokens) / block_size_;
  const std::size_t known = changes_ == nullptr ? 0 : changes_->size();
  for (std::int64_t i = full - 1; i >= 0; --i) {
    const BlockIndex block = request.blocks[static_cast<std::size_t>(i)];
    std::uint64_t& key = key_at(block);
    if (key != 0) {
      break;  // and so have all before it
    }
    key = key_of(request.spec.prefix, i);
    ++keyed_;
    if (found_.try_emplace(key, block).second && changes_ != nullptr) {
      const std::uint64_t parent = i == 0 ? 0 : key_of(request.spec.prefix, i - 1);
      changes_->push_back({true, key, parent, at(block).owner, i});
    }
  }
  if (changes_ != nullptr) {  // a block after the one before it
    std::reverse(changes_->begin() + static_cast<std::ptrdiff_t>(known), changes_->end());
  }
}

void KvBook::release(RequestState& request, bool keep_former) {
  for (const BlockIndex block : request.fixed) {
    at(block).references = 0;
    push_free(block);
  }
  request.fixed.clear();
  for (std::size_t i = request.blocks.size(); i-- > 0;) {
    const BlockIndex block = request.blocks[i];
    if (--at(block).references == 0) {
      push_free(block);
    }
  }
  if (keep_former && prefix_cache_) {
    request.former = std::move(request.blocks);
    request.former_tokens = request.computed;
  } else {
    request.former = {};
    request.former_tokens = 0;
  }
  request.blocks.clear();
}

bool KvBook::consistent() const {
  std::int64_t queued = 0;
  std::size_t place = head_;
  for (std::size_t left = queued_; left > 0; --left, place = after(place)) {
    const BlockIndex block = queue_[place];
    if (block == kTaken) {
      continue;
    }
    ++queued;
    if (at(block).references != 0 || at(block).place != static_cast<std::int32_t>(place)) {
      return false;
    }
  }
  const bool counted = std::all_of(pool_.begin(), pool_.end(),
                                   [](const Block& block) { return block.references >= 0; });
  const auto held = std::count_if(pool_.begin(), pool_.end(),
                                  [](const Block& block) { return block.references > 0; });
  return counted && queued + held == std::ssize(pool_) && held + free_ == blocks_ && place == tail_;
}

}  // namespace orrery::scheduler
