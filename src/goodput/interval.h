// SPDX-License-Identifier: Apache-2.0
/// Says how much of its time a job keeps that stops at random and goes on from its last checkpoint.
///
///   M      mean time between stops of the job
///   tau    work between two checkpoints
///   delta  time for which a checkpoint holds the job
///   W      time from there until the checkpoint is durable; 0 where it holds the job until then
///   R_i    time from a stop of kind i until the job runs again
///   p_i    share of the stops of kind i
///
///   G(tau) = tau q / (M (e^{(tau + delta)/M} - 1)),  q = sum_i p_i e^{-(R_i + W)/M}
///
/// It is exact for stops that come at a constant rate, also while the job restarts (each begins the
/// restart anew): a segment of tau + delta succeeds with e^{-(tau + delta)/M}, each of its
/// e^{(tau + delta)/M} - 1 stops costs M (1/q - 1) beside what it lasted. A checkpoint that becomes
/// durable later makes the job do W again after each stop, so W stands beside R.
///
/// Requires: M, tau > 0; W <= tau + delta.
/// Ignores:  spares that run out, slower runs with fewer nodes, copies in memory that are lost with
///           their nodes: job_run.h has them.
/// Source:   Daly, Future Generation Computer Systems 22(3), 2006; Young, CACM 17(9), 1974.
#pragma once

#include <vector>

#include "base/units.h"

namespace orrery::goodput {

/// The cost of a checkpoint in time.
struct CheckpointCost {
  Duration holds{0};     ///< delta
  Duration persists{0};  ///< W
};

/// Stops of one kind: their rate and what each costs.
struct StopKind {
  Duration mtbf{0};     ///< of the job: mean time between stops of this kind
  Duration restart{0};  ///< R
};

/// The mean time between stops of any kind: 1 / sum of the rates.
Duration mtbf_of(const std::vector<StopKind>& kinds);

/// Returns G(tau), a share of time.
double expected_goodput(const std::vector<StopKind>& kinds, const CheckpointCost& cost,
                        Duration tau);

/// Returns the tau for which G is largest: the root of 1 - e^{-(tau + delta)/M} = tau / M, at least
/// W - delta. It does not depend on R. With delta 0 it is 0, which no job can do: the caller states
/// a cost.
Duration best_interval(Duration mtbf, const CheckpointCost& cost);

/// Returns sqrt(2 delta M).
Duration young_interval(Duration mtbf, Duration holds);

/// Returns sqrt(2 delta M) (1 + sqrt(delta / 2M) / 3 + (delta / 2M) / 9) - delta; M where delta >=
/// 2M.
Duration daly_interval(Duration mtbf, Duration holds);

/// The mean time between stops of a job with which its goodput at the best interval is `share`;
/// all stops restart alike. Requires 0 < share < 1 and a cost above 0.
Duration break_even_mtbf(Duration restart, const CheckpointCost& cost, double share);

}  // namespace orrery::goodput
