// SPDX-License-Identifier: Apache-2.0
/// Prompts with images: what the encoder adds to steps, weights and prompts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serving/requests/generate.h"
#include "serving/serve.h"
#include "workload/zoo/image_tokens.h"

namespace orrery::serving {
namespace {

struct Sight {
  zoo::Model model = zoo::load_model("qwen2.5-vl-7b").value();
  machine::Machine machine = machine::load_machine("dgx-h100").value();
  Engine engine = load_engine("vllm@0.19").value();

  /// `count` images behind 100 tokens of every prompt.
  requests::Generator of(std::int64_t count, zoo::ImageSize size) const {
    const zoo::ImageTokens seen = zoo::image_tokens(*model.vision, size);
    requests::Generator generator{.arrival = requests::Arrival::fixed, .input = {.first = 100}};
    generator.output = {.first = 4};
    generator.count = 1;
    generator.images = count;
    generator.sizes = {{.image = {.tokens = seen.tokens,
                                  .tiles = seen.tiles,
                                  .patches = seen.patches,
                                  .encoded = seen.encoded}}};
    return generator;
  }
  serving::Run serve(const std::vector<requests::Request>& list) const {
    return serving::serve(model, machine, engine, list).value();
  }
};

TEST(Images, AreBehindTheTextOfTheirPrompt) {
  const Sight sight;
  const auto drawn = requests::generate(sight.of(2, {1280, 720}));
  ASSERT_EQ(drawn.size(), 1U);
  ASSERT_EQ(drawn[0].images.size(), 2U);
  EXPECT_EQ(drawn[0].images[0].at, 100);
  EXPECT_EQ(drawn[0].images[1].at, 100 + 1198);
  EXPECT_EQ(drawn[0].input, 100 + 2 * 1198);
}

TEST(Images, OfLaterTurnsFollowThoseBefore) {
  const Sight sight;
  requests::Generator generator = sight.of(1, {1280, 720});
  generator.count = generator.turns = 2;
  const auto drawn = requests::generate(generator);
  ASSERT_EQ(drawn[1].images.size(), 2U);
  EXPECT_EQ(drawn[1].images[0].at, 100);
  // The first prompt, its 4 tokens, 100 of the second.
  EXPECT_EQ(drawn[1].images[1].at, 100 + 1198 + 4 + 100);
  const serving::Run run = sight.serve(drawn);  // the first image is found in the prefix cache
  EXPECT_EQ(run.images, 2);
}

TEST(Images, SizesHaveTheirShares) {
  const Sight sight;
  requests::Generator generator = sight.of(1, {1280, 720});
  generator.sizes.push_back({.image = {.tokens = 7}, .share = 3});
  generator.count = 4000;
  std::int64_t small = 0;
  for (const requests::Request& request : requests::generate(generator)) {
    small += request.images[0].tokens == 7 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(small), 3000, 3 * 27.4);  // sqrt(4000 x 3/4 x 1/4) = 27.4
}

TEST(Images, DelayTheFirstTokenByTheirEncoding) {
  const Sight sight;
  const auto seen = requests::generate(sight.of(1, {1280, 720}));
  auto text = seen;
  text[0].images.clear();
  const serving::Run with = sight.serve(seen);
  const serving::Run without = sight.serve(text);
  EXPECT_EQ(with.images, 1);
  EXPECT_EQ(with.requests[0].first - without.requests[0].first, with.encoding);
  EXPECT_EQ(with.requests[0].last - without.requests[0].last, with.encoding);
  EXPECT_EQ(without.encoding, Time(0));
}

TEST(Images, TakeTheFlopsOfTheEncodersLayers) {
  const Sight sight;
  const serving::Run run = sight.serve(requests::generate(sight.of(1, {1280, 720})));
  // 4,784 patches through 32 layers of 19.7 M parameters: 6.03 TFLOP; 28 of them attend within
  // windows of 64, 4 to all: 4 x 1280 x 4784 x (28 x 64 + 4 x 4784) = 0.51 TFLOP; merged,
  // 1,196 rows through 44.6 M: 0.11 TFLOP. An H100 does 989 TFLOP/s: 6.7 ms.
  EXPECT_GT(to_seconds(run.encoding), 6.7e-3);
  EXPECT_LT(to_seconds(run.encoding), 2.5 * 6.7e-3);
}

TEST(Images, AreEncodedOnceHoweverTheirPromptIsCut) {
  Sight sight;
  sight.engine.max_num_batched_tokens = 512;
  sight.engine.max_num_seqs = 4;
  requests::Generator generator = sight.of(3, {1280, 720});
  generator.count = 5;
  EXPECT_EQ(sight.serve(requests::generate(generator)).images, 15);
}

TEST(Images, EncodersAreAmongTheWeights) {
  Sight sight;
  zoo::Model text = sight.model;
  text.vision = nullptr;
  const auto weights = [&](const zoo::Model& model) {
    return Server::make(model, sight.machine, sight.engine)->run({}).weights;
  };
  // 676,550,144 parameters in 16 bits.
  EXPECT_EQ(weights(sight.model) - weights(text), Bytes(2 * 676'550'144LL));
  sight.engine.tp = 4;  // of which patches' and norms' parameters and biases of rows are on all
  const Bytes quarter = weights(sight.model) - weights(text);
  EXPECT_GT(quarter, Bytes(2 * 676'550'144LL / 4));
  EXPECT_LT(quarter, Bytes(2 * 676'550'144LL / 4 * 11 / 10));
}

TEST(Images, AnEncoderThatTpDoesNotDivideIsWholeEverywhere) {
  Sight sight;
  sight.engine.tp = 8;  // 3,420 / 8 is no whole number; nor do 8 ranks divide 28 heads
  sight.model = zoo::load_model("qwen3-vl-8b").value();
  EXPECT_THAT(Server::make(sight.model, sight.machine, sight.engine)->run({}).notes,
              ::testing::Not(::testing::Contains(::testing::HasSubstr("encoder of images"))));
  auto vision = std::make_shared<zoo::Vision>(*sight.model.vision);
  vision->encoder.ffn = 4'300;
  sight.model.vision = vision;
  EXPECT_THAT(Server::make(sight.model, sight.machine, sight.engine)->run({}).notes,
              ::testing::Contains(::testing::HasSubstr("whole on every device")));
}

}  // namespace
}  // namespace orrery::serving
