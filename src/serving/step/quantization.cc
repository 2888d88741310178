// SPDX-License-Identifier: Apache-2.0
#include "serving/step/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/lists.h"
#include "base/misread.h"
#include "base/one_of.h"
#include "base/reader.h"

namespace orrery::step {
namespace {

constexpr double kScaleBits = 16;
constexpr double kNarrowScaleBits = 8;  // of NVFP4's and mxfp4's blocks
constexpr double kBlockScaleBits = 32;
constexpr std::int64_t kMicroscaled = 32;  // weights of a scale, mxfp4

/// Fields that change neither a format nor which matrices have it.
constexpr auto kIgnoredQuantization = std::to_array<std::string_view>({
    "activation_scale_ub",
    "activation_scheme",
    "backend",
    "block_name_to_quantize",
    "checkpoint_format",
    "damp_percent",
    "dataset",
    "dequantize",
    "desc_act",
    "do_fuse",
    "exllama_config",
    "fmt",
    "format",
    "fuse_max_seq_len",
    "global_compression_ratio",
    "is_marlin_format",
    "lm_head",
    "meta",
    "model_file_base_name",
    "model_name_or_path",
    "model_seqlen",
    "modules_to_fuse",
    "pack_dtype",
    "packing_format",
    "producer",
    "provider",
    "quantization_status",
    "scale_fmt",
    "sparsity_config",
    "static_groups",
    "tokenizer",
    "transform_config",
    "true_sequential",
    "use_exllama",
    "version",
});

/// Fields of a scheme of compressed-tensors that change nothing.
constexpr auto kIgnoredScheme = std::to_array<std::string_view>(
    {"actorder", "dynamic", "is_mx", "observer", "observer_kwargs", "scale_dtype", "zp_dtype"});
constexpr auto kIgnoredGroup = std::to_array<std::string_view>({"format", "output_activations"});

template <class Names>
void ignore_all(Reader& read, const Names& names) {
  for (const std::string_view name : names) {
    read.ignore(name);
  }
}

/// fp8 of 8 bits, fp4 of 4; others are a mistake.
graph::DataType type_of_bits(Reader& read, std::string_view field, std::int64_t bits) {
  read.require(bits == 4 || bits == 8, field, "4 or 8 bits");
  return bits == 4 ? graph::DataType::fp4 : graph::DataType::fp8;
}

double per_group(double bits, std::optional<std::int64_t> group) {
  return group && *group > 0 ? bits / static_cast<double>(*group) : 0;
}

/// Returns a scale's part of a block's rows and columns.
double per_block(const std::vector<std::int64_t>& block) {
  const bool known = block.size() == 2 && block[0] > 0 && block[1] > 0;
  return known ? kBlockScaleBits / static_cast<double>(block[0]) / static_cast<double>(block[1])
               : 0;
}

/// Layers that the names are of: of "model.layers.3.self_attn.q_proj" 3, of "*self_attn*" all.
bool leaves_out_attention(const std::vector<std::string>& names, std::int64_t layers) {
  std::set<std::string> of;
  for (const std::string& name : names) {
    if (name.find("attn") == std::string::npos && name.find("attention") == std::string::npos) {
      continue;
    }
    const auto digit = std::find_if(name.begin(), name.end(),
                                    [](unsigned char c) { return std::isdigit(c) != 0; });
    if (digit == name.end()) {
      return true;
    }
    of.emplace(digit, std::find_if(digit, name.end(),
                                   [](unsigned char c) { return std::isdigit(c) == 0; }));
  }
  return layers > 0 && static_cast<std::int64_t>(of.size()) >= layers;
}

/// Says whether a name of left out matrices has attention's output projection: its own, or one of
/// attention as a whole.
bool names_output(const std::string& name) {
  const bool attention =
      name.find("attn") != std::string::npos || name.find("attention") != std::string::npos;
  return attention &&
         (name.find("o_proj") != std::string::npos || name.find("_proj") == std::string::npos);
}

/// A Scheme is what a scheme of compressed-tensors says of weights or operands.
struct Scheme {
  graph::DataType type = graph::DataType::bf16;
  double scale_bits = 0;
  bool blocks = false;

  bool operator==(const Scheme&) const = default;
};
Scheme read_scheme(Reader& read, std::string_view name, bool must_exist) {
  const ConfigNode* node = read.child(name, must_exist);
  Scheme scheme;
  if (node == nullptr) {
    return scheme;
  }
  Reader inner(*node);
  ignore_all(inner, kIgnoredScheme);
  const auto bits = inner.required<std::int64_t>("num_bits");
  scheme.type = type_of_bits(inner, "num_bits", bits);
  const auto strategy = inner.optional<std::string>("strategy", "");
  scheme.blocks = strategy == "block";
  const bool floats = inner.optional<std::string>("type", "int") == "float";
  const double zero_point = inner.optional("symmetric", true) ? 0 : static_cast<double>(bits);
  const double scale = floats && bits == 4 ? kNarrowScaleBits : kScaleBits;
  scheme.scale_bits = per_group(scale + zero_point, inner.maybe<std::int64_t>("group_size"));
  const auto block = inner.list<std::int64_t>("block_structure");
  if (scheme.blocks) {
    scheme.scale_bits = per_block(block);
  }
  read.absorb(inner.finish(0));
  return scheme;
}

void read_cache(Reader& read, Precision& precision) {
  precision.kv = read_scheme(read, "kv_cache_scheme", false).type;
}

/// Returns the matrices that targets name by class ("Linear") or by name ("re:.*mlp.experts.*").
Narrow narrow_of(const std::vector<std::string>& targets) {
  const auto names = [](std::string_view part) {
    return [part](const std::string& target) { return target.find(part) != std::string::npos; };
  };
  const auto attention = [&](const std::string& target) {
    return names("attn")(target) || names("attention")(target) || !names(".")(target);
  };
  if (targets.empty() || std::ranges::any_of(targets, attention)) {
    return Narrow::all;
  }
  return std::ranges::all_of(targets, names("expert")) ? Narrow::experts : Narrow::mlp;
}

void read_compressed(Reader& read, Precision& precision) {
  const ConfigNode* groups = read.child("config_groups", true);
  if (groups == nullptr || groups->fields.empty()) {
    read.reject("config_groups", "a map of groups");
    return;
  }
  std::optional<std::pair<Scheme, Scheme>> first;
  std::vector<std::string> targets;
  for (const ConfigField& group : groups->fields) {
    Reader inner(group.value);
    std::pair<Scheme, Scheme> schemes{read_scheme(inner, "weights", true),
                                      read_scheme(inner, "input_activations", false)};
    ignore_all(inner, kIgnoredGroup);
    for (std::string& target : inner.list<std::string>("targets")) {
      targets.push_back(std::move(target));
    }
    read.absorb(inner.finish(0));
    read.require(!first || *first == schemes, "config_groups", "groups of one format");
    first = schemes;
  }
  precision.weights = first->first.type;
  precision.activations = first->second.type;
  precision.scale_bits = first->first.scale_bits;
  precision.block_scaled = first->first.blocks;
  precision.narrow = narrow_of(targets);
  read_cache(read, precision);
}

/// gptq and awq.
void read_integers(Reader& read, Precision& precision) {
  const auto bits = read.maybe<std::int64_t>("bits");
  const auto width = read.maybe<std::int64_t>("w_bit");
  const std::int64_t given = bits ? *bits : width.value_or(0);
  precision.weights = type_of_bits(read, bits || !width ? "bits" : "w_bit", given);
  const auto group = read.maybe<std::int64_t>("group_size");
  const auto awq_group = read.maybe<std::int64_t>("q_group_size");
  const bool symmetric = read.optional("sym", true) && !read.optional("zero_point", false);
  precision.scale_bits = per_group(kScaleBits + (symmetric ? 0 : static_cast<double>(given)),
                                   group ? group : awq_group);
}

void read_modelopt(Reader& read, Precision& precision) {
  const auto algorithm = read.required<std::string>("quant_algo");
  const auto group = read.maybe<std::int64_t>("group_size");
  if (algorithm == "FP8" || algorithm == "FP8_PER_CHANNEL_PER_TOKEN" ||
      algorithm == "W8A8_SQ_PER_CHANNEL") {
    precision.weights = precision.activations = graph::DataType::fp8;
  } else if (algorithm == "NVFP4" || algorithm == "NVFP4_AWQ") {
    constexpr std::int64_t kBlock = 16;
    precision.weights = precision.activations = graph::DataType::fp4;
    precision.scale_bits = per_group(kNarrowScaleBits, group.value_or(kBlock));
  } else if (algorithm == "W4A16_AWQ" || algorithm == "W4A8_AWQ") {
    precision.weights = graph::DataType::fp4;
    precision.activations = algorithm == "W4A8_AWQ" ? graph::DataType::fp8 : precision.activations;
    precision.scale_bits = per_group(kScaleBits, group);
  } else {
    read.reject("quant_algo",
                "FP8, FP8_PER_CHANNEL_PER_TOKEN, NVFP4, NVFP4_AWQ, W4A16_AWQ, W4A8_AWQ or "
                "W8A8_SQ_PER_CHANNEL");
  }
  const auto cache = read.maybe<std::string>("kv_cache_quant_algo");
  read.require(!cache || *cache == "FP8" || *cache == "INT8" || *cache == "NVFP4",
               "kv_cache_quant_algo", "FP8, INT8 or NVFP4");
  for (const char* elsewhere : {"config_groups", "has_zero_point", "pre_quant_scale"}) {
    read.ignore(elsewhere);
  }
  read_cache(read, precision);
  if (cache) {
    precision.kv = *cache == "NVFP4" ? graph::DataType::fp4 : graph::DataType::fp8;
  }
}

void read_fp8(Reader& read, Precision& precision) {
  precision.weights = precision.activations = graph::DataType::fp8;
  const auto block = read.list<std::int64_t>("weight_block_size");
  if (!block.empty()) {
    read.require(block.size() == 2 && block[0] > 0 && block[1] > 0, "weight_block_size",
                 "rows and columns of a block");
    precision.block_scaled = true;
    precision.scale_bits = per_block(block);
  }
  read_cache(read, precision);
}

void read_mxfp4(Reader&, Precision& precision) {
  precision.weights = graph::DataType::fp4;
  precision.narrow = Narrow::experts;
  precision.scale_bits = per_group(kNarrowScaleBits, kMicroscaled);
}

struct Method {
  std::string_view name;
  void (*read)(Reader&, Precision&);
};
constexpr auto kMethods = std::to_array<Method>({
    {"fp8", read_fp8},
    {"fbgemm_fp8", read_fp8},
    {"gptq", read_integers},
    {"awq", read_integers},
    {"compressed-tensors", read_compressed},
    {"modelopt", read_modelopt},
    {"modelopt_fp4", read_modelopt},
    {"mxfp4", read_mxfp4},
});

}  // namespace

Result<std::optional<Precision>> quantization_of(const ConfigNode& config) {
  const ConfigNode* node = config.find("quantization_config");
  if (node == nullptr || node->kind == ConfigNode::Kind::null) {
    const ConfigNode* text = config.find("text_config");  // of a model that sees
    return text == nullptr ? std::optional<Precision>() : quantization_of(*text);
  }
  Reader read(*node);
  const bool of_modelopt =
      node->find("quant_method") == nullptr && node->find("quant_algo") != nullptr;
  const auto name =
      of_modelopt ? std::string("modelopt") : read.required<std::string>("quant_method");
  const auto* const method = std::find_if(kMethods.begin(), kMethods.end(),
                                          [&](const Method& each) { return each.name == name; });
  if (method == kMethods.end()) {
    const std::vector<std::string> names = mapped<std::string>(kMethods, &Method::name);
    return fail(Error(
        Mistake{node->where(), "quantization_config.quant_method", name, one_of(name, names)}));
  }
  ignore_all(read, kIgnoredQuantization);
  Precision precision;
  method->read(read, precision);
  const ConfigNode* experts = config.find("expert_dtype");
  if (experts != nullptr && experts->kind != ConfigNode::Kind::null) {
    if (experts->text != "fp4" && experts->text != "fp8") {
      return fail(Error(misread(experts->where(), "expert_dtype", experts->text, "fp4 or fp8")));
    }
    precision.experts_fp4 = experts->text == "fp4" && graph::bits_of(precision.weights) == 8;
  }
  std::vector<std::string> left_out;
  for (const char* list :
       {"ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules"}) {
    for (const std::string& each : read.list<std::string>(list)) {
      left_out.push_back(each);
    }
  }
  const ConfigNode* layers = config.find("num_hidden_layers");
  const std::int64_t count = layers == nullptr ? 0 : parse_integer(layers->text).value_or(0);
  if (precision.narrow == Narrow::all && leaves_out_attention(left_out, count)) {
    precision.narrow = std::ranges::any_of(left_out, names_output) ? Narrow::mlp : Narrow::outputs;
  }
  const auto is_shared = [](const std::string& name) {
    return name.find("shared_experts") != std::string::npos;
  };
  if (precision.narrow == Narrow::mlp && std::ranges::any_of(left_out, is_shared)) {
    precision.narrow = Narrow::experts;
  }
  return read.finish(std::optional<Precision>(precision));
}

}  // namespace orrery::step
