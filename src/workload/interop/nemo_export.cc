// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "base/lists.h"
#include "workload/interop/capabilities.h"
#include "workload/interop/framework.h"
#include "workload/interop/megatron.h"
#include "workload/interop/megatron_yaml_tables.h"

namespace orrery::interop {
namespace {

/// Sections of Megatron-Bridge's ConfigContainer; what is not here belongs to the model.
struct NemoSection {
  std::string_view key;
  std::string_view section;
};
constexpr auto kNemoSections = std::to_array<NemoSection>({
    {"micro_batch_size", "train"},
    {"global_batch_size", "train"},
    {"use_distributed_optimizer", "ddp"},
    {"use_megatron_fsdp", "ddp"},
    {"use_torch_fsdp2", "ddp"},
    {"data_parallel_sharding_strategy", "ddp"},
    {"num_distributed_optimizer_instances", "ddp"},
    {"overlap_grad_reduce", "ddp"},
    {"overlap_param_gather", "ddp"},
    {"grad_reduce_in_fp32", "ddp"},
    {"bucket_size", "ddp"},
    {"optimizer_cpu_offload", "optimizer"},
    {"use_precision_aware_optimizer", "optimizer"},
    {"main_params_dtype", "optimizer"},
    {"exp_avg_dtype", "optimizer"},
    {"exp_avg_sq_dtype", "optimizer"},
    {"ckpt_format", "checkpoint"},
});

/// One argument with its values.
struct NemoArgument {
  std::string_view flag;
  std::vector<std::string> values;
};

std::vector<NemoArgument> arguments_of(const std::vector<std::string>& words) {
  std::vector<NemoArgument> arguments;
  for (const std::string& word : words) {
    if (word.starts_with("--")) {
      arguments.push_back({word, {}});
    } else if (!arguments.empty()) {
      arguments.back().values.push_back(word);
    }
  }
  return arguments;
}

/// Quoted where YAML would read more than a word.
std::string yaml_word(const std::string& word) {
  const bool plain = word.find_first_of("|*[](){}:#,&!%@`'\" ") == std::string::npos;
  return plain ? word : "\"" + word + "\"";
}

/// The keys of a configuration, by section.
class NemoKeys {
 public:
  void add(const NemoArgument& argument) {
    constexpr auto kNames = std::to_array<YamlKey>({
        // Where the table has several, and what is no key of its own.
        {"seq_length", "--seq-length"},
        {"grad_reduce_in_fp32", "--accumulate-allreduce-grads-in-fp32"},
        {"num_query_groups", "--num-query-groups"},
        {"moe_router_topk", "--moe-router-topk"},
    });
    if (argument.flag == "--bf16" || argument.flag == "--fp16") {
      put("mixed_precision", std::string(argument.flag.substr(2)) + "_mixed", "");
      return;
    }
    if (argument.flag == "--group-query-attention") {
      return;  // num_query_groups says it
    }
    const auto* row = std::ranges::find(kNames, argument.flag, &YamlKey::flag);
    std::string key(row == kNames.end() ? "" : row->name);
    bool inverted = false;
    if (key.empty()) {
      const auto rows = yaml_keys();
      const auto known = std::ranges::find_if(rows, [&](const YamlKey& other) {
        return other.flag == argument.flag && other.value != YamlValue::fixed;
      });
      inverted = known != rows.end() && known->value == YamlValue::inverted;
      key = known != rows.end() ? std::string(known->name) : std::string(argument.flag.substr(2));
      std::ranges::replace(key, '-', '_');
    }
    const auto* at = std::ranges::find(kNemoSections, key, &NemoSection::key);
    put(key, inverted ? "false" : value(argument.values),
        at == kNemoSections.end() ? "model" : at->section);
  }

  void put(const std::string& key, std::string text, std::string_view section) {
    sections_[std::string(section)].emplace_back(key, std::move(text));
  }

  std::string text() const {
    std::string text;
    for (const auto& [section, keys] : sections_) {
      text += section.empty() ? "" : section + ":\n";
      for (const auto& [key, value] : keys) {
        text += fmt::format("{}{}: {}\n", section.empty() ? "" : "  ", key, value);
      }
    }
    return text;
  }

 private:
  static std::string value(const std::vector<std::string>& values) {
    if (values.size() < 2) {
      return values.empty() ? "true" : yaml_word(values.front());
    }
    const std::string list =
        joined(values, ", ", [&](const std::string& one) { return yaml_word(one); });
    return "[" + list + "]";
  }

  std::map<std::string, std::vector<std::pair<std::string, std::string>>> sections_;
};

std::string nemo_text(const plan::Plan& plan, const std::vector<std::string>& words,
                      std::int64_t devices_per_node) {
  NemoKeys keys;
  const std::int64_t devices = plan.devices();
  const std::int64_t node = devices_per_node < 1 ? devices : std::gcd(devices_per_node, devices);
  keys.put("devices", std::to_string(node), "trainer");
  keys.put("num_nodes", std::to_string(devices / node), "trainer");
  for (const NemoArgument& argument : arguments_of(words)) {
    keys.add(argument);
  }
  return keys.text();
}

}  // namespace

Result<Exported> export_nemo(const plan::Plan& plan, const ExportOptions& options) {
  auto words = megatron_words("nemo", plan, options);
  if (!words) {
    return fail(std::move(words.error()));
  }
  const std::string text = nemo_text(plan, words->words, options.devices_per_node);
  const auto node = parse_config(text, "nemo.yaml", ConfigSyntax::yaml);
  if (!node) {
    return fail(node.error());
  }
  const auto again = import_framework("nemo", *node, {},
                                      {.devices = plan.devices(), .rest = rest_of(plan.framework)});
  if (!again) {
    return fail(again.error());
  }
  Exported exported{.lost = differences(plan, again->plan, options.model)};
  give_reasons("nemo", plan, options.model, exported.lost);
  for (const Remark& remark : exported.lost) {
    exported.text += fmt::format("#   {}: {}\n", remark.about, remark.sentence);
  }
  if (!exported.lost.empty()) {
    exported.text = "# Not stated by NeMo's configuration:\n" + exported.text;
  }
  exported.text += text;
  return exported;
}

}  // namespace orrery::interop
