// SPDX-License-Identifier: Apache-2.0
/// Says which of its dimension's queues each phase takes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "compat/astra/phase.h"

namespace orrery::astra {

/// A dimension of a rank has `queues` queues. Phases take them in turn, and a rank goes on from one
/// collective to the next:
///
///   all          0 .. queues - 1; from the middle on rings and direct run anticlockwise
///   first_half   0 .. queues / 2 - 1 (the first of a single one), clockwise
///   second_half  the others, anticlockwise
///
/// Every chunk of a collective takes one turn for each of its pairs of dimension and share.
class QueueTurns {
 public:
  struct Turn {
    std::uint32_t queue = 0;  ///< of the rank
    bool anticlockwise = false;
  };

  QueueTurns(std::size_t ranks, std::size_t dimensions, std::uint32_t queues)
      : per_rank_(dimensions * kShares),
        queues_(queues),
        next_(queues > 1 ? ranks * per_rank_ : 0) {}

  /// Turns that the chunks of a collective which `rank` issues now start from; for of().
  template <class Phases>
  std::uint32_t begin(std::uint32_t rank, const Phases& phases, std::uint32_t chunks) {
    if (queues_ == 1) {
      return 0;
    }
    if (unused_.empty()) {
      unused_.push_back(static_cast<std::uint32_t>(begun_.size()));
      begun_.resize(begun_.size() + per_rank_);
    }
    const std::uint32_t block = unused_.back();
    unused_.pop_back();
    std::uint32_t* const own = next_.data() + rank * per_rank_;
    std::copy_n(own, per_rank_, begun_.begin() + block);
    for (const Phase& phase : phases) {
      own[place(phase)] = (own[place(phase)] + chunks) % range(phase.share);
    }
    return block;
  }
  void end(std::uint32_t block) {
    if (queues_ > 1) {
      unused_.push_back(block);
    }
  }

  Turn of(std::uint32_t block, const Phase& phase, std::uint32_t chunk) const {
    const bool second = phase.share == QueueShare::second_half;
    const auto first = static_cast<std::uint32_t>(phase.axis.queue) * queues_;
    if (queues_ == 1) {
      return {first, second};
    }
    const std::uint32_t turn =
        (begun_[block + place(phase)] + chunk) % range(phase.share) + (second ? queues_ / 2 : 0);
    return {first + turn, turn >= queues_ / 2};
  }

 private:
  static constexpr std::size_t kShares = 3;

  static std::size_t place(const Phase& phase) {
    return static_cast<std::size_t>(phase.axis.queue) * kShares +
           static_cast<std::size_t>(phase.share);
  }
  std::uint32_t range(QueueShare share) const {
    switch (share) {
      case QueueShare::all:
        return queues_;
      case QueueShare::first_half:
        return queues_ / 2;
      case QueueShare::second_half:
        return queues_ - queues_ / 2;
    }
    return queues_;
  }

  std::size_t per_rank_;
  std::uint32_t queues_;
  std::vector<std::uint32_t> next_;   ///< by rank, dimension and share
  std::vector<std::uint32_t> begun_;  ///< blocks of per_rank_
  std::vector<std::uint32_t> unused_;
};

}  // namespace orrery::astra
