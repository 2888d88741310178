// SPDX-License-Identifier: Apache-2.0
#include "serving/scheduler/kv_book.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>

namespace orrery::scheduler {
namespace {

/// The free blocks as a plain list, which the book's queue must be.
RC_GTEST_PROP(KvBook, GivesOutTheLeastRecentlyFreedBlock, ()) {
  const auto size = *rc::gen::inRange(1, 24);
  KvBook book(size, 1, true);
  std::deque<BlockIndex> free(static_cast<std::size_t>(size));
  for (BlockIndex block = 0; block < size; ++block) {
    free[static_cast<std::size_t>(block)] = block;
  }
  std::vector<RequestState> requests(4);
  std::vector<std::vector<BlockIndex>> held(requests.size());
  for (RequestState& request : requests) {
    request.known = 1000;  // as many as are found may be used
  }
  for (int step = 0; step < 120; ++step) {
    const auto index = *rc::gen::inRange<std::size_t>(0, requests.size());
    RequestState& request = requests[index];
    std::vector<BlockIndex>& blocks = held[index];
    const auto number = static_cast<RequestIndex>(index);
    if (!request.blocks.empty() && *rc::gen::inRange(0, 3) == 0) {  // preempted: it may come back
      request.computed = static_cast<std::int64_t>(blocks.size());
      free.insert(free.end(), blocks.rbegin(), blocks.rend());
      blocks.clear();
      book.release(request, true);
    } else {
      const KvBook::Hit hit =
          request.blocks.empty() ? book.find(request, number) : KvBook::Hit{.blocks = {}};
      const auto more = *rc::gen::inRange<std::size_t>(1, 6);
      const std::size_t wanted = std::max(blocks.size(), hit.blocks.size()) + more;
      const bool given = request.blocks.empty()
                             ? book.reserve(request, number, hit, static_cast<std::int64_t>(wanted))
                             : book.reserve(request, number, static_cast<std::int64_t>(wanted));
      RC_ASSERT(given == (free.size() >= wanted - blocks.size()));
      if (given) {
        for (const BlockIndex block : hit.blocks) {  // its own, still free
          free.erase(std::find(free.begin(), free.end(), block));
          blocks.push_back(block);
        }
        while (blocks.size() < wanted) {
          blocks.push_back(free.front());
          free.pop_front();
        }
      }
    }
    RC_ASSERT(request.blocks == blocks);
    RC_ASSERT(book.free() == std::ssize(free));
    RC_ASSERT(book.consistent());
  }
}

}  // namespace
}  // namespace orrery::scheduler
