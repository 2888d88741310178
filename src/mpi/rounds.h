// SPDX-License-Identifier: Apache-2.0
/// Workers that step alone and come together once in a round (workload/plan/rounds.h), really run:
/// a small network, its gradients, and sums over the processes of an MPI job.
///
/// W workers train the multilayer perceptron 20-hidden-5 by stochastic gradient descent, each on
/// samples of its own, which are sorted by class and dealt out in two runs a worker: its data are
/// not everybody's. A process has W / processes of them.
///
///   round t     from x0: tau steps of each worker, x <- x - gamma g;  sends the sum of x0 - x
///   local_sgd   x0 <- x0 - d, d the mean over workers
///   slow_mo     m <- beta m + d / gamma;  x0 <- x0 - alpha gamma m
///   diloco      m <- beta m + d;  x0 <- x0 - alpha (beta m + d)
///   co2         slow_mo with the d of round t-1, over the gap
///               Lambda = 1 + |x0(t) - x0(t-1)| / (2 |d|), m clipped to [-phi, phi]; its sum
///               (MPI_Iallreduce) runs beside round t, which polls it (MPI_Test) after every step,
///               since no library moves it otherwise. The first round applies nothing; the end of
///               a run applies what is left. The gap's formula is recalled: a calculation that
///               follows the paper, not its equation.
///   every_step  x0 <- x0 - mean of gamma g: synchronous descent
///
/// Bits:     steps gamma g are multiples of W 2^-32 and outer steps of 2^-32, so every sum and mean
///           over workers is exact: results are equal bit for bit for any number of processes,
///           library and order of sums, and tau 1 with beta 0 and alpha 1 is every_step.
/// Requires: W a power of two that the processes divide; gamma a power of two.
/// Ignored:  statistics of batch norms (there are none), growing learning rates.
/// Source:   Sun et al. 2024 (arXiv:2401.16265), McMahan et al. 2017 (the dealing of samples), and
///           those of workload/plan/rounds.h.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "workload/plan/choices.h"

namespace orrery::mpi {

struct RoundTask {
  std::int64_t workers = 8;
  std::int64_t steps = 960;  ///< of each worker
  std::int64_t hidden = 32;
  std::int64_t minibatch = 8;
  double rate = 0.0625;      ///< gamma
  double noise = 2;          ///< deviation of the samples from their class's patterns
  std::int64_t padding = 0;  ///< elements that every sum carries beside the network's
  std::uint64_t seed = 1;
};

struct OuterUpdate {
  plan::DataParallelUpdate update = plan::DataParallelUpdate::every_step;
  std::int64_t tau = 1;
  double alpha = 1;
  double beta = 0.5;
  double clip = 0;      ///< phi; 0: none
  bool penalty = true;  ///< whether co2 divides by the gap
  bool waited = false;  ///< co2 without delay: a round applies its own sum
  bool polled = true;   ///< whether co2 polls the sum under way
};

struct RoundTimes {
  double step = 0;    ///< of all workers of a process, s
  double outer = 0;   ///< end of a round without its sum, s
  double round = 0;   ///< from one beginning to the next, s
  double waited = 0;  ///< of that, for the sum
};

struct RoundOutcome {
  std::vector<double> weights;
  double loss = 0;      ///< mean cross-entropy of samples that no worker has
  double accuracy = 0;  ///< of these
  /// Rounds between the one that a sum is of and the one that applies it, as the sums themselves
  /// say: each carries the number of its round.
  std::int64_t least_delay = 0;
  std::int64_t most_delay = 0;
  std::int64_t applied = 0;  ///< sums
  RoundTimes times;          ///< means without the first round, of the slowest process
};

/// Trains on all processes of `comm` together.
RoundOutcome train_rounds(const RoundTask& task, const OuterUpdate& update,
                          MPI_Comm comm = MPI_COMM_WORLD);

/// Returns the seconds of one sum of the task alone, waited for: the median of `repeat`.
double sum_seconds(const RoundTask& task, int repeat);

struct RoundRun {
  RoundTask task;
  std::vector<std::int64_t> taus{4, 24, 48};
  double alpha = 1;
  double beta = 0.5;
  bool overlap = false;  ///< times of local_sgd, co2 unpolled and co2 alone
  bool json = false;
};

/// Runs the updates with every tau, what CO2's penalty and clip are worth among them, and prints a
/// line of each: loss, accuracy, delays, times of a round beside T_round of workload/plan/rounds.h
/// from the measured step, outer step and sum, and hash_of the weights; of co2 the share of the sum
/// that its round hides, beside min(1, tau t_step / T_sum), T_sum as local_sgd waits for it.
/// Returns false if a sum is applied later or earlier than its update says. All processes call it
/// together.
bool run_rounds(const RoundRun& run);

/// Returns a number of all bits of the weights (FNV-1a).
std::uint64_t hash_of(const std::vector<double>& weights);

}  // namespace orrery::mpi
