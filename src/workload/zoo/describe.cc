// SPDX-License-Identifier: Apache-2.0
#include "workload/zoo/describe.h"

#include <fmt/format.h>

#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

/// 6738415616 -> "6,738,415,616". Requires value >= 0.
std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t end = text.size(); end > 3; end -= 3) {
    text.insert(end - 3, ",");
  }
  return text;
}

std::string line(std::string_view label, std::string_view value) {
  return fmt::format("  {:<20}{}\n", label, value);
}

std::string heads_of(const Model& m) {
  std::string text = fmt::format("{} of width {}", m.heads, m.head_dim);
  if (m.kv_heads != m.heads) {
    text += fmt::format(", {} for keys and values", m.kv_heads);
  }
  for (const LayerKind& kind : m.kinds) {
    if (kind.head_dim > 0) {
      text += fmt::format("; layers {}: of width {}, {} for keys and values", kind.name,
                          kind.head_dim, kv_heads_of(m, kind));
    }
  }
  return text;
}

/// "128 of width 768, 8 per token, shared 1,024"; "" for a dense model.
std::string experts_of(const Model& m) {
  if (m.experts == 0) {
    return "";
  }
  std::string text =
      fmt::format("{} of width {}, {} per token", m.experts, grouped(m.expert.ffn), m.top_k);
  if (m.chosen_groups < m.expert_groups) {
    text += fmt::format(" from {} of {} groups", m.chosen_groups, m.expert_groups);
  }
  if (m.expert.shared_ffn > 0) {
    text += fmt::format(", shared {}", grouped(m.expert.shared_ffn));
  }
  return line("experts", text);
}

/// "4, mixed"; "" for a plain residual stream.
std::string streams_of(const Model& m) {
  return m.streams == 1 ? "" : line("residual streams", fmt::format("{}, mixed", m.streams));
}

std::string dropouts_of(const Model& m) {
  if (m.dropout == 0 && m.attention_dropout == 0 && m.embedding_dropout == 0) {
    return "none";
  }
  return fmt::format("{} residual, {} attention, {} embedding", m.dropout, m.attention_dropout,
                     m.embedding_dropout);
}

std::string shape_of(const Model& m) {
  const std::string head = m.tied_embedding ? "shares the embedding" : "a matrix of its own";
  return line("layers", grouped(m.layers)) + line("hidden", grouped(m.hidden)) +
         line("heads", heads_of(m)) +
         line("MLP", fmt::format("{}, inner width {}", name_of(m.mlp), grouped(m.ffn))) +
         experts_of(m) + streams_of(m) + line("norm", name_of(m.norm)) +
         line("positions",
              fmt::format("{}, {}{}", name_of(m.position), grouped(m.max_positions),
                          m.trained_positions == 0 ? ""
                                                   : fmt::format("; pre-trained with {}",
                                                                 grouped(m.trained_positions)))) +
         line("vocabulary", grouped(m.vocab)) + line("output", head) +
         line("dropout", dropouts_of(m));
}

std::string parameter_line(std::string_view label, std::int64_t value, std::string_view note = "") {
  return value == 0 ? "" : fmt::format("  {:<20}{:>22}{}\n", label, grouped(value), note);
}

/// "= 3 x 583,000 dense + 58 x 11,500,000 moe".
std::string layers_note(const Model& m, const ParameterCount& count) {
  const std::vector<std::string> names = layer_kinds(m);
  const std::vector<std::int64_t> layers = layers_by_kind(m);
  std::string note;
  for (std::size_t i = 0; i < names.size(); ++i) {
    note += fmt::format("{} {} x {}{}", i == 0 ? "  =" : " +", grouped(layers[i]),
                        grouped(count.per_kind[i]), names.size() > 1 ? " " + names[i] : "");
  }
  return note;
}

std::string parameters_of(const Model& m) {
  const ParameterCount count = count_parameters(m);
  Model without = m;  // as published counts are
  without.mtp = 0;
  const ParameterCount published = count_parameters(without);
  const std::int64_t active = published.active == published.total ? 0 : published.active;
  return "parameters\n" + parameter_line("layers", count.layers, layers_note(m, count)) +
         parameter_line("embedding", count.embedding) +
         parameter_line("position table", count.position) +
         parameter_line("final norm", count.final_norm) + parameter_line("output", count.head) +
         parameter_line("total", published.total) +
         parameter_line("further tokens", count.mtp, count.mtp > 0 ? "  beside the total" : "") +
         parameter_line("encoder of images", count.vision, "  beside the total") +
         parameter_line("active per token", active);
}

std::string flops_of_token(const Model& m) {
  const double step =
      model_flops_per_sequence(m, m.max_positions).value() / static_cast<double>(m.max_positions);
  return fmt::format("model FLOPs per token, sequences of {}\n", grouped(m.max_positions)) +
         line("forward", fmt::format("{:.4g}", step / 3)) +
         line("forward + backward", fmt::format("{:.4g}", step));
}

}  // namespace

std::string describe(const Model& model) {
  std::string text = fmt::format("{} ({})\n", model.name, model.model_type) + shape_of(model) +
                     parameters_of(model) + flops_of_token(model);
  for (const std::string& note : model.notes) {
    text += "note: " + note + "\n";
  }
  return text;
}

}  // namespace orrery::zoo
