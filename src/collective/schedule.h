// SPDX-License-Identifier: Apache-2.0
/// Every message of one collective algorithm on p ranks: the reference for the counts of steps.h.
///
/// The buffer is cut into blocks; a message carries some of them. Before the collective
///
///   all_reduce, reduce_scatter   rank r holds its own contribution to every block
///   all_gather                   rank r holds block b when owner(b) = r
///   all_to_all                   rank r holds the blocks r * p ... r * p + p-1, one for each rank
///   broadcast                    rank 0 holds every block
///   send_recv                    rank r holds block r
///
/// and after it every rank holds the sum of every block (reduce_scatter: of the blocks it owns),
/// all blocks (all_gather, broadcast), the blocks j * p + r of every rank j (all_to_all), or block
/// r-1 (send_recv).
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collective/cost.h"
#include "graph/workload.h"

namespace orrery::collective {

struct Message {
  int sender = 0;
  int receiver = 0;
  int step = 0;         ///< of the algorithm; steps of pipelined trees count chunks too
  bool reduce = false;  ///< the receiver adds the blocks to its own, otherwise replaces them
  std::vector<int> blocks;
  /// Messages (indices) that must have arrived before: at the sender, what it passes on; at the
  /// receiver, what it must have taken before it is ready for this one.
  std::vector<int> after;
};

struct MessageSchedule {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  int ranks = 1;
  int blocks = 1;
  double block_share = 1;         ///< of the buffer S, as Node::bytes counts it
  std::vector<Message> messages;  ///< each after all those in its `after`
  /// Chunks that flow: the blocks are cut into so many lanes (trees, rings). Of a pair of ranks and
  /// a lane, sums apart from copies, a message leaves when the one before it has left. 0: no order.
  int lanes = 0;
  /// Says whether blocks are what ranks hold. They are not for sums in a switch or out of place:
  /// there messages only say what ports carry.
  bool has_blocks = true;

  int owner(int block) const { return block % ranks; }
  /// Returns the message's index.
  int add(Message message) {
    messages.push_back(std::move(message));
    return static_cast<int>(messages.size()) - 1;
  }
  /// Returns a schedule without messages that has a block for each rank.
  static MessageSchedule sharded(graph::CollectiveKind kind, int ranks) {
    return {
        .kind = kind, .ranks = ranks, .blocks = ranks, .block_share = 1.0 / ranks, .messages = {}};
  }
};

constexpr bool reduces(graph::CollectiveKind kind) {
  return kind == graph::CollectiveKind::all_reduce || kind == graph::CollectiveKind::reduce_scatter;
}
constexpr bool gathers(graph::CollectiveKind kind) {
  return kind == graph::CollectiveKind::all_reduce || kind == graph::CollectiveKind::all_gather;
}

/// Returns the number of members of all dimensions together.
int ranks_of(std::span<const int> counts);

/// Returns the schedule, or nothing when the algorithm does not do this kind or number of ranks (as
/// count_steps), or has no blocks. `chunks`: into how many chunks a pipelined algorithm
/// (double_binary_tree, ring broadcast) cuts each tree's part; others ignore it. Requires ranks >=
/// 2, chunks >= 1.
std::optional<MessageSchedule> schedule_of(graph::CollectiveKind kind,
                                           CollectiveAlgorithm algorithm, int ranks,
                                           int chunks = 1);

/// all_to_all over the product of `counts` ranks, innermost dimension first: as `direct`, all
/// messages at once, or `stepwise` as `pairwise`.
MessageSchedule exchange_schedule(std::span<const int> counts, bool stepwise);

/// Parent of each of `count` nodes in the in-order binary tree rooted at node 0, -1 for the root.
/// Node r > 0 has the height of its lowest set bit and hangs below the next higher bit; leaves are
/// the odd nodes. The depth is ceil(log2 count).
std::vector<int> in_order_tree(int count);

/// Returns the second tree: the first mirrored (even count) or shifted by one (odd), so that no
/// node has children in both (Sanders, Speck, Traff 2009; the construction is that of NCCL 2.4).
std::vector<int> second_tree(int count);

}  // namespace orrery::collective
