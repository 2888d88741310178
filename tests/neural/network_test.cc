// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdlib>
#include <numeric>

#include "neural/cell.h"
#include "neural/execute.h"
#include "neural/read_network.h"
#include "neural/train.h"

namespace orrery::neural {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Result<std::vector<Network>> read(const std::string& yaml) {
  return parse_config(yaml, "net.yaml", ConfigSyntax::yaml).and_then(read_networks);
}

Network network_from(const std::string& yaml) {
  return read(yaml).value().front();
}

const std::string kImage = R"(
input: [2, 5, 4]
classes: 3
layers:
  - {name: stem, kind: convolution, channels: 4, kernel: 3, bias: true}
  - {kind: batch_norm}
  - {name: act, kind: tanh}
  - {kind: cell, channels: 4, edges: [skip, conv3x3, none, conv1x1, average_pool, skip]}
  - {name: sum, kind: add, inputs: [layer3, act]}
  - {kind: max_pool, kernel: 2, stride: 2}
  - {kind: convolution, channels: 3, kernel: 2, stride: 2}
  - {kind: gelu}
  - {kind: flatten}
  - {kind: layer_norm}
  - {kind: linear, features: 3}
)";

const std::string kTokens = R"(
input: [5, 6]
classes: 4
layers:
  - {name: embed, kind: linear, features: 8}
  - {kind: layer_norm}
  - {name: mix, kind: attention, heads: 2}
  - {name: more, kind: add, inputs: [mix, embed]}
  - {kind: relu}
  - {kind: global_pool}
  - {kind: linear, features: 4}
)";

const std::string kPlain = R"(
input: [7]
classes: 3
layers:
  - {kind: linear, features: 9}
  - {kind: relu}
  - {kind: linear, features: 6, bias: false}
  - {kind: tanh}
  - {kind: linear, features: 3}
)";

Samples samples_for(const Network& network, std::size_t count, std::uint64_t seed) {
  return draw_samples({network.input, network.classes, 1}, count, seed);
}

double loss_of(const Network& network, const std::vector<double>& weights, const Samples& samples,
               Arithmetic arithmetic) {
  const Activations activations = forward(network, weights, samples.values, arithmetic);
  return cross_entropy(network, activations.logits(), samples.labels).sum;
}

/// Sums over samples of gradients, and of their signs, of one backward pass.
template <class Kind>
auto gradients_of(const Network& network, const std::vector<double>& weights,
                  const Samples& samples, double factor = 1,
                  Arithmetic arithmetic = Arithmetic::alone) {
  Activations activations = forward(network, weights, samples.values, arithmetic);
  Loss loss = cross_entropy(network, activations.logits(), samples.labels);
  for (double& value : loss.logit_gradients) {
    value *= factor;
  }
  Kind gradients(network);
  backward(network, weights, activations, loss.logit_gradients, &gradients, arithmetic);
  return gradients.sum();
}

Samples sample_at(const Samples& samples, std::size_t i) {
  const std::size_t size = samples.values.size() / samples.count();
  const auto first = samples.values.begin() + static_cast<std::ptrdiff_t>(i * size);
  return {{first, first + static_cast<std::ptrdiff_t>(size)}, {samples.labels[i]}};
}

TEST(Network, GradientsAreTheSlopesOfTheLoss) {
  // (loss(w + h) - loss(w - h)) / 2h for every weight; the error of the difference is O(h^2).
  constexpr double kStep = 1e-5;
  for (const std::string& yaml : {kImage, kTokens, kPlain}) {
    const Network network = network_from(yaml);
    for (const Arithmetic arithmetic : {Arithmetic::alone, Arithmetic::together}) {
      std::vector<double> weights = draw_weights(network, 3);
      const Samples samples = samples_for(network, 3, 5);
      const std::vector<double> gradients =
          gradients_of<SumGradients>(network, weights, samples, 1, arithmetic);
      for (std::size_t k = 0; k < weights.size(); ++k) {
        const double kept = weights[k];
        weights[k] = kept + kStep;
        const double above = loss_of(network, weights, samples, arithmetic);
        weights[k] = kept - kStep;
        const double below = loss_of(network, weights, samples, arithmetic);
        weights[k] = kept;
        ASSERT_NEAR(gradients[k], (above - below) / (2 * kStep),
                    1e-6 + 1e-5 * std::abs(gradients[k]))
            << network.layers.size() << " layers, weight " << k;
      }
    }
  }
}

TEST(Network, ABatchIsItsSamplesBitForBit) {
  for (const std::string& yaml : {kImage, kTokens, kPlain}) {
    const Network network = network_from(yaml);
    const std::vector<double> weights = draw_weights(network, 2);
    const Samples samples = samples_for(network, 6, 9);
    const Activations together = forward(network, weights, samples.values, Arithmetic::alone);
    for (std::size_t i = 0; i < samples.count(); ++i) {
      const Activations one =
          forward(network, weights, sample_at(samples, i).values, Arithmetic::alone);
      for (std::size_t c = 0; c < one.logits().size(); ++c) {
        EXPECT_EQ(one.logits()[c], together.logits()[i * one.logits().size() + c]);
      }
    }
  }
}

TEST(SignGradients, OfABatchAreThoseOfTheLoopOverSamples) {
  // The loop: the gradient of every sample alone, then its sign. Exact, also for images and tokens.
  for (const std::string& yaml : {kImage, kTokens, kPlain}) {
    const Network network = network_from(yaml);
    const std::vector<double> weights = draw_weights(network, 4);
    const Samples samples = samples_for(network, 8, 1);
    std::vector<std::int32_t> looped(network.weights);
    for (std::size_t i = 0; i < samples.count(); ++i) {
      const std::vector<double> own =
          gradients_of<SumGradients>(network, weights, sample_at(samples, i));
      for (const Parameter& parameter : network.parameters) {
        for (std::size_t k = 0; parameter.matrix && k < parameter.size(); ++k) {
          const double value = own[parameter.offset + k];
          looped[parameter.offset + k] += value > 0 ? 1 : value < 0 ? -1 : 0;
        }
      }
    }
    EXPECT_EQ(gradients_of<SignGradients>(network, weights, samples), looped);
  }
}

TEST(SignGradients, AreThoseOfTheLoopWhereProductsVanish) {
  // 1e-200 x 1e-200 is 0 in double, so the gradient is 0 and has no sign; 1e-200 x 1 has one.
  const Network network =
      network_from("{input: [2], classes: 2, layers: [{kind: linear, features: 2, bias: false}]}");
  SignGradients signs(network);
  const std::vector<double> delta{1e-200, -1e-200};
  const std::vector<double> input{1e-200, 1};
  signs.product({&network.parameters[0], 1, 1, delta.data(), input.data()});
  EXPECT_THAT(signs.sum(), ::testing::ElementsAre(0, 1, 0, -1));
}

RC_GTEST_PROP(SignGradients, FollowTheirLaws, ()) {
  const Network network = network_from(kPlain);
  const auto seed = *rc::gen::inRange<std::uint64_t>(1, 1000);
  const auto count = *rc::gen::inRange<std::size_t>(1, 9);
  const std::vector<double> weights = draw_weights(network, seed);
  const Samples samples = samples_for(network, count, seed);
  const auto sums = gradients_of<SignGradients>(network, weights, samples);
  for (const Parameter& parameter : network.parameters) {
    for (std::size_t k = parameter.offset; k < parameter.offset + parameter.size(); ++k) {
      // Within n of 0, and 0 of what is no matrix.
      RC_ASSERT(std::abs(sums[k]) <= (parameter.matrix ? static_cast<int>(count) : 0));
    }
  }
  // Another order and a positive factor change nothing; every sample twice doubles.
  RC_ASSERT(gradients_of<SignGradients>(network, weights, draw_from(samples, count, 7)) == sums);
  RC_ASSERT(gradients_of<SignGradients>(network, weights, samples, 12.5) == sums);
  Samples twice = samples;
  twice.values.insert(twice.values.end(), samples.values.begin(), samples.values.end());
  twice.labels.insert(twice.labels.end(), samples.labels.begin(), samples.labels.end());
  std::vector<std::int32_t> doubled = sums;
  for (std::int32_t& sum : doubled) {
    sum *= 2;
  }
  RC_ASSERT(gradients_of<SignGradients>(network, weights, twice) == doubled);
  // Of one sample they are the signs themselves.
  const Samples one = sample_at(samples, 0);
  const auto own = gradients_of<SumGradients>(network, weights, one);
  const auto signs = gradients_of<SignGradients>(network, weights, one);
  for (const Parameter& parameter : network.parameters) {
    for (std::size_t k = parameter.offset;
         parameter.matrix && k < parameter.offset + parameter.size(); ++k) {
      RC_ASSERT(std::abs(signs[k]) == (own[k] != 0 ? 1 : 0));
    }
  }
}

TEST(Network, HasItsParametersAndFlops) {
  // Linear 7 x 9 + 9, 9 x 6, 6 x 3 + 3: 147 weights; 2 (63 + 54 + 18) = 270 FLOPs.
  const Network plain = network_from(kPlain);
  EXPECT_EQ(plain.weights, 147U);
  EXPECT_EQ(forward_flops(plain), 270);
  // Linear 6 x 8 + 8, norm 16, four 8 x 8, linear 8 x 4 + 4: 364 weights. FLOPs: 2 x 5 tokens x
  // (48 + 256), 4 x 25 x 8 for scores and mixed values, 2 x 32: 3,904.
  const Network tokens = network_from(kTokens);
  EXPECT_EQ(tokens.weights, 364U);
  EXPECT_EQ(forward_flops(tokens), 3904);
}

TEST(Train, LearnsTheMadeUpPatterns) {
  const Network network = network_from(
      "{input: [16], classes: 4, layers: [{kind: linear, features: 24}, {kind: relu}, "
      "{kind: linear, features: 4}]}");
  std::vector<double> weights = draw_weights(network, 1);
  const Task task{network.input, network.classes, 0.5};
  const Samples test = draw_samples(task, 200, 2);
  const double before = accuracy_of(network, weights, test);
  train(network, weights, draw_samples(task, 256, 3), {.epochs = 8});
  EXPECT_LT(before, 0.6);
  EXPECT_GT(accuracy_of(network, weights, test), 0.85);
}

TEST(CellSpace, DrawsDifferentCellsAndCutsWhatIsNone) {
  const auto networks = read("{name: s, input: [3, 8, 8], classes: 10, stages: [4, 8], count: 50}");
  ASSERT_TRUE(networks);
  EXPECT_EQ(networks->size(), 50U);
  EXPECT_EQ(networks->front().name, "s-000");
  Cell cut{};  // none everywhere: no input reaches the output
  const CellSpace space{{{3, 8, 8}}, 10, {4, 8}, 1, 1};
  const Network network = network_of(space, "cut", cut);
  const std::vector<double> weights = draw_weights(network, 1);
  const Samples samples = samples_for(network, 4, 1);
  const Activations activations = forward(network, weights, samples.values, Arithmetic::alone);
  for (const double logit : activations.logits()) {
    EXPECT_EQ(logit, 0);
  }
}

TEST(ReadNetwork, NamesEveryMistake) {
  const auto wrong = read(R"(
input: [3, 8, 8]
classes: 10
colour: red
layers:
  - {kind: convolutoin, channels: 8}
  - {kind: linear}
  - {kind: attention, heads: 0}
)");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().to_string(),
              AllOf(HasSubstr("net.yaml:6"), HasSubstr("did you mean 'convolution'"),
                    HasSubstr("features"), HasSubstr("heads"), HasSubstr("colour")));
  const auto shapes =
      read("{input: [3, 8, 8], classes: 10, layers: [{kind: linear, features: 10}]}");
  EXPECT_THAT(shapes.error().to_string(), HasSubstr("not 3 x 8 x 8"));
  const auto last = read("{input: [4], classes: 10, layers: [{kind: linear, features: 9}]}");
  EXPECT_THAT(last.error().to_string(), HasSubstr("10 outputs"));
  const auto inputs = read(
      "{input: [4], classes: 2, layers: [{name: a, kind: linear, features: 2}, "
      "{kind: add, inputs: [a, b]}]}");
  EXPECT_THAT(inputs.error().to_string(), HasSubstr("there is no b"));
  EXPECT_FALSE(read("{input: [], classes: 1, layers: []}"));
  EXPECT_FALSE(read("{input: [3, 8, 8], classes: 2, stages: [], count: 99999}"));
  EXPECT_FALSE(load_networks("/no/such/folder"));
}

TEST(ReadSamples, NamesRowsThatFitNoSample) {
  const auto table = parse_csv("label,a,b\n0,1,2\n7,x,2\n", "s.csv");
  ASSERT_TRUE(table);
  EXPECT_THAT(read_samples(*table, {{2}}, 3).error().to_string(),
              AllOf(HasSubstr("s.csv:3"), HasSubstr("'7'"), HasSubstr("'x'")));
  EXPECT_THAT(read_samples(*table, {{5}}, 3).error().to_string(), HasSubstr("5 values"));
}

}  // namespace
}  // namespace orrery::neural
