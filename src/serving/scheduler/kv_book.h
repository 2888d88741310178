// SPDX-License-Identifier: Apache-2.0
/// Blocks of the KV cache: who holds which, which are free, and what free ones still contain.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "serving/scheduler/request.h"

namespace orrery::scheduler {

/// A KvChange says of a block with shared content that it is found from now on, or no longer.
struct KvChange {
  bool stored = false;
  std::uint64_t key = 0;     ///< of its content and of all before it
  std::uint64_t parent = 0;  ///< of the block before it; 0: there is none
  RequestIndex request = -1;
  std::int64_t position = 0;  ///< which block of the request it is
};

/// Keeps the book of KV blocks as vLLM's block pool does: free blocks stand in a queue, least
/// recently freed first; a request that ends gives its blocks back last block first, so that the
/// beginning of a sequence stays longest. A free block keeps its content until it is given out
/// again, and a request that begins with this content takes it back (prefix cache). Only full
/// blocks are found, and never a request's last token, which must be computed. Without a cache
/// nothing tells free blocks apart, and the last one freed is given out first.
///
/// Blocks that were never given out are a number: a book takes memory for those in use only.
///
/// Every operation is exact and without order of hashing: the map is only looked up.
class KvBook {
 public:
  /// Requires blocks >= 0, block_size >= 1.
  KvBook(std::int64_t blocks, std::int64_t block_size, bool prefix_cache);

  std::int64_t blocks() const { return blocks_; }
  std::int64_t block_size() const { return block_size_; }
  std::int64_t free() const { return free_; }
  std::int64_t used() const { return blocks() - free_; }
  bool caches() const { return prefix_cache_; }

  /// Returns the number of blocks that `tokens` of one request fill.
  std::int64_t blocks_of(std::int64_t tokens) const {
    return (tokens + block_size_ - 1) / block_size_;
  }

  /// Returns the same with the blocks that it has whatever its length.
  std::int64_t blocks_of(const RequestSpec& spec, std::int64_t tokens) const {
    return blocks_of(tokens) + spec.fixed_blocks;
  }

  /// A Hit is what a request without blocks finds: full blocks in order, at most of known - 1
  /// tokens.
  struct Hit {
    std::vector<BlockIndex> blocks;
    std::int64_t resting = 0;  ///< of them, those that are free
  };
  Hit find(const RequestState& request, RequestIndex index) const;

  /// Gives the request blocks for `tokens` in all. False, and nothing changed, if there are too
  /// few.
  bool reserve(RequestState& request, RequestIndex index, std::int64_t tokens) {
    return tokens <= static_cast<std::int64_t>(request.blocks.size()) * block_size_ ||
           grow(request, index, tokens);
  }
  /// Reserves the same for a request without blocks that starts with a hit.
  bool reserve(RequestState& request, RequestIndex index, const Hit& hit, std::int64_t tokens);
  /// Returns the key of the content of the prefix's block `index` and of all before it; 0: not
  /// shared.
  std::uint64_t key_of(const SharedPrefix& prefix, std::int64_t index) const;
  /// Blocks up to `tokens` tokens are full of known content: others may find it.
  void publish(const RequestState& request, std::int64_t tokens) {
    if (prefix_cache_ && request.spec.prefix.tokens > 0) {
      publish_full(request, tokens);
    }
  }
  /// Appends every further change to the list, which outlives the book.
  void record(std::vector<KvChange>& changes) { changes_ = &changes; }
  /// Releases the request's blocks, the last first. With keep_former the request may find its own
  /// again.
  void release(RequestState& request, bool keep_former);

  /// The sums of all blocks are right; for tests.
  bool consistent() const;

 private:
  struct Block {
    std::int32_t references = 0;
    std::int32_t place = 0;     ///< in the queue of free blocks
    RequestIndex owner = -1;    ///< who wrote the content
    std::int32_t position = 0;  ///< which block of the owner's it was
  };
  static constexpr BlockIndex kTaken = -1;
  static constexpr RequestIndex kNobody = -1;

  Block& at(BlockIndex block) { return pool_[static_cast<std::size_t>(block)]; }
  const Block& at(BlockIndex block) const { return pool_[static_cast<std::size_t>(block)]; }
  std::uint64_t& key_at(BlockIndex block) { return keys_[static_cast<std::size_t>(block)]; }
  std::size_t after(std::size_t place) const { return place + 1 == queue_.size() ? 0 : place + 1; }
  std::size_t before(std::size_t place) const { return (place == 0 ? queue_.size() : place) - 1; }
  bool grow(RequestState& request, RequestIndex index, std::int64_t tokens);
  /// Returns a free block with one holder.
  BlockIndex give(RequestIndex owner, std::size_t position);
  void publish_full(const RequestState& request, std::int64_t tokens);
  void push_free(BlockIndex block);
  BlockIndex pop_free();
  void take(BlockIndex block);
  /// Removes places of blocks that were taken, and makes as many more as there are free blocks.
  void compact();

  std::int64_t blocks_;
  std::int64_t block_size_;
  bool prefix_cache_;
  std::int64_t free_ = 0;
  std::vector<Block> pool_;          ///< those that were given out once
  std::vector<std::uint64_t> keys_;  ///< by block, of shared content; 0: none
  std::int64_t keyed_ = 0;           ///< blocks that have one
  /// Free blocks from head_ on, around: a walk through memory in order, where links from block to
  /// block would miss the processor's caches at every step. kTaken where one left from between.
  std::vector<BlockIndex> queue_;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
  std::size_t queued_ = 0;  ///< places in use, of taken ones too
  std::unordered_map<std::uint64_t, BlockIndex> found_;
  std::vector<KvChange>* changes_ = nullptr;
};

}  // namespace orrery::scheduler
