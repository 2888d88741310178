// SPDX-License-Identifier: Apache-2.0
#include "workload/interop/megatron_yaml.h"

#include <algorithm>

#include "base/reader.h"
#include "workload/interop/config_paths.h"
#include "workload/interop/framework.h"
#include "workload/interop/megatron_yaml_tables.h"

namespace orrery::interop {
namespace {

constexpr std::string_view kUnreadModel =
    "settings of the named model are not read: give them as overrides, or the model to the command";

/// "--num-experts" for num_experts.
std::string flag_name(std::string_view key) {
  std::string name = "--" + std::string(key);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool is_true(const ConfigNode& node) {
  return !node.quoted && (node.text == "true" || node.text == "True");
}

/// Makes the words of a launch line from the leaves of a configuration.
class ArgumentWords {
 public:
  explicit ArgumentWords(const ConfigNode& root) : root_(root) {}

  LaunchWords run(std::string_view framework) {
    for (const Leaf& leaf : leaves_of(root_)) {
      read(leaf);
    }
    precision();
    devices(framework);
    return std::move(line_);
  }
  std::int64_t devices_found() const { return devices_; }

 private:
  void add(std::string_view words, const Leaf& leaf) {
    while (!words.empty()) {
      const std::string_view word = words.substr(0, words.find(' '));
      words.remove_prefix(std::min(word.size() + 1, words.size()));
      line_.words.emplace_back(word);
      line_.places.push_back(leaf.node->where());
    }
  }

  void read(const Leaf& leaf) {
    const std::string_view last =
        std::string_view(leaf.path).substr(leaf.path.find_last_of('.') + 1);
    if (last == "devices" || last == "num_nodes" || last == "num_gpus" ||
        is_weightless_key(leaf.path)) {
      return;
    }
    const auto keys = yaml_keys();
    const auto row = std::ranges::find(keys, last, &YamlKey::name);
    const YamlValue kind = row == keys.end() ? YamlValue::same : row->value;
    const std::string flag = row == keys.end() ? flag_name(last) : std::string(row->flag);
    if (kind == YamlValue::inverted) {
      if (!leaf.node->text.empty() && is_empty(*leaf.node)) {
        add(flag, leaf);
      }
    } else if (is_empty(*leaf.node) &&
               !(last.ends_with("_dropout") && parse_number(leaf.node->text) == 0.0)) {
      return;  // a dropout of 0 is none, Megatron-LM's default is 0.1
    } else if (kind == YamlValue::fixed) {
      add(flag, leaf);
    } else if (flag == last_flag_) {  // a further item of a list
      add(leaf.node->text, leaf);
    } else {
      add(flag, leaf);
      if (!is_true(*leaf.node)) {
        std::string text = leaf.node->text;
        std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
        line_.words.push_back(text);
        line_.places.push_back(leaf.node->where());
      }
    }
    last_flag_ = flag;
  }

  /// NeMo's and Lightning's names: "bf16", "bf16-mixed", "16-mixed"; optim.name.
  void precision() {
    const auto named = [&](std::initializer_list<std::string_view> paths) -> const ConfigNode* {
      for (const std::string_view path : paths) {
        if (const ConfigNode* node = at_path(root_, path)) {
          return node;
        }
      }
      return nullptr;
    };
    if (const ConfigNode* node = named(
            {"trainer.precision", "trainer.plugins.precision", "mixed_precision", "precision"});
        node != nullptr && node->kind == ConfigNode::Kind::scalar) {
      const Leaf leaf{"precision", node};
      const bool bf16 = node->text.find("bf16") != std::string::npos;
      const bool fp16 = !bf16 && node->text.find("16") != std::string::npos;
      add(bf16 ? "--bf16" : fp16 ? "--fp16" : "", leaf);
    }
    if (const ConfigNode* node = named({"model.optim.name", "optim.name"});
        node != nullptr && node->text.find("distributed") != std::string::npos) {
      add("--use-distributed-optimizer", {"optim.name", node});
    }
    if (const ConfigNode* node = named({"model.activation", "model.mcfg.activation"});
        node != nullptr && node->text == "fast-swiglu") {
      add("--swiglu", {"activation", node});
    }
  }

  void devices(std::string_view framework) {
    const auto count = [&](std::initializer_list<std::string_view> paths) {
      for (const std::string_view path : paths) {
        const ConfigNode* node = at_path(root_, path);
        const auto number = node == nullptr ? parse_integer("-") : parse_integer(node->text);
        if (number && *number > 0 && *number < (1 << 20)) {
          return *number;
        }
      }
      return std::int64_t{0};
    };
    const std::int64_t per_node = count({"trainer.devices", "devices", "num_gpus_per_node"});
    const std::int64_t nodes = count({"trainer.num_nodes", "num_nodes"});
    devices_ = per_node > 0 ? per_node * std::max<std::int64_t>(nodes, 1) : 0;
    if (framework == "primus") {
      line_.remarks.push_back({"primus", std::string(kUnreadModel)});
    }
  }

  const ConfigNode& root_;
  LaunchWords line_;
  std::string last_flag_;
  std::int64_t devices_ = 0;
};

/// Primus' overrides for another program than Megatron-LM, in that program's names.
Result<Imported> import_overrides(const std::string& program, const ConfigNode& overrides,
                                  const ImportOptions& options) {
  ConfigNode root = overrides;
  std::vector<Remark> remarks{{"primus", std::string(kUnreadModel)}};
  if (program == "torchtitan") {
    std::erase_if(root.fields, [&](const ConfigField& field) {
      const bool own = field.name.starts_with("primus") || field.name.ends_with("sink_level");
      if (own && !is_empty(field.value)) {
        remarks.push_back({field.name, "Primus' own: counted as without weight"});
      }
      return own;
    });
  }
  auto imported = program == "torchtitan" ? import_torchtitan(std::move(root), options)
                                          : import_framework(program, std::move(root), {}, options);
  if (imported) {
    imported->remarks.insert(imported->remarks.end(), remarks.begin(), remarks.end());
  }
  return imported;
}

}  // namespace

Result<Imported> import_megatron_yaml(std::string_view framework, const ConfigNode& node,
                                      const ImportOptions& options) {
  const ConfigNode* root = &node;
  if (framework == "primus") {
    const ConfigNode* program = at_path(node, "modules.pre_trainer.framework");
    const ConfigNode* overrides = at_path(node, "modules.pre_trainer.overrides");
    if (program != nullptr && overrides != nullptr &&
        (program->text == "maxtext" || program->text == "torchtitan")) {
      return import_overrides(program->text, *overrides, options);
    }
    if (program != nullptr && !program->text.starts_with("megatron")) {
      return fail(Error({program->where(), "modules.pre_trainer.framework", program->shown(),
                         "megatron, megatron_bridge, torchtitan or maxtext" +
                             did_you_mean(program->text, {"megatron", "torchtitan", "maxtext"})}));
    }
    for (const std::string_view path :
         {"modules.pre_trainer.overrides", "modules.post_trainer.overrides", "overrides"}) {
      if (const ConfigNode* inside = at_path(node, path)) {
        root = inside;
        break;
      }
    }
  }
  ArgumentWords words(*root);
  LaunchWords line = words.run(framework);
  line.dumped = true;
  ImportOptions settled = options;
  settled.devices = options.devices > 0 ? options.devices : words.devices_found();
  return import_megatron(line, settled);
}

}  // namespace orrery::interop
