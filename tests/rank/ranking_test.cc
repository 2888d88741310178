// SPDX-License-Identifier: Apache-2.0
#include "rank/ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "neural/cell.h"
#include "neural/read_network.h"

namespace orrery::rank {
namespace {

using ::testing::HasSubstr;

using Values = std::vector<double>;

TEST(Correlation, OfTiedRanksByHand) {
  // a: ranks 1, 2.5, 2.5, 4; b: 1, 3, 2, 4. Deviations from 2.5: a -1.5, 0, 0, 1.5; b -1.5, .5,
  // -.5, 1.5. rho = 4.5 / sqrt(4.5 x 5) = 0.94868. Of six pairs five are concordant, one tied in a:
  // tau-b = 5 / sqrt(5 x 6) = 0.91287.
  const Values a{1, 2, 2, 3};
  const Values b{1, 3, 2, 4};
  EXPECT_NEAR(*spearman(a, b), 0.948683, 1e-6);
  EXPECT_NEAR(*kendall(a, b), 0.912871, 1e-6);
  EXPECT_THAT(average_ranks(Values{5, 1, 5, 5}), ::testing::ElementsAre(3, 1, 3, 3));
}

TEST(Correlation, OfNoOrderIsUndefined) {
  const Values same{2, 2, 2};
  const Values b{1, 2, 3};
  EXPECT_FALSE(spearman(same, b));
  EXPECT_FALSE(kendall(same, b));
  EXPECT_FALSE(partial_spearman(b, same, b));
  EXPECT_FALSE(spearman(Values{1}, Values{1}));
  EXPECT_FALSE(partial_spearman(b, b, b));  // nothing is left of b given b
}

TEST(Correlation, PartialByHand) {
  // Ranks are the values. ab: 1 - 6 x 2 / (4 x 15) = 0.8; ac: 1 - 6 x 4 / 60 = 0.6 (d: 1, 1, 1,
  // -1 ... of 2143 against 1234: squares 1, 1, 1, 1); bc: d of 1243 and 2143: 1, 1, 0, 0 -> 0.8.
  // (0.8 - 0.6 x 0.8) / sqrt((1 - 0.36) (1 - 0.64)) = 0.32 / 0.48 = 2 / 3.
  const Values a{1, 2, 3, 4};
  const Values b{1, 2, 4, 3};
  const Values c{2, 1, 4, 3};
  EXPECT_NEAR(*spearman(a, b), 0.8, 1e-12);
  EXPECT_NEAR(*spearman(a, c), 0.6, 1e-12);
  EXPECT_NEAR(*spearman(b, c), 0.8, 1e-12);
  EXPECT_NEAR(*partial_spearman(a, b, c), 2.0 / 3, 1e-12);
}

TEST(Correlation, IntervalOfAMeanByHand) {
  // 1, 2, 3: mean 2, s 1, t of 2 degrees 4.303: 4.303 / sqrt(3) = 2.4844.
  const Mean mean = mean_of(Values{1, 2, 3});
  EXPECT_EQ(mean.value, 2);
  EXPECT_NEAR(*mean.half_width, 2.48434, 1e-4);
  EXPECT_FALSE(mean_of(Values{4}).half_width);
}

neural::Network network_from(const std::string& yaml) {
  return parse_config(yaml, "n.yaml", ConfigSyntax::yaml)
      .and_then(neural::read_networks)
      .value()
      .front();
}

double score(const Scores& scores, Proxy proxy) {
  return scores[static_cast<std::size_t>(proxy)].value();
}

TEST(Proxies, OfOneLinearLayerByHand) {
  // Weights 0: softmax is 1/2, the logit gradients of label 0 are -1/2, 1/2. Inputs (1, -2) of
  // label 0 and (3, 1) of label 1: gradients by w00, w01, w10, w11 are -.5, 1, .5, -1 and 1.5, .5,
  // -1.5,
  // -.5. Sums of signs: 0, 2, 0, -2: GradSign 4, mean 1. Mean gradient: .5, .75, -.5, -.75: norm
  // sqrt(2 (.25 + .5625)) = 1.27475. Synflow of weights 0 is 0.
  const neural::Network network =
      network_from("{input: [2], classes: 2, layers: [{kind: linear, features: 2, bias: false}]}");
  const neural::Samples samples{{1, -2, 3, 1}, {0, 1}};
  const Scores scores = scores_of(network, Values(4), samples);
  EXPECT_EQ(score(scores, Proxy::gradsign_sum), 4);
  EXPECT_EQ(score(scores, Proxy::gradsign_mean), 1);
  EXPECT_NEAR(score(scores, Proxy::gradient_norm), 1.274755, 1e-6);
  EXPECT_EQ(score(scores, Proxy::synflow), 0);
  EXPECT_EQ(score(scores, Proxy::parameters), 4);
  EXPECT_EQ(score(scores, Proxy::flops), 8);
  EXPECT_FALSE(scores[static_cast<std::size_t>(Proxy::jacobian_covariance)]);  // constant: 0
  // Weights -1, 2, 3, -4: |w| sums to 10, and each weight's flow is |w| x 1.
  EXPECT_EQ(score(scores_of(network, {-1, 2, 3, -4}, samples), Proxy::synflow), 10);
}

TEST(Proxies, JacobianCovarianceOfTwoSamplesByHand) {
  // One linear layer: both samples have the same gradient by the input, correlation 1. C + eI has
  // eigenvalues 2 + e and e: -(log(2 + e) + log e + 1 / (2 + e) + 1 / e), e = 1e-5, is -99989.68.
  const neural::Network network =
      network_from("{input: [3], classes: 2, layers: [{kind: linear, features: 2, bias: false}]}");
  const neural::Samples samples{{1, 2, 3, 4, 5, 6}, {0, 1}};
  const double e = 1e-5;
  EXPECT_NEAR(score(scores_of(network, {1, 0, 0, 0, 1, 0}, samples), Proxy::jacobian_covariance),
              -(std::log(2 + e) + std::log(e) + 1 / (2 + e) + 1 / e), 1e-3);
}

std::vector<neural::Network> few_cells(std::int64_t count) {
  std::vector<neural::Network> networks;
  const neural::CellSpace space{{{3, 6, 6}}, 4, {4}, count, 5};
  for (const neural::Cell& cell : neural::draw_cells(space)) {
    networks.push_back(neural::network_of(space, "cell" + std::to_string(networks.size()), cell));
  }
  return networks;
}

TEST(Ranking, IsTheSameOnAnyNumberOfThreads) {
  const auto networks = few_cells(6);
  RankingOptions options{.samples = 8, .seeds = 2, .threads = 1};
  const Ranking one = rank_networks(networks, {}, nullptr, {}, options).value();
  options.threads = 3;
  const Ranking three = rank_networks(networks, {}, nullptr, {}, options).value();
  ASSERT_EQ(one.networks.size(), 6U);
  for (std::size_t i = 0; i < networks.size(); ++i) {
    for (std::size_t p = 0; p < kProxies; ++p) {
      ASSERT_EQ(one.networks[i].scores[p].has_value(), three.networks[i].scores[p].has_value());
      if (one.networks[i].scores[p]) {
        EXPECT_EQ(one.networks[i].scores[p]->value, three.networks[i].scores[p]->value);
      }
    }
  }
  EXPECT_EQ(one.pareto, three.pareto);
}

TEST(Ranking, PutsOnTheParetoListWhatNothingBeats) {
  const machine::Machine machine = machine::load_machine("dgx-a100-80g").value();
  const Ranking ranking =
      rank_networks(few_cells(8), {}, &machine, {64, 1}, {.samples = 8, .seeds = 1}).value();
  const auto beats = [](const Ranked& a, const Ranked& b) {
    return a.mean_rank <= b.mean_rank && a.price->step_time <= b.price->step_time &&
           a.price->memory <= b.price->memory && *a.price->energy <= *b.price->energy &&
           (a.mean_rank < b.mean_rank || a.price->step_time < b.price->step_time ||
            a.price->memory < b.price->memory || *a.price->energy < *b.price->energy);
  };
  ASSERT_FALSE(ranking.pareto.empty());
  for (const Ranked& one : ranking.networks) {
    const bool beaten = std::ranges::any_of(ranking.networks,
                                            [&](const Ranked& other) { return beats(other, one); });
    EXPECT_EQ(one.pareto, !beaten) << one.name;
  }
}

TEST(Ranking, CorrelatesWithStatedAccuracies) {
  // Accuracies in the order of the parameters: that baseline's rho is 1, and nothing is left of the
  // others given it.
  auto networks = few_cells(7);
  for (neural::Network& network : networks) {
    network.accuracy = static_cast<double>(network.weights) / 1e6;
  }
  const Ranking ranking =
      rank_networks(networks, {}, nullptr, {}, {.samples = 4, .seeds = 2}).value();
  for (const Correlation& row : ranking.correlations) {
    if (row.proxy == Proxy::parameters) {
      EXPECT_NEAR(row.spearman->value, 1, 1e-12);
      EXPECT_NEAR(row.kendall->value, 1, 1e-12);
    }
    EXPECT_FALSE(row.partial);
  }
  EXPECT_EQ(ranking.correlations.size(), 7U + 6U);
}

TEST(Price, GrowsWithTheBatchAndSharesItOverDevices) {
  // 7 x 9 + 9 + 9 x 3 + 3 = 102 weights of 16 bytes; per sample 9 + 9 + 3 values of 2 bytes.
  const neural::Network network = network_from(
      "{input: [7], classes: 3, layers: [{kind: linear, features: 9}, {kind: relu}, "
      "{kind: linear, features: 3}]}");
  const machine::Machine machine = machine::load_machine("dgx-a100-80g").value();
  const Price one = price_of(network, machine, {1 << 20, 1}).value();
  EXPECT_EQ(one.memory.value(), 102 * 16 + 21 * 2 * (std::int64_t{1} << 20));
  const Price four = price_of(network, machine, {1 << 20, 4}).value();
  EXPECT_EQ(four.memory.value(), 102 * 16 + 21 * 2 * (std::int64_t{1} << 18));
  EXPECT_LT(four.step_time, one.step_time);
  EXPECT_GT(one.energy->value(), 0);
  EXPECT_THAT(price_of(network, machine, {10, 4}).error().to_string(),
              HasSubstr("multiple of the 4 devices"));
  EXPECT_FALSE(price_of(network, machine, {std::int64_t{1} << 31, 1}));
}

}  // namespace
}  // namespace orrery::rank
