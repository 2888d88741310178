// SPDX-License-Identifier: Apache-2.0
/// Fusion of an engine's communication: how the residual stream lies on a tensor-parallel group.
///
/// Every branch of a layer (attention, MLP, experts) reads the stream, normed, and ends in partial
/// sums that are added to it. Between the branches the stream is held in one of two layouts
/// (graph/layout.h), the same all through a pass:
///
///   copies   every rank all T rows; sums -> copies, stages send all rows
///   tokens   every rank ceil(T / tp) rows; sums -> tokens, norms of a shard, tokens -> what the
///            branch reads; a stage sends shards
///
/// Each change is the cheapest sequence that layout::cheapest finds among all_reduce,
/// reduce_scatter, all_gather, slice and send_recv at the engine's own prices; the pass takes the
/// layout that is faster in all. So the published pairs come out where they apply:
///
///   tp+sp   sums -> norm -> copies: RS, norm of a shard, AG for AR, norm
///   tp+pp   sums -> copies in the next stage: RS, send of a shard, AG for AR, send of all rows
///   tp+ep   sums -> norm -> tokens that leave for their experts: RS for AR; what comes back is a
///           shard already
///
/// Legal by the four conditions of a fusion: (1) between sum and reader there are residual sums and
/// norms alone, which are done token by token; (2) a branch's input is gathered whole where it
/// reads it whole; (3) a sum is added once, in its reduce_scatter; (4) both stages have tp ranks.
///
/// A half of an all_reduce takes at least half of its time: where the machine's price is less, that
/// is another algorithm, not fusion.
///
/// Ignores:  that a branch could gather from several axes at once; many_to_many, for which engines
///           have no kernel.
/// Source:   Chimera, ISCA 2025; Korthikanti et al. 2022 for tp+sp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace orrery::step {

/// StreamPrices are those of one pass of T rows.
struct StreamPrices {
  Time all_reduce{0};      ///< of T rows over tp ranks, by the engine's algorithm
  Time reduce_scatter{0};  ///< of tp ceil(T / tp) rows
  Time all_gather{0};
  Time send_rows{0};  ///< of T rows to the next stage
  Time send_shard{0};
};

/// StreamUses say what a pass has of each.
struct StreamUses {
  std::int64_t tokens = 1;  ///< T
  std::int64_t tp = 1;
  std::int64_t hops = 0;     ///< from stage to stage, each behind partial sums
  std::int64_t readers = 0;  ///< branches that read all rows and end in partial sums
  std::int64_t sharded = 0;  ///< whose rows leave for their experts, and come back, in shards
  Time norms{0};             ///< by which all residual sums and norms of shards are shorter
};

/// One kind of place where communication can be fused.
struct FusedPlace {
  std::string pair;         ///< "tp+sp"; "cp"
  std::int64_t places = 0;  ///< in a pass
  std::string before;       ///< "all_reduce tp"
  std::string after;
  Time time_before{0};  ///< of one, alone, without norms
  Time time_after{0};
  std::string reason;  ///< why not; empty: fused
};

struct StreamChoice {
  bool shards = false;       ///< the stream is held in shards of tokens
  Time saved{0};             ///< of the pass; 0: nothing is fused
  std::int64_t kernels = 0;  ///< more than before
  std::vector<FusedPlace> places;
};

/// Returns the faster layout. Requires tp > 1.
StreamChoice choose_stream(const StreamUses& uses, const StreamPrices& prices);

}  // namespace orrery::step
