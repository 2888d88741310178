// SPDX-License-Identifier: Apache-2.0
/// One phase of a chunk: an algorithm among the NPUs of one dimension, as the messages that each of
/// them sends and receives.
///
/// Two patterns. *Sequence* (ring, direct, halving-doubling, Bruck): every NPU sends messages
/// 0..n-1 in order and receives as many; `window` of them start the phase, each reception lets the
/// next go out, and the receive of message k is posted together with its send. *Tree*: a node
/// waits for its children, sends up, waits for its parent, sends down.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "compat/astra/config.h"
#include "compat/astra/quirks.h"
#include "compat/astra/wires.h"

namespace orrery::astra {

/// PhaseType says what a phase does with c bytes per NPU (message m of p NPUs):
///
///   reduce_scatter  m = c / p   c -> c / p        all_gather  m = c       c -> c p
///   all_reduce      m = c / p   c -> c            all_to_all  m = c / p   c -> c
///   reduce, broadcast, gather, scatter: a tree of whole messages, c -> c; barrier: no bytes
enum class PhaseType : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  reduce,
  broadcast,
  gather,
  scatter,
  barrier
};

/// One dimension of a communicator. Member i has position (i / local_stride) mod size in it.
struct Axis {
  int queue = 0;  ///< dimension whose queue its phases take
  std::int64_t size = 1;
  std::uint32_t local_stride = 1;
  /// All positions of network dimension `queue`, in order: times depend on distances only.
  /// Otherwise positions are any NPUs, and times those of their pairs.
  bool uniform = true;
};

/// Ends are what a message costs at its ends.
struct Ends {
  Time delay{0};                    ///< before a phase's first send and after each reception
  std::optional<Bandwidth> memory;  ///< absent: reductions cost nothing
};

/// Returns the time of reducing m bytes: two reads and a write, 3 floor(m / bandwidth); zero
/// without a bandwidth.
Time reduction_time(Bytes bytes, const std::optional<Bandwidth>& memory);

/// Children and parent of every position.
struct Tree {
  std::vector<std::int32_t> parent;          ///< -1: root
  std::vector<std::int32_t> children;        ///< those of node i from first_child[i]
  std::vector<std::uint32_t> first_child;    ///< p + 1 entries
  std::vector<std::uint32_t> child_ordinal;  ///< which child of its parent a node is
};

enum class Pattern : std::uint8_t { chain, direct, halving, cyclic, tree };

/// Says which of its dimension's queues a phase takes in turn; queue_turns.h says what that means
/// for its direction.
enum class QueueShare : std::uint8_t { all, first_half, second_half };

struct Step {
  Bytes bytes{0};
  Time transfer{0};           ///< of a uniform axis, without other traffic
  Time ready{0};              ///< the same of a rendezvous' ready message
  std::int64_t distance = 1;  ///< halving: partner's; cyclic: to the receiver, modulo size
};

struct Phase {
  PhaseType type = PhaseType::all_reduce;
  Pattern pattern = Pattern::chain;
  Axis axis;
  QueueShare share = QueueShare::all;
  bool group_ring = false;  ///< Shape::group_ring; a shared bus does not concern it
  Bytes in{0};
  Bytes out{0};
  Time delay{0};

  std::uint32_t messages = 0;  ///< of each NPU
  std::uint32_t window = 1;
  /// Message `barrier` and later wait until `barrier` messages were received; 0: none.
  std::uint32_t barrier = 0;
  bool barrier_waits_for_processing = false;
  std::vector<Step> steps;  ///< chain: one; direct: size - 1; halving and cyclic: one per message
  /// Received messages go up to the NPU `up_in_turn` times, then `window` times down to memory; a
  /// shared bus (shared_bus.h) charges the two differently.
  std::uint32_t up_in_turn = 1;
  /// Reception j reduces if j < reducing and j mod period < up_in_turn, for
  /// reductions[min(j, last)].
  std::uint32_t reducing = 0;
  std::uint32_t period = 0;  ///< 0: none
  std::vector<Time> reductions;
  Bytes after_last{0};  ///< size of the message that would follow the last
  /// Returns the size at which a reception passes a shared bus: that of the next message.
  Bytes size_after(std::uint32_t reception) const {
    return reception + 1 < messages ? step(reception + 1).bytes : after_last;
  }

  Tree tree;
  bool up = false;    ///< leaves to root, reducing
  bool down = false;  ///< root to leaves
  bool reduces_down = false;
  /// A node that sends is done when its messages are there, as that of a send is; otherwise when it
  /// has handed them over, as ASTRA-sim's all-reduces on trees do.
  bool holds_senders = false;

  /// Places for messages that come before their receive is posted: a counter (chain) or a bit per
  /// message. With rendezvous there are as many again for ready messages.
  std::uint32_t first_word = 0;
  std::uint32_t words = 1;

  const Step& step(std::uint32_t message) const { return step(pattern, message); }
  /// Returns a step. `known`: the pattern.
  [[gnu::always_inline]] const Step& step(Pattern known, std::uint32_t message) const {
    switch (known) {
      case Pattern::chain:
      case Pattern::tree:
        return steps[0];
      case Pattern::direct:
        return steps[message < steps.size() ? message : message - steps.size()];
      case Pattern::halving:
      case Pattern::cyclic:
        return steps[message];
    }
    return steps[0];
  }
  /// Returns the reception's place in its period, which most phases do not outlast. Requires a
  /// period.
  std::uint32_t place(std::uint32_t reception) const {
    return reception < period ? reception : reception % period;
  }
  [[gnu::always_inline]] bool reduces(std::uint32_t reception) const {
    return reception < reducing && (period == 0 || place(reception) < up_in_turn);
  }
  [[gnu::always_inline]] Time reduction(std::uint32_t reception) const {
    if (!reduces(reception)) {
      return Time(0);
    }
    return reductions[reception < reductions.size() ? reception : reductions.size() - 1];
  }
  /// Returns whether messages are a sequence that every position takes part in; a tree's differ by
  /// position.
  bool sequence() const { return pattern != Pattern::tree; }
};

struct PhaseRequest {
  PhaseType type = PhaseType::all_reduce;
  Implementation implementation;
  Axis axis;
  Bytes size{0};
  QueueShare share = QueueShare::all;
  bool group_ring = false;
  bool second_tree = false;
};

/// PhaseRules turn requests into phases.
struct PhaseRules {
  const Wires& wires;
  Ends ends;
  Quirks quirks;
};

/// Returns why `algorithm` cannot do a phase of `ranks`, or nothing. Halving-doubling and trees of
/// another count than a power of two exist only without their quirks (Bruck's algorithm, and
/// in-order trees of any count); with it, halving-doubling all-gathers where partners are each
/// other's at every distance, as of 6 and 12.
std::optional<std::string> unsupported(PhaseType type, Algorithm algorithm, std::int64_t ranks,
                                       const Quirks& quirks);

/// Returns why the messages of each of `ranks` NPUs cannot be counted in 32 bits, or nothing.
std::optional<std::string> too_many_messages(PhaseType type, Algorithm algorithm,
                                             std::int64_t ranks);

/// Returns whom a position of halving-doubling meets at a distance.
constexpr std::uint32_t partner(std::uint32_t position, std::uint32_t distance) {
  return position / distance % 2 == 0 ? position + distance : position - distance;
}

/// Rendezvous: before each message its receiver sends so much.
inline constexpr Bytes kReadyMessage{8192};

/// Requires that `unsupported` finds nothing, and a size of at least 2.
Phase make_phase(const PhaseRequest& request, const PhaseRules& rules);

/// Returns the in-order binary tree of `count` positions below one more: the greatest position is
/// the root with a left child, or (`second`) the smallest with a right child. Any count >= 1.
Tree in_order_tree(std::int64_t count, bool second);
/// Returns a tree in which position 0 is the parent of all others.
Tree star(std::int64_t count);

}  // namespace orrery::astra
