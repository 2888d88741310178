// SPDX-License-Identifier: Apache-2.0
/// One rank of the pipeline (pipeline.h): three threads, and a counter for every tile.
#pragma once

#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "collective/tiles/pipeline.h"

namespace orrery::tiles {

/// Operands are the matrices that all ranks multiply.
class Operands {
 public:
  explicit Operands(const Problem& problem);
  /// Computes the rows of tile `tile` of the rank's summand.
  void multiply(std::int64_t rank, std::int64_t tile, float* out) const;
  /// Returns the sum in the order of the ring, added up by one thread.
  std::vector<float> sum() const;

 private:
  Problem problem_;
  std::vector<std::vector<float>> left_;   ///< by rank
  std::vector<std::vector<float>> right_;  ///< by rank
};

using Clock = std::chrono::steady_clock;

class Rank {
 public:
  /// `in` and `out` are sockets of the ring; both outlive it.
  Rank(const Problem& problem, const Operands& operands, std::int64_t number, int in, int out);

  struct Moments {
    Clock::time_point started, made, reduced, gathered;
  };
  /// Runs the producer, which computes, waits for its chunk, starts the all-gather and waits for
  /// all of it.
  Moments produce(std::barrier<>& all, bool overlaps);
  /// Runs the engine, which moves what counters trigger, until all has been sent.
  void send();
  /// Takes what arrives, until all has.
  void receive();

  const std::vector<float>& result() const { return result_; }
  bool failed() const { return failed_; }
  std::int64_t updates() const { return updates_; }
  std::int64_t triggered() const { return triggered_; }

 private:
  struct Header {
    std::uint32_t tile = 0;
    std::uint32_t gathers = 0;
  };

  /// Tiles in the order in which this rank makes them.
  std::int64_t made_at(std::int64_t place) const;
  bool is_first(std::int64_t tile) const { return chunk_of(tile) == before(number_); }
  bool is_own(std::int64_t tile) const { return chunk_of(tile) == number_; }
  std::int64_t chunk_of(std::int64_t tile) const { return tile / problem_.tiles; }
  std::int64_t before(std::int64_t rank) const {
    return (rank + problem_.ranks - 1) % problem_.ranks;
  }
  float* at(std::vector<float>& values, std::int64_t tile) const {
    return values.data() + tile * elements_;
  }

  void update(std::int64_t tile);
  void complete(std::int64_t tile);
  void enqueue(Header header);
  void finish(std::int64_t& left);
  void wait_for(const std::int64_t& left);
  void fail();

  const Problem& problem_;
  const Operands& operands_;
  std::int64_t number_;
  int in_;
  int out_;
  std::int64_t elements_;  ///< of a tile
  std::vector<float> local_;
  std::vector<float> arrived_;
  std::vector<float> result_;
  std::vector<std::atomic<int>> counters_;  ///< by tile
  std::atomic<std::int64_t> updates_ = 0;
  std::atomic<std::int64_t> triggered_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Header> ready_;  ///< guarded by mutex_, as the rest
  std::int64_t own_left_;     ///< tiles of its chunk that are not summed
  std::int64_t gather_left_;  ///< tiles of others that have not come
};

}  // namespace orrery::tiles
