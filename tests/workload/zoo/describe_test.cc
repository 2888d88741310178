// SPDX-License-Identifier: Apache-2.0
#include "workload/zoo/describe.h"

#include <gtest/gtest.h>

namespace orrery::zoo {
namespace {

TEST(Describe, gpt2_shows_shape_exact_parameters_and_flops) {
  // FLOPs per token and forward pass: 24 L h^2 + 4 L s h + 2 V h = 169,869,312 + 37,748,736 +
  // 77,194,752 = 284,812,800.
  EXPECT_EQ(describe(gpt_model("gpt2", 12, 768, 12, 1024, 50257)),
            R"(gpt2 (gpt2)
  layers              12
  hidden              768
  heads               12 of width 64
  MLP                 gelu, inner width 3,072
  norm                layer_norm
  positions           learned, 1,024
  vocabulary          50,257
  output              shares the embedding
  dropout             0.1 residual, 0.1 attention, 0.1 embedding
parameters
  layers                          85,054,464  = 12 x 7,087,872
  embedding                       38,597,376
  position table                     786,432
  final norm                           1,536
  total                          124,439,808
model FLOPs per token, sequences of 1,024
  forward             2.848e+08
  forward + backward  8.544e+08
)");
}

TEST(Describe, grouped_queries_and_an_untied_output_are_named) {
  Model m = gpt_model("other", 1, 64, 8, 16, 100);
  m.kv_heads = 2;
  m.tied_embedding = false;
  m.dropout = m.attention_dropout = m.embedding_dropout = 0;
  const std::string text = describe(m);
  EXPECT_NE(text.find("8 of width 8, 2 for keys and values"), std::string::npos) << text;
  EXPECT_NE(text.find("output              a matrix of its own"), std::string::npos) << text;
  EXPECT_NE(text.find("output                               6,400"), std::string::npos) << text;
  EXPECT_NE(text.find("dropout             none"), std::string::npos) << text;
}

}  // namespace
}  // namespace orrery::zoo
