// SPDX-License-Identifier: Apache-2.0
/// A Diagnosis says what is wrong with a job, from its communication's telemetry: the four
/// syndromes of C4D (Dong et al., "C4", HPCA 2025, arXiv 2406.04594), and two mistakes of programs
/// that look like a hang.
///
///   hang            a collective that a rank entered more than `timeout` ago is not over.
///                   Not all have entered: who has not is at fault, unless it waits in another
///                   collective that hangs; then that one is looked at, and so on. All have: the
///                   rank that has sent least.
///   slow messages   x(s, t) = median over the last `window` messages of time / bytes, over the
///                   median of messages of the same path and size (within a factor of 2), scaled
///                   so that the median of x is 1.
///                   With sigma the larger of 1.4826 median |x - 1| over all cells and the median
///                   standard error of a cell (1.25 of its messages' interquartile range / 1.349
///                   over the root of their number), a sender (row of n - 1 cells) or receiver
///                   (column) is slow when its median is above 1 + max(6 sigma 1.25 / sqrt(n),
///                   0.05), a single link above 1 + max(6 sigma, 4 of its own standard errors,
///                   0.1). A link 4 times as far above 1 as all others of its row and column counts
///                   in neither. Rows and columns need three cells; of fewer the link or either end
///                   may be at fault, which is said.
///                   Messages of a flight recorder are entered by both ends: a send without its
///                   receive hangs at the receiver. Who has only scheduled what others run has not
///                   entered it.
///   straggler       who enters a collective last waits least in it. An operation's cost is the
///                   median wait of the others less the least. Ranks are at fault that together
///                   were the last in 80 % of the cost, if there are few (a quarter of them, at
///                   least one), it is 5 % of the time at least, and each has in three of four
///                   parts of the time half of its share at least; a rank that was itself kept
///                   waiting for that long in another communicator passes the blame on to whoever
///                   was late there.
///                   Where all ranks of an operation say what they have computed for it, how much
///                   longer one computed takes the place of how late it entered: who loses its core
///                   to other programs is late without fault. The time is then that of the longest
///                   computing and of the shortest stays in operations. Two programs on the threads
///                   of one core may each take twice as long, so ranks at fault compute twice as
///                   long as the quickest quarter of the others. A job that hangs, or whose
///                   ranks ask for different collectives, is not asked for stragglers: what it
///                   did before is short.
///
/// Clocks of different ranks are never compared.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/names.h"
#include "diagnose/telemetry.h"

namespace orrery::diagnose {

enum class Syndrome : std::uint8_t {
  mismatch,
  wrong_order,
  missing_rank,
  communication_hang,
  slow_rank,
  slow_sender,
  slow_receiver,
  slow_link,
  straggler,
};
constexpr auto named_values(Syndrome) {
  return std::to_array<Named<Syndrome>>({
      {Syndrome::mismatch, "mismatch",
       "ranks of a communicator called different collectives, or with different sizes"},
      {Syndrome::wrong_order, "wrong_order",
       "ranks wait for each other in different communicators: they call in different orders"},
      {Syndrome::missing_rank, "missing_rank",
       "a rank does not enter a collective in which others wait (non-communication hang)"},
      {Syndrome::communication_hang, "communication_hang",
       "all ranks have entered a collective that does not end"},
      {Syndrome::slow_rank, "slow_rank", "what a rank sends and receives is slow"},
      {Syndrome::slow_sender, "slow_sender", "what a rank sends is slow, whoever receives it"},
      {Syndrome::slow_receiver, "slow_receiver", "what a rank receives is slow, whoever sends it"},
      {Syndrome::slow_link, "slow_link", "messages of one pair of ranks are slow"},
      {Syndrome::straggler, "straggler", "a rank enters collectives late, so that others wait"},
  });
}

struct Finding {
  Syndrome syndrome = Syndrome::straggler;
  std::vector<std::int64_t> ranks;       ///< at fault; of a link source and target
  std::string communicator;              ///< empty: of messages
  std::optional<std::int64_t> sequence;  ///< of a hang or mismatch
  Time lost{0};                          ///< hang: how long already; straggler: others waited
  double slowdown = 1;                   ///< of slow messages
  std::optional<double> sigmas;          ///< how far beyond the noise
  std::string because;                   ///< one sentence
};

struct Diagnosis {
  std::vector<Finding> findings;
  std::vector<std::string> undecided;  ///< what is wrong and cannot be told whose fault it is, why
  std::vector<std::string> skipped;    ///< what was not looked at
  std::int64_t ranks = 0;
  std::size_t operations = 0;
  std::size_t messages = 0;
  std::size_t pairs = 0;  ///< with messages, of ranks * (ranks - 1)
};

struct Options {
  Time timeout = 30_s;
  std::size_t window = 20;  ///< messages of a pair
};

/// Takes telemetry as load_telemetry gives it.
Diagnosis diagnose(const Telemetry& telemetry, const Options& options);

}  // namespace orrery::diagnose
