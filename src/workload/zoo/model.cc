// SPDX-License-Identifier: Apache-2.0
#include "workload/zoo/model.h"

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/letters.h"
#include "base/lists.h"
#include "base/reader.h"
#include "workload/zoo/families.h"
#include "workload/zoo/fields.h"
#include "workload/zoo/hub_name.h"
#include "workload/zoo/known_fields.h"

namespace orrery::zoo {
namespace {

const Family* find_family(std::string_view model_type) {
  for (const Family& family : kFamilies) {
    if (family.model_type == model_type) {
      return &family;
    }
  }
  return nullptr;
}

/// "DeepseekV3ForCausalLM" is deepseek_v3; of the types of one model, the one of its text where a
/// text model is meant ("Gemma3ForCausalLM").
const Family* family_of_architecture(const ConfigNode& node) {
  const std::string name = class_of(node);
  if (name.empty()) {
    return nullptr;
  }
  const std::size_t end = std::min({name.rfind("For"), name.rfind("LMHead"), name.rfind("Model")});
  const std::string wanted = lower_case(name.substr(0, end));
  const auto find = [&](const std::string& letters) {
    const auto found = std::ranges::find_if(kFamilies, [&](const Family& family) {
      std::string own(family.model_type);
      std::erase(own, '_');
      return own == letters;
    });
    return found == kFamilies.end() ? nullptr : &*found;
  };
  const Family* text = name.ends_with("ForCausalLM") ? find(wanted + "text") : nullptr;
  return text != nullptr ? text : find(wanted);
}

/// A class that ends before the output projection ("Qwen2Model") or has one of few columns there
/// ("LlamaForSequenceClassification") has no parameters of a vocabulary at its end; of an encoder's
/// other classes a note says that they are counted with the head of pre-training.
void leave_out_head(const ConfigNode& node, Model& model) {
  const std::string name = class_of(node);
  if (model.head == HeadKind::masked_token && !name.empty() && !name.ends_with("ForPreTraining") &&
      !name.ends_with("ForMaskedLM")) {
    model.notes.push_back(node.find("architectures")->where() + ": architectures: " + name +
                          " has a head of its own: it is counted as that of pre-training");
  }
  if (name.empty() || model.tied_embedding || model.head != HeadKind::next_token) {
    return;
  }
  const bool ends_before = name.ends_with("Model") && !name.ends_with("LMHeadModel");
  const bool few = std::ranges::any_of(
      kFewColumns, [&](std::string_view end) { return name.find(end) != std::string::npos; });
  if (ends_before || few) {
    model.tied_embedding = true;
    model.notes.push_back(node.find("architectures")->where() + ": architectures: " + name +
                          " has no projection to the vocabulary: its parameters are not counted; "
                          "times are those of a language model");
  }
}

/// The mistake about `model_type` alone: without it, no other field can be judged.
Error unsupported(const ConfigNode& node) {
  ConfigNode alone;
  alone.kind = node.kind;
  alone.source = node.source;
  alone.line = node.line;
  if (const ConfigNode* type = node.find("model_type")) {
    alone.fields.push_back({"model_type", *type});
  }
  Reader read(alone);
  const std::string found = read.required<std::string>("model_type");
  if (read.ok()) {
    const std::vector<std::string> names = mapped<std::string>(kFamilies, &Family::model_type);
    read.reject("model_type", "a supported type: " + joined(names) + did_you_mean(found, names));
  }
  Result<int> result = read.finish(0);
  assert(!result && "called for a node without supported model_type");
  return result ? Error(std::string("model_type: not supported")) : std::move(result.error());
}

/// Adds ModelOpt's formats, of the file beside the model's, as quantization_config.
Result<ConfigNode> with_quantization(ConfigNode node, const std::string& file) {
  const std::filesystem::path beside =
      std::filesystem::path(file).parent_path() / "hf_quant_config.json";
  const bool is_checkpoint = std::filesystem::path(file).filename() == "config.json";
  std::error_code not_there;
  if (!is_checkpoint || node.find("quantization_config") != nullptr ||
      !std::filesystem::exists(beside, not_there)) {
    return node;
  }
  return load_config(beside.string()).map([&](const ConfigNode& formats) {
    if (const ConfigNode* quantization = formats.find("quantization")) {
      node.fields.push_back({"quantization_config", *quantization});
    }
    return std::move(node);
  });
}

/// Name of the model in a file: "opt/llama/config.json" and "opt/llama.json" are both "llama".
std::string name_of_file(const std::string& file) {
  std::error_code ignored;
  const std::filesystem::path path = std::filesystem::absolute(file, ignored).lexically_normal();
  const std::string stem = path.stem().string();
  return stem == "config" ? path.parent_path().filename().string() : stem;
}

}  // namespace

Result<Model> parse_model(const ConfigNode& node, std::string name) {
  const ConfigNode* type = node.find("model_type");
  const Family* family =
      type == nullptr || type->kind != ConfigNode::Kind::scalar ? nullptr : find_family(type->text);
  const bool by_name = family != nullptr;
  family = by_name ? family : family_of_architecture(node);
  if (family == nullptr) {
    return fail(unsupported(node));
  }
  Reader read(node);
  read.ignore("model_type");
  ignore_all(read, kIgnored);
  Model model = family->read(read);
  model.name = std::move(name);
  model.model_type = family->model_type;
  read_direction(read, model);
  note_unknown(read, model, is_weightless);
  leave_out_head(node, model);
  if (!by_name) {
    model.notes.push_back(node.where() + ": model_type: read as " + model.model_type +
                          ", which `architectures` names");
  }
  return read.finish(std::move(model));
}

Result<ModelFile> load_model_file(const std::string& name_or_path) {
  auto file = find_config("models", name_or_path);
  if (!file) {
    const std::string shipped = shipped_name(name_or_path);
    auto alike = shipped == name_or_path ? file : find_config("models", shipped);
    if (!alike || !is_hub_name(name_or_path)) {
      const std::string other = alike ? shipped : shipped_name(without_format(shipped));
      if (std::string& expected = file.error().mistakes.front().expected;
          find_config("models", other)) {
        expected = expected.substr(0, expected.find(" (did you mean")) + " (did you mean '" +
                   other + "'?" +
                   (alike ? "" : " Its weights' type is said apart, as --quantization of serve") +
                   ")";
      }
      return fail(std::move(file.error()));
    }
    file = std::move(alike);
  }
  std::error_code not_there;
  if (std::filesystem::is_directory(*file, not_there)) {
    file = (std::filesystem::path(*file) / "config.json").string();
  }
  return load_config(*file)
      .and_then([&](ConfigNode node) { return with_quantization(std::move(node), *file); })
      .map([&](ConfigNode node) {
        return ModelFile{.name = name_of_file(*file), .node = std::move(node)};
      });
}

Result<Model> load_model(const std::string& name_or_path) {
  return load_model_file(name_or_path).and_then([](const ModelFile& file) {
    return parse_model(file.node, file.name);
  });
}

Model gpt_model(std::string name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                std::int64_t sequence, std::int64_t vocab) {
  assert(heads > 0 && hidden % heads == 0 && "every head has the same whole width");
  Model m;
  m.name = std::move(name);
  m.model_type = "gpt2";
  m.layers = layers;
  m.hidden = hidden;
  m.heads = m.kv_heads = heads;
  m.head_dim = hidden / heads;
  m.ffn = 4 * hidden;
  m.vocab = vocab;
  m.max_positions = sequence;
  m.dropout = m.attention_dropout = m.embedding_dropout = 0.1;
  return m;
}

}  // namespace orrery::zoo
