// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "base/file.h"
#include "workload/zoo/model.h"

namespace orrery {
namespace {

Model shipped(const std::string& name) {
  auto model = load_model(name);
  EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().to_string());
  return model.value_or(Model{});
}

struct Published {
  const char* name;
  std::int64_t parameters;
};

TEST(Parameters, equal_the_published_counts_exactly) {
  // Counts of the published checkpoints, as Hugging Face reports them ("Tensor size" of the model
  // pages; GPT-2's without the tied lm_head and attention masks).
  constexpr auto kPublished = std::to_array<Published>({
      {"gpt2", 124'439'808},
      {"gpt2-medium", 354'823'168},
      {"gpt2-large", 774'030'080},
      {"gpt2-xl", 1'557'611'200},
      {"llama-2-7b", 6'738'415'616},
      {"llama-2-13b", 13'015'864'320},
      {"llama-2-70b", 68'976'648'192},
      {"llama-3-8b", 8'030'261'248},
      {"llama-3-70b", 70'553'706'496},
      {"llama-3.1-8b", 8'030'261'248},
      {"llama-3.1-70b", 70'553'706'496},
      {"llama-3.1-405b", 405'853'388'800},
      {"llama-3.2-1b", 1'235'814'400},
      {"llama-3.2-3b", 3'212'749'824},
      {"mistral-7b", 7'241'732'096},
  });
  for (const Published& row : kPublished) {
    EXPECT_EQ(count_parameters(shipped(row.name)).total, row.parameters) << row.name;
  }
}

TEST(Parameters, of_gpt2_add_up_by_hand) {
  // h = 768: layer 12 h^2 + 13 h = 7,077,888 + 9,984; tokens 50257 h; positions 1024 h; norm 2 h.
  const ParameterCount count = count_parameters(shipped("gpt2"));
  EXPECT_EQ(count.per_kind.at(0), 7'087'872);
  EXPECT_EQ(count.embedding, 38'597'376);
  EXPECT_EQ(count.position, 786'432);
  EXPECT_EQ(count.final_norm, 1'536);
  EXPECT_EQ(count.head, 0);
  EXPECT_EQ(count.total, 12 * 7'087'872 + 38'597'376 + 786'432 + 1'536);
}

TEST(Parameters, of_llama_2_70b_add_up_by_hand) {
  // h = 8192, 64 query and 8 key-value heads of 128, ffn 28672: q and o 2 h^2, k and v 2 h 1024,
  // MLP 3 h 28672, two norms h: 134,217,728 + 16,777,216 + 704,643,072 + 16,384.
  const ParameterCount count = count_parameters(shipped("llama-2-70b"));
  EXPECT_EQ(count.per_kind.at(0), 855'654'400);
  EXPECT_EQ(count.embedding, 32'000 * 8'192);
  EXPECT_EQ(count.position, 0);
  EXPECT_EQ(count.head, 32'000 * 8'192);
}

struct Table1 {
  const char* name;
  double billions;
};

TEST(Parameters, of_megatron_tables_follow_the_published_formula) {
  // Narayanan et al. 2021, eq. 2: P = 12 L h^2 (1 + 13/(12 h) + (V + s)/(12 L h)), which leaves out
  // the final norm's 2 h; Table 1 prints it in billions with one digit.
  constexpr auto kTable1 = std::to_array<Table1>({
      {"gpt-1.7b", 1.7},
      {"gpt-3.6b", 3.6},
      {"gpt-7.5b", 7.5},
      {"gpt-18.4b", 18.4},
      {"gpt-39.1b", 39.1},
      {"gpt-76.1b", 76.1},
      {"gpt-145.6b", 145.6},
      {"gpt-310.1b", 310.1},
      {"mt-nlg-530b", 529.6},
      {"gpt-1t", 1008.0},
  });
  for (const Table1& row : kTable1) {
    const Model m = shipped(row.name);
    // 12 L h^2 (...) without fractions.
    const std::int64_t formula = 12 * m.layers * m.hidden * m.hidden + 13 * m.layers * m.hidden +
                                 (m.vocab + m.max_positions) * m.hidden;
    EXPECT_EQ(count_parameters(m).total, formula + 2 * m.hidden) << row.name;
    EXPECT_EQ(std::round(static_cast<double>(formula) / 1e8) / 10, row.billions) << row.name;
    EXPECT_EQ(m.vocab, 51'200) << row.name;
    EXPECT_EQ(m.max_positions, 2'048) << row.name;
  }
}

TEST(Parameters, of_gpt3_and_of_korthikanti_22b_round_to_the_published_billions) {
  // Brown et al. 2020, Table D.1: 174,600 M parameters for GPT-3 175B; Narayanan et al. 2021, Table
  // 2: 174.6 B. Korthikanti et al. 2022, Table 3: 22B.
  EXPECT_EQ(std::llround(static_cast<double>(count_parameters(shipped("gpt3-175b")).total) / 1e8),
            1'746);
  EXPECT_EQ(std::llround(static_cast<double>(count_parameters(shipped("gpt-22b")).total) / 1e9),
            22);
}

/// Sum over the operators of a model whose vocabulary is not padded.
std::int64_t operator_parameters(const Model& model) {
  const ShapeOptions options{.sequence = 8};
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    for (const ModelOperator& op : layer_operators(model, options, layer_kind(model, i))) {
      total += op.parameters;
    }
  }
  for (const ModelOperator& op : embedding_operators(model, options)) {
    total += op.parameters;
  }
  for (const ModelOperator& op : head_operators(model, options)) {
    total += op.parameters;
  }
  return total;
}

TEST(Parameters, of_all_operators_together_are_those_of_the_model) {
  const std::vector<std::string> names = list_configs("models");
  ASSERT_GE(names.size(), 27U);
  for (const std::string& name : names) {
    const Model model = shipped(name);
    EXPECT_EQ(model.name, name);
    EXPECT_EQ(operator_parameters(model), count_parameters(model).total) << name;
  }
}

TEST(Parameters, of_the_gpt_shape_function_are_those_of_the_shipped_file) {
  const Model made = gpt_model("gpt-18.4b", 40, 6144, 48, 2048, 51200);
  const Model read = shipped("gpt-18.4b");
  EXPECT_EQ(count_parameters(made).total, count_parameters(read).total);
  EXPECT_EQ(made.head_dim, read.head_dim);
  EXPECT_EQ(made.ffn, read.ffn);
  EXPECT_EQ(made.dropout, read.dropout);
  EXPECT_EQ(made.attention_dropout, read.attention_dropout);
  EXPECT_EQ(made.embedding_dropout, read.embedding_dropout);
}

}  // namespace
}  // namespace orrery
