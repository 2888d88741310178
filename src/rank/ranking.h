// SPDX-License-Identifier: Apache-2.0
/// Architectures side by side: proxies over seeds, what correlates with what, cost, Pareto list.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "machine/machine.h"
#include "neural/network.h"
#include "neural/weights.h"
#include "rank/correlation.h"
#include "rank/price.h"
#include "rank/proxies.h"

namespace orrery::rank {

struct RankingOptions {
  std::int64_t samples = 128;  ///< of the minibatch that scores
  std::int64_t seeds = 3;      ///< each draws weights and a minibatch anew
  std::int64_t train = 0;      ///< epochs; 0: accuracies are those that the files state
  double noise = 1;            ///< Task::noise, without samples of the user's
  int threads = 0;             ///< 0: one per processor; changes no result
  std::function<void(double)> progress{};
};

struct Ranked {
  std::string name;
  std::vector<std::optional<Mean>> scores{};  ///< by Proxy, over the seeds that have one
  std::optional<double> accuracy{};
  bool trained = false;  ///< here, not stated
  double mean_rank = 0;  ///< over the proxies that need samples, 1: the best
  std::optional<Price> price{};
  bool pareto = false;
};

/// Says how a proxy's order agrees with another: means over seeds with their intervals.
struct Correlation {
  Proxy proxy = Proxy::gradsign_sum;
  std::string with;          ///< "accuracy" or "parameters"
  std::size_t networks = 0;  ///< in which both are defined, of the first seed
  std::optional<Mean> spearman{};
  std::optional<Mean> kendall{};
  std::optional<Mean> partial{};  ///< Spearman given the number of parameters; of accuracy
};

struct Ranking {
  std::vector<Ranked> networks;  ///< in the order given
  std::vector<Correlation> correlations;
  /// The networks on the Pareto list, the best mean rank first: no other network is at least as
  /// good in mean rank, step time, memory and energy (what is known of them) and better in one.
  std::vector<std::size_t> pareto;
};

/// Ranks networks. `samples`: the user's, all of one shape; empty: made up (draw_samples).
/// `machine`: prices each step; none: proxies alone make the list. Mistakes: networks of several
/// input shapes or numbers of classes with one file of samples; prices that cannot be had.
Result<Ranking> rank_networks(const std::vector<neural::Network>& networks,
                              const neural::Samples& samples, const machine::Machine* machine,
                              const Step& step, const RankingOptions& options);

/// Returns the accuracy of the network trained for `epochs` on 512 samples (or on five sixths of
/// the user's), tested on others: 256 (or the sixth).
double trained_accuracy(const neural::Network& network, const neural::Samples& samples,
                        double noise, std::int64_t epochs);

}  // namespace orrery::rank
