// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "collective/algorithm.h"

namespace orrery::collective {
namespace {

/// The lower power of two takes part; the others hand their buffer to a partner before and get the
/// sum after (Thakur, Rabenseifner, Gropp 2005, section 4.1).
std::optional<StepCount> halving_counts(graph::CollectiveKind kind, std::int64_t members,
                                        const Fabric& fabric) {
  const bool sums = kind == graph::CollectiveKind::all_reduce;
  const bool power = std::has_single_bit(static_cast<std::uint64_t>(members));
  if (!sums && kind != graph::CollectiveKind::all_gather &&
      kind != graph::CollectiveKind::reduce_scatter) {
    return std::nullopt;
  }
  if (!power && !sums) {
    return std::nullopt;
  }
  const auto core = static_cast<double>(std::bit_floor(static_cast<std::uint64_t>(members)));
  const double rounds = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(members))) - 1;
  const double passes = passes_of(kind);
  StepCount count{.steps = passes * rounds, .load = passes * (core - 1) / core};
  if (fabric.form == Fabric::Form::complete) {  // one partner, hence one link, at a time
    count.load *= fabric.links;
  }
  if (fabric.is_grid()) {
    // Partners 2^j apart exchange S/2^(j+1); 2^j such messages cross the middle of a block: S/2.
    count.load = passes * rounds * fabric.links / 2;
    count.further_hops = passes * std::max(0.0, fabric.span - rounds);
  }
  if (!power) {
    const double one_link = fabric.form == Fabric::Form::switched ? 1 : fabric.links;
    count.steps += 2;
    count.further_hops += fabric.is_grid() ? 2 * (fabric.hops - 1) : 0;
    count.load += 2 * one_link;
  }
  return count;
}

/// Recursive vector halving with distance doubling, and back, on the first `core` of the ranks; the
/// others, odd ones of the first pairs, hand over before and receive after. Block b of the halving
/// belongs to core rank b.
class HalvingDoubling {
 public:
  HalvingDoubling(graph::CollectiveKind kind, int ranks)
      : schedule_{.kind = kind, .ranks = ranks, .messages = {}},
        core_(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))),
        folded_(ranks - core_),
        arrived_(static_cast<std::size_t>(ranks)) {
    schedule_.blocks = core_;
    schedule_.block_share = 1.0 / core_;
  }

  MessageSchedule run() {
    fold(true);
    if (reduces(schedule_.kind)) {
      for (int distance = 1; distance < core_; distance *= 2) {
        halve(distance);
      }
    }
    if (gathers(schedule_.kind)) {
      for (int distance = core_ / 2; distance >= 1; distance /= 2) {
        double_up(distance);
      }
    }
    fold(false);
    return std::move(schedule_);
  }

 private:
  /// Returns the rank that plays core rank c: the even one of a pair, or a rank after the pairs.
  int rank_of(int c) const { return c < folded_ ? 2 * c : c + folded_; }

  void fold(bool before) {
    std::vector<int> all(static_cast<std::size_t>(core_));
    std::iota(all.begin(), all.end(), 0);
    for (int pair = 0; pair < folded_; ++pair) {
      const int odd = 2 * pair + 1;
      send(before ? odd : odd - 1, before ? odd - 1 : odd, before, all);
    }
    next_step();
  }

  /// Partners `distance` apart agree on the blocks that both still hold (same low bits as both);
  /// each sends the half that the partner keeps.
  void halve(int distance) {
    for (int c = 0; c < core_; ++c) {
      const int partner = c ^ distance;
      send(rank_of(c), rank_of(partner), true, matching(partner, 2 * distance));
    }
    next_step();
  }
  void double_up(int distance) {
    for (int c = 0; c < core_; ++c) {
      send(rank_of(c), rank_of(c ^ distance), false, matching(c, 2 * distance));
    }
    next_step();
  }
  /// Blocks that equal `c` modulo `modulus`.
  std::vector<int> matching(int c, int modulus) const {
    std::vector<int> blocks;
    for (int b = c % modulus; b < core_; b += modulus) {
      blocks.push_back(b);
    }
    return blocks;
  }

  /// A rank that still takes over a folded rank's buffer is not ready for its partner.
  void send(int sender, int receiver, bool reduce, std::vector<int> blocks) {
    std::vector<int> after = arrived_[static_cast<std::size_t>(sender)];
    if (folded_ > 0) {
      const std::vector<int>& ready = arrived_[static_cast<std::size_t>(receiver)];
      after.insert(after.end(), ready.begin(), ready.end());
    }
    const int index = schedule_.add({.sender = sender,
                                     .receiver = receiver,
                                     .step = step_,
                                     .reduce = reduce,
                                     .blocks = std::move(blocks),
                                     .after = std::move(after)});
    arriving_.emplace_back(receiver, index);
  }
  /// Begins the next step, which waits for what arrived in this step and before.
  void next_step() {
    step_ += arriving_.empty() ? 0 : 1;
    for (const auto& [receiver, index] : arriving_) {
      arrived_[static_cast<std::size_t>(receiver)].push_back(index);
    }
    arriving_.clear();
  }

  MessageSchedule schedule_;
  int core_;
  int folded_;
  int step_ = 0;
  std::vector<std::vector<int>> arrived_;
  std::vector<std::pair<int, int>> arriving_;
};

std::optional<MessageSchedule> halving_messages(graph::CollectiveKind kind,
                                                std::span<const int> counts, int /*chunks*/) {
  const int ranks = ranks_of(counts);
  const bool power = std::has_single_bit(static_cast<unsigned>(ranks));
  if (kind == graph::CollectiveKind::all_reduce || (power && (reduces(kind) || gathers(kind)))) {
    return HalvingDoubling(kind, ranks).run();
  }
  return std::nullopt;
}

/// Partners 2^j apart exchange S/2^(j+1) in blocks of 2^(j+1); the busiest link of a step has S/2.
Gap halving_load(graph::CollectiveKind /*kind*/, std::int64_t members, std::int64_t gap) {
  double steps = 0;
  double busy = 0;
  for (std::int64_t block = 2; block <= members; block *= 2) {
    const std::int64_t at = gap % block;
    const std::int64_t pairs = std::max<std::int64_t>(0, std::min(at + 1, block - 1 - at));
    busy += static_cast<double>(pairs) / static_cast<double>(block);
    steps += 0.5;
  }
  const bool power = (members & (members - 1)) == 0;  // others fold before and after
  return power ? Gap{busy / steps, busy / steps} : Gap{};
}

}  // namespace

AlgorithmRow halving_doubling_row() {
  return {.value = CollectiveAlgorithm::halving_doubling,
          .name = "halving_doubling",
          .sentence = "2 log2 p steps, halving sizes",
          .counts = halving_counts,
          .by_dimension = [](graph::CollectiveKind kind) { return !exchanges(kind); },
          .messages = halving_messages,
          .load = halving_load,
          .left_out = [](graph::CollectiveKind, const std::vector<Extent>&) -> std::string_view {
            return "NCCL does not have it";
          }};
}

}  // namespace orrery::collective
