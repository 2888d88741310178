// SPDX-License-Identifier: Apache-2.0
/// GPT-2 and its relatives.
#include <array>

#include "workload/zoo/families.h"
#include "workload/zoo/fields.h"
#include "workload/zoo/known_fields.h"

namespace orrery::zoo {

Model read_gpt2(Reader& read) {
  ignore_all(read, kIgnoredGpt2);
  Model m;
  m.layers = extent(read, "n_layer", kMaxLayers);
  m.hidden = extent(read, "n_embd", kMaxHidden);
  m.heads = m.kv_heads = extent(read, "n_head", kMaxHidden);
  m.head_dim = m.heads > 0 ? m.hidden / m.heads : 0;
  m.ffn = optional_extent(read, "n_inner", 8 * kMaxHidden).value_or(4 * m.hidden);
  m.vocab = extent(read, "vocab_size", kMaxVocab);
  m.max_positions = extent(read, "n_positions", kMaxPositions);
  const auto context = optional_extent(read, "n_ctx", kMaxPositions);
  read.require(!context || *context * m.max_positions == 0 || *context == m.max_positions, "n_ctx",
               "the same as n_positions, " + std::to_string(m.max_positions));
  m.mlp = mlp_of(read, "activation_function", "gelu_new", false);
  m.tied_embedding = read.optional("tie_word_embeddings", true);
  m.dropout = probability(read, "resid_pdrop", 0.1);
  m.attention_dropout = probability(read, "attn_pdrop", 0.1);
  m.embedding_dropout = probability(read, "embd_pdrop", 0.1);
  constexpr std::array<std::string_view, 3> kNotModelled{
      "add_cross_attention", "is_encoder_decoder", "reorder_and_upcast_attn"};
  expect_all_false(read, kNotModelled);
  check_heads(read, m, {"n_layer", "n_head", "n_head"}, false);
  check_size(read, m, "n_layer");
  return m;
}

}  // namespace orrery::zoo
