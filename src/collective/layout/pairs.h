// SPDX-License-Identifier: Apache-2.0
/// The six published pairs of parallelisms as layouts (Chimera, ISCA 2025). N ranks of a group, d
/// of them in different dp groups, k experts per token, M bytes of a dp group's tensor.
///
///   pair    base                          fused                 bytes that a rank sends
///   tp+sp   AR, slice                     RS                    2M(N-1)/N -> M(N-1)/N
///   tp+pp   AR, M2M, AG (Alpa)            RS, M2M, AG           2M(N-1)/N + M -> M(N-1)/N + M
///   tp+ep   AR per dp group, A2A          RS per dp group, A2A  less an AG, M(n-1)/n, n = N/d
///   pp+ep   P2P, A2A                      M2M                   M + A2A -> Mkd/N
///   sp+pp   AG, P2P, slice                M2M                   M(N-1)/N + M -> M/N
///   sp+ep   AG per dp group, A2A          A2A                   less an AG, M(n-1)/n
///
/// with an A2A of Mkd/N (N-1)/N. The gate of an expert layer is work between that needs whole
/// tokens: it makes k copies of each.
#pragma once

#include <optional>
#include <string_view>

#include "base/names.h"
#include "collective/layout/steps.h"

namespace orrery::layout {

enum class Pair : std::uint8_t { tp_sp, tp_pp, tp_ep, pp_ep, sp_pp, sp_ep };
constexpr auto named_values(Pair) {
  return std::to_array<Named<Pair>>({
      {Pair::tp_sp, "tp+sp", "sums of a tensor-parallel layer to slices of the sequence"},
      {Pair::tp_pp, "tp+pp", "sums of a tensor-parallel layer to copies in the next stage"},
      {Pair::tp_ep, "tp+ep", "sums of a tensor-parallel layer to the experts of all dp groups"},
      {Pair::pp_ep, "pp+ep", "copies in one stage to the experts in the next"},
      {Pair::sp_pp, "sp+pp", "slices of the sequence to slices of features in the next stage"},
      {Pair::sp_ep, "sp+ep", "slices of the sequence to the experts of all dp groups"},
  });
}

struct PairSizes {
  std::int64_t ranks = 4;   ///< N, of one stage
  std::int64_t dp = 1;      ///< d, of pairs with ep; divides ranks
  std::int64_t tokens = 1;  ///< of a dp group
  std::int64_t width = 1;   ///< features
  std::int64_t copies = 1;  ///< k, of pairs with ep
  Bytes element{4};
};

/// PairSizes have these bounds: every pair of ranks of two stages is looked at, and 2^40 bytes are
/// no mistake.
inline constexpr std::int64_t kMostPairRanks = 32;
inline constexpr std::int64_t kMostPairExtent = std::int64_t{1} << 40;

/// The field of PairSizes that does not go with the others, and what would; nothing: all do. Each
/// alone is at least 1, `ranks` at most kMostPairRanks, others at most kMostPairExtent.
struct WrongSize {
  std::string_view field;
  std::string_view expected;
};
std::optional<WrongSize> wrong_size(const PairSizes& sizes);

struct PairCase {
  Problem problem;
  std::vector<Step> base;  ///< as published
  std::vector<Step> fused;
};

/// Requires no wrong_size.
PairCase pair_case(Pair pair, const PairSizes& sizes);

}  // namespace orrery::layout
