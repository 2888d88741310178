// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "base/file.h"
#include "workload/zoo/model.h"

namespace orrery::zoo {
namespace {

Model shipped_model(const std::string& name) {
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
    EXPECT_EQ(count_parameters(shipped_model(row.name)).total, row.parameters) << row.name;
  }
}

TEST(Parameters, of_other_dense_families_equal_the_published_counts) {
  // Counts of the published checkpoints, as Hugging Face reports them, without untied copies that
  // a file stores of a tied matrix. Gemma 3: the text part.
  constexpr auto kPublished = std::to_array<Published>({
      {"gpt-j-6b", 6'050'882'784},
      // 27 of Mamba (147,450,624), 25 MLPs (140,497,280), 4 attentions (55,054,720), two
      // embeddings (587,202,560) and a norm (4,480).
      {"nemotron-nano-9b-v2", 8'888'227'328},
      // 28 of Mamba (168,504,704), 28 MLPs (209,720,320), 6 attentions (62,919,680), two
      // embeddings and a norm; published as 12.3B.
      {"nemotron-nano-12b-v2", 12'310'001'152},
      {"gpt-neox-20b", 20'554'567'680},  // Black et al. 2022: 20,554,567,680
      {"opt-6.7b", 6'658'473'984},
      {"bloom-7b1", 7'069'016'064},
      {"bloom-176b", 176'247'271'424},  // Scao et al. 2022: 176,247M
      {"falcon-7b", 6'921'720'704},
      {"phi-2", 2'779'683'840},
      {"phi-3-mini-4k", 3'821'079'552},
      {"phi-4", 14'659'507'200},
      {"phi-4-mini", 3'836'021'760},
      {"gemma-2b", 2'506'172'416},
      {"gemma-7b", 8'537'680'896},
      {"gemma-2-2b", 2'614'341'888},
      {"gemma-2-9b", 9'241'705'984},
      {"gemma-2-27b", 27'227'128'320},
      {"gemma-3-1b", 999'885'952},
      {"qwen2.5-7b", 7'615'616'512},
      {"qwen2.5-72b", 72'706'203'648},
      {"olmo-2-7b", 7'298'617'344},
      {"qwen3-0.6b", 596'049'920},
      {"qwen3-1.7b", 1'720'574'976},
      {"qwen3-4b", 4'022'468'096},
      {"qwen3-8b", 8'190'735'360},
      {"qwen3-14b", 14'768'307'200},
      {"qwen3-32b", 32'762'123'264},
      {"bert-base", 110'106'428},
      {"bert-large", 336'226'108},
      {"t5-base", 222'903'552},
      {"t5-large", 737'668'096},
      {"t5-3b", 2'851'598'336},
      {"t5-11b", 11'307'321'344},
      {"vit-base-16", 86'567'656},
      {"vit-large-16", 304'326'632},
  });
  for (const Published& row : kPublished) {
    EXPECT_EQ(count_parameters(shipped_model(row.name)).total, row.parameters) << row.name;
  }
}

TEST(Parameters, of_mixtures_equal_the_published_counts) {
  // As Hugging Face reports them, without multi-token prediction and without the balancing bias of
  // DeepSeek-V3's and Nemotron's routers, which no gradient trains: DeepSeek-V3 671,026,419,200
  // less 58 x 256, Nemotron 3 Nano 31,577,940,288 less 23 x 128, Kimi K2 1,026,408,232,448 less
  // 60 x 384.
  constexpr auto kPublished = std::to_array<Published>({
      {"mixtral-8x7b", 46'702'792'704},
      {"mixtral-8x22b", 140'630'071'296},
      {"phi-3.5-moe", 41'873'153'344},
      {"qwen1.5-moe-a2.7b", 14'315'784'192},
      {"qwen3-30b-a3b", 30'532'122'624},
      {"qwen3-235b-a22b", 235'093'634'560},
      {"deepseek-v2-lite", 15'706'484'224},
      {"deepseek-v2", 235'741'434'880},
      {"deepseek-v3", 671'026'419'200 - 58 * 256},
      {"kimi-k2", 1'026'408'232'448 - 60 * 384},
      {"kimi-k2.5", 1'026'408'232'448 - 60 * 384},  // its text part
      // By hand from the published shapes, in agreement with the published 80B, 397B, 230B and 355B
      // (with the layer of prediction). V3.2: V3 and an indexer a layer of 1,536 x 64 x 128 +
      // 7,168 x (128 + 64) + 2 x 128 = 13,959,424.
      {"qwen3-next-80b-a3b", 79'674'391'296},
      {"qwen3.5-397b-a17b", 396'346'350'336},
      {"minimax-m2", 228'689'748'992},
      {"glm-4.5", 352'797'814'784},
      {"deepseek-v3.2", 671'026'419'200 - 58 * 256 + 61 * 13'959'424},
      // 411,041,792 of the table, 36 x 102,286,976 of Mamba-2, 4 x 41,943,040 of attention, 40 x
      // 698,654,720 of experts and norms ("32B"); "7B" alike.
      {"granite-4.0-h-small", 32'207'337'984},
      {"granite-4.0-h-tiny", 6'939'037'248},
      {"gpt-oss-20b", 20'914'757'184},
      {"gpt-oss-120b", 116'829'156'672},
      {"nemotron-3-nano", 31'577'940'288 - 23 * 128},
      {"nemotron-3.5-lightning", 31'577'940'288 - 23 * 128},
  });
  for (const Published& row : kPublished) {
    const ParameterCount count = count_parameters(shipped_model(row.name));
    EXPECT_EQ(count.total - count.mtp, row.parameters) << row.name;
  }
}

struct Rounded {
  const char* name;
  double total;   ///< 10^9, as published, without multi-token prediction
  double active;  ///< 10^9
};

TEST(Parameters, of_mixtures_round_to_the_published_active_counts) {
  // Model cards and reports. Active: all but the experts not chosen; gpt-oss leaves out the
  // embedding (5.1 = 5.7 - 0.58), so it is added here.
  constexpr auto kPublished = std::to_array<Rounded>({
      {"mixtral-8x7b", 46.7, 12.9},        // Jiang et al. 2024
      {"mixtral-8x22b", 140.6, 39.2},      // "141B, 39B active"
      {"qwen3-30b-a3b", 30.5, 3.4},        // "30.5B in total and 3.3B activated"
      {"qwen3-235b-a22b", 235.1, 22.2},    // "235B in total and 22B activated"
      {"deepseek-v2", 235.7, 21.4},        // "236B, 21B activated"
      {"deepseek-v2-lite", 15.7, 2.7},     // "15.7B, 2.4B activated" without embeddings
      {"deepseek-v3", 671.0, 37.6},        // "671B, 37B activated"
      {"kimi-k2", 1026.4, 32.9},           // "1T, 32B activated"
      {"glm-5", 743.9, 41.8},              // "744B, 40B active"
      {"minimax-m2", 228.7, 11.0},         // "230B, 10B active"
      {"glm-4.5", 352.8, 33.6},            // "355B, 32B active" with the layer of prediction
      {"qwen3-next-80b-a3b", 79.7, 3.9},   // "80B, 3B activated" without embeddings
      {"qwen3.5-397b-a17b", 396.3, 17.3},  // "397B, 17B activated"
      {"granite-4.0-h-small", 32.2, 8.8},  // "32B, 9B active"
      {"gpt-oss-20b", 20.9, 4.2},          // 3.61 + 0.58
      {"gpt-oss-120b", 116.8, 5.7},        // 5.13 + 0.58
      {"llama-4-scout", 107.8, 17.2},      // "17B active"; 109B with the vision tower
      {"llama-4-maverick", 400.7, 17.2},   // "17B active, 400B total"
      {"nemotron-3-nano", 31.6, 3.6},      // "31.6B, 3.6B active including embeddings"
      {"nemotron-3-super", 120.7, 12.8},   // "120.6B, 12.7B active"
  });
  const auto billions = [](std::int64_t value) {
    return std::round(static_cast<double>(value) / 1e8) / 10;
  };
  for (const Rounded& row : kPublished) {
    Model model = shipped_model(row.name);
    model.mtp = 0;
    const ParameterCount count = count_parameters(model);
    EXPECT_EQ(billions(count.total), row.total) << row.name;
    EXPECT_EQ(billions(count.active), row.active) << row.name;
  }
}

TEST(Parameters, of_large_runs_round_to_the_published_billions) {
  constexpr auto kPublished = std::to_array<Published>({
      {"palm-540b", 540},  // Chowdhery et al. 2022: 540.35B
      {"opt-175b", 175},   // Zhang et al. 2022
      {"opt-66b", 66},
      {"falcon-40b", 41},  // 41.3B with a tied output
      {"falcon-180b", 179},
      {"nemotron-4-15b", 16},    // Parmar et al. 2024: 12.5B + 3.1B
                                 // of embedding
      {"nemotron-4-340b", 341},  // 331.6B + 9.4B of embedding
      {"nemotron-h-8b", 8},
      {"nemotron-h-56b", 56},
      {"gemma-3-4b", 4},
      {"gemma-3-12b", 12},
      {"gemma-3-27b", 27},
      {"gpt3-5b", 5},
      {"gpt3-20b", 20},
      {"nemotron-8b", 9},    // NeMo: "8B"; 6.4B + 2.1B of embedding and output
      {"nemotron-22b", 21},  // NeMo: "22B"; 18.1B + 3.1B
      {"gpt-7.1b", 7},       // Megatron-Core r0.8 table: an untied output, else 6.6
      {"gpt-32b", 32},
      {"gpt-119b", 119},
      {"gpt-314b", 314},
      {"frontier-22b", 22},
      {"frontier-175b", 175},
      {"frontier-1t", 1008},
  });
  for (const Published& row : kPublished) {
    const double total = static_cast<double>(count_parameters(shipped_model(row.name)).total);
    EXPECT_EQ(std::llround(total / 1e9), row.parameters) << row.name;
  }
}

struct Measured {
  const char* name;
  std::int64_t sequence;
  double tokens;  ///< per second and device
  double flops;   ///< 10^12 per second and device
};

TEST(Parameters, of_nemos_own_sizes_fit_its_flops_per_token) {
  // Shapes: NVIDIA/NeMo-Framework-Launcher launcher_scripts/conf/training/gpt3/20b.yaml and
  // nemotron/nemotron_{8b,22b}.yaml, NVIDIA/NeMo nemo/collections/llm/gpt/model/nemotron.py
  // (Nemotron3Config8B, Nemotron3Config22B). NeMo 24.07, H100 FP8: rounded TFLOP/s over tokens/s.
  constexpr auto kMeasured = std::to_array<Measured>({
      {"gpt3-20b", 2048, 5851, 750},
      {"nemotron-8b", 4096, 12701, 653},
      {"nemotron-22b", 4096, 4256, 554},
  });
  for (const Measured& row : kMeasured) {
    const double token = model_flops_per_sequence(shipped_model(row.name), row.sequence).value() /
                         static_cast<double>(row.sequence);
    EXPECT_NEAR(token / (row.flops * 1e12 / row.tokens), 1, 0.002) << row.name;
  }
}

TEST(Parameters, of_nemos_own_sizes_add_up_by_hand) {
  // GPT-3 20B: h = 6144, 44 layers of 12 h^2 + 13 h, tables of 50257 and 2048 rows, a norm 2 h.
  // Nemotron: layers of 12 h^2 + 4 h (two LayerNorms), 256,000 rows in and out, a norm.
  std::int64_t h = 6144;
  EXPECT_EQ(count_parameters(shipped_model("gpt3-20b")).total,
            44 * (12 * h * h + 13 * h) + (50'257 + 2'048) * h + 2 * h);
  EXPECT_EQ(count_parameters(shipped_model("nemotron-22b")).total,
            40 * (12 * h * h + 4 * h) + 2 * 256'000 * h + 2 * h);
  h = 4096;
  EXPECT_EQ(count_parameters(shipped_model("nemotron-8b")).total,
            32 * (12 * h * h + 4 * h) + 2 * 256'000 * h + 2 * h);
}

TEST(Parameters, of_nemotron_3_ultra_fill_its_checkpoint) {
  // The checkpoint's index states 1,121,049,257,984 bytes: two per parameter, the module that
  // predicts one more token included, and four per balancing bias, 512 in each of 49 routers.
  const ParameterCount count = count_parameters(shipped_model("nemotron-3-ultra"));
  EXPECT_EQ(2 * count.total + 4 * 512 * 49, 1'121'049'257'984);
}

TEST(Parameters, of_palm_add_up_by_hand) {
  // h = 18432, 48 heads and one key-value head of 256: q and o 2 h x 12288, k and v h x 512, three
  // matrices of h x 4h, one norm h; 118 layers, a table of 256,000 h, a norm.
  const ParameterCount count = count_parameters(shipped_model("palm-540b"));
  const std::int64_t h = 18'432;
  EXPECT_EQ(count.per_kind.at(0), 2 * h * 12'288 + h * 512 + 12 * h * h + h);
  EXPECT_EQ(count.total, 118 * count.per_kind.at(0) + 256'000 * h + h);
}

TEST(Parameters, of_dlrm_are_its_tables_and_its_mlps) {
  // MLPerf's Criteo tables: 187,767,399 rows of 128. Bottom 13 x 512, 512 x 256, 256 x 128; top
  // (128 + 27 x 26 / 2) = 479 x 1024, 1024 x 1024, 1024 x 512, 512 x 256, 256 x 1; biases.
  const ParameterCount count = count_parameters(shipped_model("dlrm-criteo"));
  EXPECT_EQ(count.embedding, 187'767'399LL * 128);
  EXPECT_EQ(count.per_kind.at(0), 13 * 512 + 512 * 256 + 256 * 128 + 512 + 256 + 128);
  EXPECT_EQ(count.per_kind.at(1),
            479 * 1024 + 1024 * 1024 + 1024 * 512 + 512 * 256 + 256 + 1024 + 1024 + 512 + 256 + 1);
}

TEST(Parameters, of_deepseek_v3_add_up_by_hand) {
  // h = 7168, 128 heads. Latent attention: h x 1536 + 1536 + 1536 x 128 x 192 + h x 576 + 512 +
  // 512 x 128 x 256 + 128 x 128 x h = 187,107,328; two norms; dense MLP 3 h x 18432; experts
  // 257 x 3 h x 2048 + 256 h. One more token: 2 h x h + 3 h and a layer of experts.
  const ParameterCount count = count_parameters(shipped_model("deepseek-v3"));
  const std::int64_t h = 7'168;
  const std::int64_t attention =
      h * 1536 + 1536 + 1536LL * 128 * 192 + h * 576 + 512 + 512LL * 128 * 256 + 128LL * 128 * h;
  EXPECT_EQ(attention, 187'107'328);
  EXPECT_EQ(count.per_kind.at(0), attention + 2 * h + 3 * h * 18'432);
  EXPECT_EQ(count.per_kind.at(1), attention + 2 * h + 257 * 3 * h * 2'048 + 256 * h);
  EXPECT_EQ(count.layers, 3 * count.per_kind.at(0) + 58 * count.per_kind.at(1));
  EXPECT_EQ(count.mtp, count.per_kind.at(1) + 2 * h * h + 3 * h);
}

TEST(Parameters, of_gpt2_add_up_by_hand) {
  // h = 768: layer 12 h^2 + 13 h = 7,077,888 + 9,984; tokens 50257 h; positions 1024 h; norm 2 h.
  const ParameterCount count = count_parameters(shipped_model("gpt2"));
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
  const ParameterCount count = count_parameters(shipped_model("llama-2-70b"));
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
    const Model m = shipped_model(row.name);
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
  EXPECT_EQ(
      std::llround(static_cast<double>(count_parameters(shipped_model("gpt3-175b")).total) / 1e8),
      1'746);
  EXPECT_EQ(
      std::llround(static_cast<double>(count_parameters(shipped_model("gpt-22b")).total) / 1e9),
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
  ASSERT_GE(names.size(), 102U);
  for (const std::string& name : names) {
    const Model model = shipped_model(name);
    EXPECT_EQ(model.name, name);
    EXPECT_EQ(operator_parameters(model), count_parameters(model).total) << name;
  }
}

TEST(Parameters, of_the_gpt_shape_function_are_those_of_the_shipped_file) {
  const Model made = gpt_model("gpt-18.4b", 40, 6144, 48, 2048, 51200);
  const Model read = shipped_model("gpt-18.4b");
  EXPECT_EQ(count_parameters(made).total, count_parameters(read).total);
  EXPECT_EQ(made.head_dim, read.head_dim);
  EXPECT_EQ(made.ffn, read.ffn);
  EXPECT_EQ(made.dropout, read.dropout);
  EXPECT_EQ(made.attention_dropout, read.attention_dropout);
  EXPECT_EQ(made.embedding_dropout, read.embedding_dropout);
}

}  // namespace
}  // namespace orrery::zoo
