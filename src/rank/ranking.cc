// SPDX-License-Identifier: Apache-2.0
#include "rank/ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/lists.h"
#include "neural/train.h"
#include "study/parallel.h"

namespace orrery::rank {
namespace {

using neural::Network;
using neural::Samples;

constexpr std::size_t kTrainingSamples = 512;
constexpr std::size_t kTestSamples = 256;
constexpr std::uint64_t kTestSeed = 1'000'001;
constexpr std::uint64_t kTrainingSeed = 1'000'003;

/// Proxies that need weights and samples: what a mean rank is the mean of.
constexpr std::array kOfSamples{Proxy::gradsign_sum, Proxy::gradsign_mean, Proxy::gradient_norm,
                                Proxy::synflow, Proxy::jacobian_covariance};

std::size_t index_of(Proxy proxy) {
  return static_cast<std::size_t>(proxy);
}

/// Scores by network, then seed, then proxy.
using AllScores = std::vector<std::vector<Scores>>;

Samples minibatch(const Network& network, const Samples& samples, const RankingOptions& options,
                  std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(options.samples);
  return samples.labels.empty()
             ? neural::draw_samples({network.input, network.classes, options.noise}, count, seed)
             : neural::draw_from(samples, count, seed);
}

/// Values of one seed over the networks in which both of two scores are defined.
struct Pairs {
  std::vector<double> proxy;
  std::vector<double> other;
  std::vector<double> parameters;
};

Pairs pairs_of(const AllScores& scores, const std::vector<Ranked>& networks, std::size_t seed,
               Proxy proxy, bool with_accuracy) {
  Pairs pairs;
  for (std::size_t i = 0; i < networks.size(); ++i) {
    const auto score = scores[i][seed][index_of(proxy)];
    const auto parameters = scores[i][seed][index_of(Proxy::parameters)];
    const auto other = with_accuracy ? networks[i].accuracy : parameters;
    if (score && other) {
      pairs.proxy.push_back(*score);
      pairs.other.push_back(*other);
      pairs.parameters.push_back(*parameters);
    }
  }
  return pairs;
}

std::optional<Mean> mean_over_seeds(const std::vector<std::optional<double>>& values) {
  std::vector<double> defined;
  for (const auto& value : values) {
    if (value) {
      defined.push_back(*value);
    }
  }
  return defined.empty() ? std::nullopt : std::optional(mean_of(defined));
}

Correlation correlation_of(const AllScores& scores, const std::vector<Ranked>& networks,
                           Proxy proxy, bool with_accuracy) {
  Correlation row{.proxy = proxy, .with = with_accuracy ? "accuracy" : "parameters"};
  std::vector<std::optional<double>> rho;
  std::vector<std::optional<double>> tau;
  std::vector<std::optional<double>> partial;
  for (std::size_t seed = 0; seed < scores.front().size(); ++seed) {
    const Pairs pairs = pairs_of(scores, networks, seed, proxy, with_accuracy);
    row.networks = seed == 0 ? pairs.proxy.size() : row.networks;
    rho.push_back(spearman(pairs.proxy, pairs.other));
    tau.push_back(kendall(pairs.proxy, pairs.other));
    if (with_accuracy && proxy != Proxy::parameters) {
      partial.push_back(partial_spearman(pairs.proxy, pairs.other, pairs.parameters));
    }
  }
  row.spearman = mean_over_seeds(rho);
  row.kendall = mean_over_seeds(tau);
  row.partial = mean_over_seeds(partial);
  return row;
}

/// The mean, over the proxies of samples, of a network's rank from the best; undefined is last.
void set_mean_ranks(std::vector<Ranked>& networks) {
  for (const Proxy proxy : kOfSamples) {
    std::vector<double> costs;
    for (const Ranked& one : networks) {
      const auto& score = one.scores[index_of(proxy)];
      costs.push_back(score ? -score->value : std::numeric_limits<double>::infinity());
    }
    const std::vector<double> ranks = average_ranks(costs);
    for (std::size_t i = 0; i < networks.size(); ++i) {
      networks[i].mean_rank += ranks[i] / static_cast<double>(kOfSamples.size());
    }
  }
}

/// Returns what counts on the Pareto list, less being better.
std::vector<double> costs_of(const Ranked& one) {
  std::vector<double> costs{one.mean_rank};
  if (one.price) {
    costs.push_back(to_seconds(one.price->step_time));
    costs.push_back(static_cast<double>(one.price->memory.value()));
    costs.push_back(one.price->energy ? one.price->energy->value() : 0);
  }
  return costs;
}

bool dominates(const std::vector<double>& a, const std::vector<double>& b) {
  bool better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) {
      return false;
    }
    better = better || a[i] < b[i];
  }
  return better;
}

std::vector<std::size_t> pareto_list(std::vector<Ranked>& networks) {
  const std::vector<std::vector<double>> costs =
      mapped(networks, [&](const Ranked& one) { return costs_of(one); });
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < networks.size(); ++i) {
    networks[i].pareto = std::ranges::none_of(
        costs, [&](const std::vector<double>& other) { return dominates(other, costs[i]); });
    if (networks[i].pareto) {
      list.push_back(i);
    }
  }
  std::stable_sort(list.begin(), list.end(), [&](std::size_t a, std::size_t b) {
    return networks[a].mean_rank < networks[b].mean_rank;
  });
  return list;
}

Result<void> check_shapes(const std::vector<Network>& networks) {
  for (const Network& network : networks) {
    if (network.input != networks.front().input || network.classes != networks.front().classes) {
      return fail(fmt::format(
          "{} takes {} for {} classes and {} takes {} for {}: one file of samples fits one shape",
          networks.front().name, to_string(networks.front().input), networks.front().classes,
          network.name, to_string(network.input), network.classes));
    }
  }
  return {};
}

std::vector<Scores> all_seeds(const Network& network, const Samples& samples,
                              const RankingOptions& options) {
  std::vector<Scores> scores;
  for (std::int64_t seed = 1; seed <= options.seeds; ++seed) {
    const auto drawn = static_cast<std::uint64_t>(seed);
    scores.push_back(scores_of(network, neural::draw_weights(network, drawn),
                               minibatch(network, samples, options, drawn)));
  }
  return scores;
}

/// All of a network but its price and its place among others.
Ranked judge(const Network& network, const std::vector<Scores>& scores, const Samples& samples,
             const RankingOptions& options) {
  Ranked one{.name = network.name};
  one.trained = options.train > 0;
  one.accuracy = one.trained ? trained_accuracy(network, samples, options.noise, options.train)
                             : network.accuracy;
  for (std::size_t p = 0; p < kProxies; ++p) {
    const std::vector<std::optional<double>> values =
        mapped(scores, [&](const Scores& seed) { return seed[p]; });
    one.scores.push_back(mean_over_seeds(values));
  }
  return one;
}

void add_correlations(const AllScores& scores, Ranking& ranking) {
  const bool judged = std::ranges::any_of(
      ranking.networks, [](const Ranked& one) { return one.accuracy.has_value(); });
  for (const bool with_accuracy : {true, false}) {
    for (const Named<Proxy>& proxy : kNames<Proxy>) {
      if (with_accuracy ? judged : proxy.value != Proxy::parameters) {
        ranking.correlations.push_back(
            correlation_of(scores, ranking.networks, proxy.value, with_accuracy));
      }
    }
  }
}

}  // namespace

double trained_accuracy(const Network& network, const Samples& samples, double noise,
                        std::int64_t epochs) {
  const bool own = !samples.labels.empty();
  const neural::Task task{network.input, network.classes, noise};
  Samples test;
  Samples training;
  if (own) {
    const Samples shuffled = neural::draw_from(samples, samples.count(), kTrainingSeed);
    const std::size_t size = network.input.size();
    for (std::size_t i = 0; i < shuffled.count(); ++i) {
      Samples& part = i % 6 == 0 ? test : training;
      part.labels.push_back(shuffled.labels[i]);
      const auto first = shuffled.values.begin() + static_cast<std::ptrdiff_t>(i * size);
      part.values.insert(part.values.end(), first, first + static_cast<std::ptrdiff_t>(size));
    }
  } else {
    test = neural::draw_samples(task, kTestSamples, kTestSeed);
    training = neural::draw_samples(task, kTrainingSamples, kTrainingSeed);
  }
  std::vector<double> weights = neural::draw_weights(network, 1);
  neural::Training how{.epochs = epochs};
  how.minibatch = std::min(how.minibatch, training.count());
  neural::train(network, weights, training, how);
  return neural::accuracy_of(network, weights, test);
}

Result<Ranking> rank_networks(const std::vector<Network>& networks, const Samples& samples,
                              const machine::Machine* machine, const Step& step,
                              const RankingOptions& options) {
  if (!samples.labels.empty()) {
    if (auto same = check_shapes(networks); !same) {
      return fail(std::move(same.error()));
    }
  }
  Ranking ranking;
  ranking.networks.resize(networks.size());
  AllScores scores(networks.size());
  std::vector<Error> mistakes(networks.size());
  study::run_parallel(
      networks.size(), options.threads,
      [&](std::size_t i) {
        scores[i] = all_seeds(networks[i], samples, options);
        ranking.networks[i] = judge(networks[i], scores[i], samples, options);
        if (machine == nullptr) {
          return;
        }
        if (auto price = price_of(networks[i], *machine, step)) {
          ranking.networks[i].price = *price;
        } else {
          mistakes[i] = std::move(price.error());
        }
      },
      options.progress);
  Error all;
  for (Error& error : mistakes) {
    all.add(std::move(error));
  }
  if (!all.empty()) {
    return fail(std::move(all));
  }
  add_correlations(scores, ranking);
  set_mean_ranks(ranking.networks);
  ranking.pareto = pareto_list(ranking.networks);
  return ranking;
}

}  // namespace orrery::rank
