// SPDX-License-Identifier: Apache-2.0
#include "serving/launch_line.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/printable.h"
#include "base/reader.h"

namespace orrery::serving {
namespace {

struct Flag {
  std::string_view framework;
  std::string_view name;  ///< with dashes
  std::string_view section;
  std::string_view field;
  bool is_switch = false;  ///< takes no value: true; --no-NAME: false
  bool inverted = false;   ///< true means the field is false
};
constexpr auto kFlags = std::to_array<Flag>({
    {"vllm", "tensor-parallel-size", "parallel", "tp"},
    {"vllm", "tp", "parallel", "tp"},
    {"vllm", "pipeline-parallel-size", "parallel", "pp"},
    {"vllm", "pp", "parallel", "pp"},
    {"vllm", "data-parallel-size", "parallel", "dp"},
    {"vllm", "dp", "parallel", "dp"},
    {"vllm", "max-num-seqs", "scheduler", "max_num_seqs"},
    {"vllm", "max-num-batched-tokens", "scheduler", "max_num_batched_tokens"},
    {"vllm", "max-model-len", "scheduler", "max_model_len"},
    {"vllm", "long-prefill-token-threshold", "scheduler", "long_prefill_token_threshold"},
    {"vllm", "enable-chunked-prefill", "scheduler", "chunked_prefill", true},
    {"vllm", "async-scheduling", "scheduler", "async", true},
    {"vllm", "enable-prefix-caching", "cache", "prefix", true},
    {"vllm", "gpu-memory-utilization", "cache", "memory_utilization"},
    {"vllm", "block-size", "cache", "block_size"},
    {"vllm", "disable-hybrid-kv-cache-manager", "cache", "whole_windows", true},
    {"vllm", "num-gpu-blocks-override", "cache", "blocks"},
    {"sglang", "tp-size", "parallel", "tp"},
    {"sglang", "tp", "parallel", "tp"},
    {"sglang", "tensor-parallel-size", "parallel", "tp"},
    {"sglang", "pp-size", "parallel", "pp"},
    {"sglang", "pipeline-parallel-size", "parallel", "pp"},
    {"sglang", "dp-size", "parallel", "dp"},
    {"sglang", "dp", "parallel", "dp"},
    {"sglang", "data-parallel-size", "parallel", "dp"},
    {"sglang", "ep-size", "parallel", "ep"},
    {"sglang", "ep", "parallel", "ep"},
    {"sglang", "max-running-requests", "scheduler", "max_num_seqs"},
    {"sglang", "chunked-prefill-size", "scheduler", "max_num_batched_tokens"},
    {"sglang", "context-length", "scheduler", "max_model_len"},
    {"sglang", "disable-overlap-schedule", "scheduler", "async", true, true},
    {"sglang", "disable-radix-cache", "cache", "prefix", true, true},
    {"sglang", "mem-fraction-static", "cache", "memory_utilization"},
    {"sglang", "page-size", "cache", "block_size"},
    {"sglang", "disable-hybrid-swa-memory", "cache", "whole_windows", true},
    {"sglang", "cuda-graph-max-bs", "graphs", "largest"},
    {"trtllm", "tp-size", "parallel", "tp"},
    {"trtllm", "tp", "parallel", "tp"},
    {"trtllm", "pp-size", "parallel", "pp"},
    {"trtllm", "pp", "parallel", "pp"},
    {"trtllm", "ep-size", "parallel", "ep"},
    {"trtllm", "ep", "parallel", "ep"},
    {"trtllm", "max-batch-size", "scheduler", "max_num_seqs"},
    {"trtllm", "max-num-tokens", "scheduler", "max_num_batched_tokens"},
    {"trtllm", "max-seq-len", "scheduler", "max_model_len"},
    {"trtllm", "kv-cache-free-gpu-memory-fraction", "cache", "memory_utilization"},
    {"trtllm", "kv-cache-free-gpu-mem-fraction", "cache", "memory_utilization"},
});

/// Puts a text into the field; the error is what would have been right.
std::string assign(Engine& engine, const Flag& flag, const std::string& text) {
  std::string wrong;
  Engine::fields(
      [&](std::string_view section, std::string_view field, auto member, std::string_view) {
        if (section != flag.section || field != flag.field) {
          return;
        }
        using T = std::remove_cvref_t<decltype(engine.*member)>;
        auto value = parse_value<T>(text);
        if (!value) {
          wrong = value.error();
        } else if constexpr (std::is_same_v<T, bool>) {
          engine.*member = *value != flag.inverted;
        } else {
          engine.*member = std::move(*value);
        }
      });
  return wrong;
}

/// fp8 of either kind; false: what only a checkpoint can say (gptq, awq ...). "auto" and 16-bit
/// types leave the default.
bool set_type(graph::DataType& type, const std::string& text) {
  const bool fp8 = text.starts_with("fp8");
  type = fp8 ? graph::DataType::fp8 : type;
  return fp8 || text == "auto" || text == "bfloat16" || text == "float16" || text == "half";
}

/// Applies a flag that more than one field follows from; false: not such a flag.
bool apply_special(Engine& engine, const std::string& name, const std::string& value) {
  if (name == "kv-cache-dtype") {
    return set_type(engine.kv, value);
  } else if (name == "mamba-ssm-cache-dtype" || name == "mamba-ssm-dtype") {
    engine.state = value == "float32" ? graph::DataType::fp32 : engine.state;
    return value == "auto" || value == "float32" || value == "bfloat16" || value == "float16";
  } else if (name == "quantization") {
    return set_type(engine.weights, value) && set_type(engine.activations, value);
  } else if (name == "enable-expert-parallel") {
    engine.ep = 0;  // all ranks, whatever their number: below
  } else if (name == "enforce-eager" || name == "disable-cuda-graph") {
    engine.largest_graph = 0;
  } else {
    return false;
  }
  return true;
}

/// `positive`: the name of a switch without "no-".
const Flag* flag_named(const std::string& framework, const std::string& name,
                       const std::string& positive) {
  return std::find_if(kFlags.begin(), kFlags.end(), [&](const Flag& f) {
    return f.framework == framework && (f.name == name || (f.is_switch && f.name == positive));
  });
}

/// As of a file; `spoken`: the flag of each field, "section.field", that was given.
Result<void> in_range(const Engine& engine, const std::map<std::string, std::string>& spoken) {
  auto checked = parse_config(to_yaml(engine), engine.name, ConfigSyntax::yaml)
                     .and_then([](const ConfigNode& node) { return parse_engine(node); });
  if (checked) {
    return {};
  }
  for (Mistake& mistake : checked.error().mistakes) {
    mistake.where.clear();  // a line of a file that nobody sees
    if (const auto flag = spoken.find(mistake.field); flag != spoken.end()) {
      mistake.where = flag->second;
      mistake.field.clear();
    }
  }
  return fail(std::move(checked.error()));
}

std::vector<std::string> flags_of(const std::string& framework) {
  std::vector<std::string> names;
  for (const Flag& flag : kFlags) {
    if (flag.framework == framework) {
      names.push_back("--" + std::string(flag.name));
    }
  }
  return names;
}

/// Says whether the value of a flag is a number format, of flags that are no field each.
bool names_format(const std::string& flag) {
  return flag == "kv-cache-dtype" || flag == "quantization" || flag == "mamba-ssm-cache-dtype" ||
         flag == "mamba-ssm-dtype";
}

struct SpokenFlag {
  std::string name;  ///< without dashes before it, with dashes in it
  std::optional<std::string> value;
};
std::optional<SpokenFlag> spoken_flag(const std::string& word) {
  if (word == "-q") {  // vLLM's
    return SpokenFlag{"quantization", {}};
  }
  if (!word.starts_with("--") && !(word.starts_with("-") && word.size() > 2)) {
    return std::nullopt;
  }
  SpokenFlag flag{word.substr(word.starts_with("--") ? 2 : 1), {}};
  if (const std::size_t equals = flag.name.find('='); equals != std::string::npos) {
    flag.value = flag.name.substr(equals + 1);
    flag.name.resize(equals);
  }
  std::replace(flag.name.begin(), flag.name.end(), '_', '-');
  return flag;
}

/// A line that is no server's. Without words before the first flag nothing is said.
void check_program(const std::string& framework, const std::vector<std::string>& words,
                   Error& error) {
  const auto flags = std::ranges::find_if(
      words, [](const std::string& word) { return word.starts_with("-") && word != "-m"; });
  const std::string name = framework == "trtllm" ? "trtllm" : framework;
  bool named = flags == words.begin();
  for (auto word = words.begin(); word != flags; ++word) {
    named = named || word->find(name) != std::string::npos;
    if (*word == "bench" && framework == "vllm") {
      error.add({framework, {}, "vllm bench", "the line of a server: vllm serve MODEL ..."});
    }
  }
  if (!named && error.empty()) {
    error.add({framework,
               {},
               words.front(),
               framework == "vllm"     ? "a line such as: vllm serve MODEL --max-num-seqs 128"
               : framework == "sglang" ? "a line such as: python -m sglang.launch_server "
                                         "--model-path MODEL"
                                       : "a line such as: trtllm-serve MODEL --max_batch_size 64"});
  }
}

}  // namespace

const std::vector<std::string>& imported_frameworks() {
  static const std::vector<std::string> names{"vllm", "sglang", "trtllm"};
  return names;
}

Result<ImportedEngine> import_engine(const std::string& framework,
                                     const std::vector<std::string>& words) {
  ImportedEngine result;
  auto defaults = load_engine(framework);
  if (!defaults) {
    return fail(std::move(defaults.error()));
  }
  Engine& engine = result.engine = std::move(*defaults);
  Error error;
  check_program(framework, words, error);
  const std::vector<std::string> known = flags_of(framework);
  std::map<std::string, std::string> seen;     // section.field -> value
  std::map<std::string, std::string> flag_of;  // section.field -> flag
  for (std::size_t i = 0; i < words.size(); ++i) {
    auto spoken = spoken_flag(words[i]);
    if (!spoken) {
      continue;  // the program, the model, or a value of a flag that is not known
    }
    auto& [name, value] = *spoken;
    const bool negated = name.starts_with("no-");
    const auto* const flag = flag_named(framework, name, negated ? name.substr(3) : name);
    const bool follows = i + 1 < words.size() && !words[i + 1].starts_with("--");
    if (flag == kFlags.end()) {
      const bool typed = names_format(name);
      if (typed && !value && follows) {
        value = words[++i];
      }
      if (!apply_special(engine, name, value.value_or(""))) {
        result.ignored.push_back(
            {typed && value ? "--" + name + " " + *value : words[i],
             name == "quantization"
                 ? "left to the checkpoint, whose quantization_config says it"
                 : "left out: no field of an engine says it" + did_you_mean("--" + name, known)});
      }
      continue;
    }
    if (flag->is_switch) {
      value = value.value_or(negated ? "false" : "true");
    } else if (!value && follows) {
      value = words[++i];
    }
    if (!value) {
      error.add({words[i], {}, {}, "missing; expected a value after it"});
      continue;
    }
    const std::string field = std::string(flag->section) + "." + std::string(flag->field);
    const auto [before, first] = seen.emplace(field, *value);
    flag_of.emplace(field, "--" + name);
    if (!first && before->second != *value) {
      error.add({"--" + name, {}, *value, "the same as before: " + before->second});
    }
    if (const std::string wrong = assign(engine, *flag, *value); !wrong.empty()) {
      error.add({"--" + name, {}, *value, wrong});
    }
  }
  engine.ep = engine.ep == 0 ? engine.tp * engine.dp : engine.ep;
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return in_range(engine, flag_of).map([&] { return std::move(result); });
}

namespace {

/// Returns the flags that more than one field follows from.
std::string special_flags(const std::string& framework, const Engine& engine,
                          const Engine& defaults) {
  const auto fp8 = graph::DataType::fp8;
  std::string text;
  if (engine.kv == fp8) {
    text += " --kv-cache-dtype fp8";
  }
  if (engine.weights == fp8 && engine.activations == fp8) {
    text += " --quantization fp8";
  }
  if (engine.state == graph::DataType::fp32 && framework != "trtllm") {
    text += framework == "vllm" ? " --mamba-ssm-cache-dtype float32" : " --mamba-ssm-dtype float32";
  }
  if (engine.ep > 1 && framework == "vllm") {
    text += " --enable-expert-parallel";
  }
  if (engine.largest_graph == 0 && defaults.largest_graph > 0 && framework != "trtllm") {
    text += framework == "vllm" ? " --enforce-eager" : " --disable-cuda-graph";
  }
  return text;
}

}  // namespace

Result<LaunchLine> export_engine(const std::string& framework, const Engine& engine,
                                 const std::string& model) {
  auto defaults = load_engine(framework);
  if (!defaults) {
    return fail(std::move(defaults.error()));
  }
  LaunchLine line;
  std::string flags = special_flags(framework, engine, *defaults);
  std::vector<std::string> done;
  for (const Flag& flag : kFlags) {
    const std::string field = std::string(flag.section) + "." + std::string(flag.field);
    const std::string value = field_text(engine, field);
    const bool eager = field == "graphs.largest" && engine.largest_graph == 0;  // above
    const bool by_device = value == "0";  // which no flag says
    if (flag.framework != framework || eager || by_device ||
        value == field_text(*defaults, field) ||
        std::find(done.begin(), done.end(), field) != done.end()) {
      continue;  // of a field's flags the first
    }
    done.push_back(field);
    if (!flag.is_switch) {
      flags += " --" + std::string(flag.name) + " " + value;
    } else {
      const bool on = (value == "true") != flag.inverted;
      flags += (on ? " --" : " --no-") + std::string(flag.name);
    }
  }
  line.text = (framework == "vllm" ? "vllm serve " + shell_quoted(model)
               : framework == "sglang"
                   ? "python -m sglang.launch_server --model-path " + shell_quoted(model)
                   : "trtllm-serve " + shell_quoted(model)) +
              flags;
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < flags.size();) {
    const std::size_t end = std::min(flags.find(' ', begin), flags.size());
    if (end > begin) {
      words.push_back(flags.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return import_engine(framework, words).map([&](const ImportedEngine& again) {
    Engine::fields(
        [&](std::string_view section, std::string_view field, auto member, std::string_view) {
          if (again.engine.*member != engine.*member) {
            line.lost.push_back(std::string(section) + "." + std::string(field));
          }
        });
    return std::move(line);
  });
}

}  // namespace orrery::serving
