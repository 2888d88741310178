// SPDX-License-Identifier: Apache-2.0
#include "workload/zoo/model.h"

#include <cassert>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/reader.h"
#include "workload/zoo/families.h"
#include "workload/zoo/fields.h"
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

/// The mistake about `model_type` alone: without it, no other field can be judged.
Error unsupported(const ConfigNode& node) {
  ConfigNode alone = node;
  std::erase_if(alone.fields, [](const ConfigField& field) { return field.name != "model_type"; });
  Reader read(alone);
  const std::string found = read.required<std::string>("model_type");
  if (read.ok()) {
    std::vector<std::string> names;
    std::string list;
    for (const Family& family : kFamilies) {
      names.emplace_back(family.model_type);
      list += (list.empty() ? "" : ", ") + names.back();
    }
    read.reject("model_type", "a supported type: " + list + did_you_mean(found, names));
  }
  Result<int> result = read.finish(0);
  assert(!result && "called for a node without supported model_type");
  return result ? Error(std::string("model_type: not supported")) : std::move(result.error());
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
  if (family == nullptr) {
    return fail(unsupported(node));
  }
  Reader read(node);
  read.ignore("model_type");
  ignore_all(read, kIgnored);
  Model model = family->read(read);
  model.name = std::move(name);
  model.model_type = family->model_type;
  return read.finish(std::move(model));
}

Result<ModelFile> load_model_file(const std::string& name_or_path) {
  auto file = find_config("models", name_or_path);
  if (!file) {
    return fail(std::move(file.error()));
  }
  std::error_code not_there;
  if (std::filesystem::is_directory(*file, not_there)) {
    file = (std::filesystem::path(*file) / "config.json").string();
  }
  return load_config(*file).map([&](ConfigNode node) {
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
