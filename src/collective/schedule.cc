// SPDX-License-Identifier: Apache-2.0
#include "collective/schedule.h"

#include <bit>
#include <functional>
#include <numeric>
#include <utility>

#include "collective/tree_schedule.h"

namespace orrery::collective {
namespace {

using Kind = graph::CollectiveKind;
using Algorithm = CollectiveAlgorithm;

MessageSchedule sharded(Kind kind, int ranks) {
  return {
      .kind = kind, .ranks = ranks, .blocks = ranks, .block_share = 1.0 / ranks, .messages = {}};
}

int add(MessageSchedule& schedule, Message message) {
  schedule.messages.push_back(std::move(message));
  return static_cast<int>(schedule.messages.size()) - 1;
}

bool reduces(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce_scatter;
}
bool gathers(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::all_gather;
}

/// Rank r passes on in step s what it received in step s-1. Reducing starts one block ahead, so
/// that after p-1 steps rank r owns block r; gathering starts with it.
MessageSchedule ring(Kind kind, int ranks) {
  MessageSchedule schedule = sharded(kind, ranks);
  const int passes = (reduces(kind) ? 1 : 0) + (gathers(kind) ? 1 : 0);
  schedule.messages.reserve(static_cast<std::size_t>(passes) * static_cast<std::size_t>(ranks) *
                            static_cast<std::size_t>(ranks - 1));
  std::vector<int> arrived(static_cast<std::size_t>(ranks), -1);
  int step = 0;
  const auto pass = [&](bool reduce) {
    for (int s = 0; s < ranks - 1; ++s, ++step) {
      std::vector<int> arriving(arrived.size(), -1);
      for (int r = 0; r < ranks; ++r) {
        const int block = (r - s - (reduce ? 1 : 0) + 2 * ranks) % ranks;
        const int before = arrived[static_cast<std::size_t>(r)];
        const int next = (r + 1) % ranks;
        arriving[static_cast<std::size_t>(next)] =
            add(schedule, {.sender = r,
                           .receiver = next,
                           .step = step,
                           .reduce = reduce,
                           .blocks = {block},
                           .after = before < 0 ? std::vector<int>{} : std::vector<int>{before}});
      }
      arrived = arriving;
    }
  };
  if (reduces(kind)) {
    pass(true);
  }
  if (gathers(kind)) {
    pass(false);
  }
  return schedule;
}

/// Chunk after chunk along the line of ranks.
MessageSchedule chain_broadcast(int ranks, int chunks) {
  MessageSchedule schedule{.kind = Kind::broadcast,
                           .ranks = ranks,
                           .blocks = chunks,
                           .block_share = 1.0 / chunks,
                           .messages = {},
                           .lanes = 1};
  for (int chunk = 0; chunk < chunks; ++chunk) {
    int before = -1;
    for (int r = 0; r + 1 < ranks; ++r) {
      before = add(schedule, {.sender = r,
                              .receiver = r + 1,
                              .step = chunk + r,
                              .blocks = {chunk},
                              .after = r == 0 ? std::vector<int>{} : std::vector<int>{before}});
    }
  }
  return schedule;
}

/// Everyone to everyone at once; in round i rank r serves rank r+i, so that no receiver is a target
/// of two senders at the same time.
MessageSchedule direct(Kind kind, int ranks) {
  MessageSchedule schedule = sharded(kind, ranks);
  std::vector<std::vector<int>> arrived(static_cast<std::size_t>(ranks));
  for (int i = 1; reduces(kind) && i < ranks; ++i) {
    for (int r = 0; r < ranks; ++r) {
      const int to = (r + i) % ranks;
      const int index = add(
          schedule,
          {.sender = r, .receiver = to, .step = 0, .reduce = true, .blocks = {to}, .after = {}});
      arrived[static_cast<std::size_t>(to)].push_back(index);
    }
  }
  for (int i = 1; gathers(kind) && i < ranks; ++i) {
    for (int r = 0; r < ranks; ++r) {
      add(schedule, {.sender = r,
                     .receiver = (r + i) % ranks,
                     .step = kind == Kind::all_reduce ? 1 : 0,
                     .blocks = {r},
                     .after = arrived[static_cast<std::size_t>(r)]});
    }
  }
  return schedule;
}

MessageSchedule direct_broadcast(int ranks) {
  MessageSchedule schedule{.kind = Kind::broadcast, .ranks = ranks, .messages = {}};
  for (int r = 1; r < ranks; ++r) {
    add(schedule, {.sender = 0, .receiver = r, .blocks = {0}, .after = {}});
  }
  return schedule;
}

/// Block r is rank r's buffer.
MessageSchedule shift(int ranks) {
  MessageSchedule schedule{
      .kind = Kind::send_recv, .ranks = ranks, .blocks = ranks, .messages = {}};
  for (int r = 0; r < ranks; ++r) {
    add(schedule, {.sender = r, .receiver = (r + 1) % ranks, .blocks = {r}, .after = {}});
  }
  return schedule;
}

/// The rank i further on in every dimension, with i as coordinates: all ranks then use the same
/// dimensions at one time, and no receiver is a target of two senders.
int shifted(int rank, int i, std::span<const int> counts) {
  int to = 0;
  int inside = 1;
  for (const int count : counts) {
    to += (rank / inside % count + i / inside % count) % count * inside;
    inside *= count;
  }
  return to;
}

}  // namespace

/// Direct: all in step 0. Pairwise: rank r serves the one i further on in step i-1, after it has
/// received the message of step i-2.
MessageSchedule exchange_schedule(std::span<const int> counts, bool stepwise) {
  const int ranks = std::accumulate(counts.begin(), counts.end(), 1, std::multiplies<>());
  MessageSchedule schedule{.kind = Kind::all_to_all,
                           .ranks = ranks,
                           .blocks = ranks * ranks,
                           .block_share = 1.0 / ranks,
                           .messages = {}};
  std::vector<int> arrived(static_cast<std::size_t>(ranks), -1);
  for (int i = 1; i < ranks; ++i) {
    std::vector<int> arriving(arrived.size(), -1);
    for (int r = 0; r < ranks; ++r) {
      const int to = shifted(r, i, counts);
      const int before = arrived[static_cast<std::size_t>(r)];
      const bool waits = stepwise && before >= 0;
      arriving[static_cast<std::size_t>(to)] =
          add(schedule, {.sender = r,
                         .receiver = to,
                         .step = stepwise ? i - 1 : 0,
                         .blocks = {r * ranks + to},
                         .after = waits ? std::vector<int>{before} : std::vector<int>{}});
    }
    arrived = arriving;
  }
  return schedule;
}

MessageSchedule whole_buffers(int ranks) {
  MessageSchedule schedule = exchange_schedule(std::span(&ranks, 1), false);
  schedule.block_share = 1;
  return schedule;
}

MessageSchedule through_switch(int ranks) {
  MessageSchedule schedule{.kind = Kind::all_reduce,
                           .ranks = ranks,
                           .blocks = 1,
                           .block_share = (1 + 1.0 / ranks) / 2,
                           .messages = {}};
  std::vector<int> arrived;
  for (int step = 0; step < 2; ++step) {
    std::vector<int> arriving;
    arriving.reserve(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r) {
      arriving.push_back(add(schedule, {.sender = r,
                                        .receiver = (r + 1) % ranks,
                                        .step = step,
                                        .reduce = step == 0,
                                        .blocks = {0},
                                        .after = arrived}));
    }
    arrived = std::move(arriving);
  }
  return schedule;
}

namespace {

MessageSchedule exchange(int ranks, bool stepwise) {
  return exchange_schedule(std::span(&ranks, 1), stepwise);
}

/// Recursive vector halving with distance doubling, and back, on the first `core` of the ranks; the
/// others, odd ones of the first pairs, hand over before and receive after. Block b of the halving
/// belongs to core rank b.
class HalvingDoubling {
 public:
  HalvingDoubling(Kind kind, int ranks)
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
  /// The rank that plays core rank c: the even one of a pair, or a rank after the pairs.
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
    const int index = add(schedule_, {.sender = sender,
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

std::optional<MessageSchedule> halving_doubling(Kind kind, int ranks) {
  const bool power = std::has_single_bit(static_cast<unsigned>(ranks));
  if (kind == Kind::all_reduce || (power && (reduces(kind) || gathers(kind)))) {
    return HalvingDoubling(kind, ranks).run();
  }
  return std::nullopt;
}

}  // namespace

std::optional<MessageSchedule> schedule_of(Kind kind, Algorithm algorithm, int ranks, int chunks) {
  const bool exchanges = kind == Kind::all_to_all;
  const bool broadcasts = kind == Kind::broadcast;
  const bool shifts = kind == Kind::send_recv;
  switch (algorithm) {
    case Algorithm::ring:
      return shifts || exchanges ? std::nullopt
             : broadcasts        ? std::optional(chain_broadcast(ranks, chunks))
                                 : std::optional(ring(kind, ranks));
    case Algorithm::direct:
      return shifts       ? std::optional(shift(ranks))
             : exchanges  ? exchange(ranks, false)
             : broadcasts ? direct_broadcast(ranks)
                          : direct(kind, ranks);
    case Algorithm::two_shot:
      return kind == Kind::all_reduce ? std::optional(direct(kind, ranks)) : std::nullopt;
    case Algorithm::pairwise:
      return exchanges ? std::optional(exchange(ranks, true)) : std::nullopt;
    case Algorithm::halving_doubling:
      return halving_doubling(kind, ranks);
    case Algorithm::double_binary_tree:
      return tree_schedule(kind, ranks, chunks);
    case Algorithm::in_switch:  // the switch is no rank
    case Algorithm::rail:       // over several dimensions only
    case Algorithm::automatic:
    case Algorithm::hierarchical:
    case Algorithm::themis:
    case Algorithm::one_shot:  // sums no rank's partial sum: whole_buffers()
    case Algorithm::custom:
    case Algorithm::custom_eager:
    case Algorithm::custom_trtllm:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace orrery::collective
