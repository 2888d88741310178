// SPDX-License-Identifier: Apache-2.0
#include "serving/launch_line.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/reader.h"
#include "serving/launch_flags.h"
#include "serving/launch_program.h"
#include "shell/shell.h"
#include "workload/zoo/hub_name.h"

namespace orrery::serving {
namespace {

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
          engine.*member = *value != (flag.kind == FlagKind::no);
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

/// Checks the engine as one of a file. `spoken` has the flag of each field, "section.field", that
/// was given.
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

/// Reads one line's flags into an engine.
class LineReader {
 public:
  LineReader(const std::string& framework, Engine engine, const std::vector<std::string>& places)
      : framework_(framework), places_(places) {
    result_.engine = std::move(engine);
    for (const Flag& flag : engine_flags()) {
      if (flag.framework == framework) {
        known_.push_back("--" + std::string(flag.name));
      }
    }
  }

  Result<ImportedEngine> run(const std::vector<std::string>& words) {
    check_program(words);
    for (at_ = after_launcher(framework_, words); at_ < words.size(); ++at_) {
      if (auto spoken = spoken_flag(words[at_])) {  // else the program, the model, or a value
        read(words, *spoken);
      }
    }
    settle();
    if (const std::string model = narrow_model(words); !model.empty() && !states_weights_) {
      weighty_.push_back({model, "its name says " + std::string(zoo::format_of(model)) +
                                     ": weights are as the model's own file says; of a shipped "
                                     "model --quantization of serve does"});
    }
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    sort_remarks();
    return in_range(result_.engine, flag_of_).map([&] { return std::move(result_); });
  }

 private:
  void mistake(const std::string& name, std::string found, std::string expected) {
    const bool known = at_ < places_.size();
    if (shell::unresolved(found)) {
      expected += "; give what the script does not set, such as: FILE -- NAME=value";
    }
    error_.add(
        {known ? places_[at_] : name, known ? name : "", std::move(found), std::move(expected)});
  }

  /// A line that is no server's. Without words before the first flag nothing is said.
  void check_program(const std::vector<std::string>& words) {
    bool named = words.empty() || words.front().starts_with("-");
    for (const std::string& word : words) {
      named = named || names_server(framework_, word);
    }
    const std::string where = places_.empty() ? framework_ : places_.front();
    const auto bench = std::ranges::find(words, "bench");
    if (bench != words.end() && bench != words.begin() && *(bench - 1) == "vllm") {
      error_.add({where, {}, "vllm bench", "the line of a server: vllm serve MODEL ..."});
    } else if (!named) {
      error_.add({where,
                  {},
                  words.front(),
                  framework_ == "vllm"     ? "a line such as: vllm serve MODEL --max-num-seqs 128"
                  : framework_ == "sglang" ? "a line such as: python -m sglang.launch_server "
                                             "--model-path MODEL"
                                           : "a line such as: trtllm-serve MODEL "
                                             "--max_batch_size 64"});
    }
  }

  void read(const std::vector<std::string>& words, SpokenFlag spoken) {
    const std::size_t begin = at_;
    const bool negated = spoken.name.starts_with("no-");
    const std::string positive = negated ? spoken.name.substr(3) : spoken.name;
    const auto flags = engine_flags();
    const auto flag = std::ranges::find_if(flags, [&](const Flag& f) {
      return f.framework == framework_ &&
             (f.name == spoken.name || (f.is_switch() && f.name == positive));
    });
    const bool is_switch = flag != flags.end() && flag->is_switch();
    const bool follows = at_ + 1 < words.size() && !is_flag(words[at_ + 1]);
    if (!spoken.value && follows && !is_switch && !is_special_switch(spoken.name)) {
      spoken.value = words[++at_];
    }
    if (flag == flags.end()) {
      if (!apply_special(spoken)) {
        leave_out(words[begin], spoken, positive);
      }
      return;
    }
    if (is_switch) {
      spoken.value = spoken.value.value_or(negated ? "false" : "true");
    }
    if (!spoken.value) {
      mistake(words[begin], "", "missing; expected a value after it");
      return;
    }
    set(*flag, "--" + spoken.name, *spoken.value);
  }

  void set(const Flag& flag, const std::string& name, const std::string& text) {
    const std::string value = framework_ == "vllm" ? plain_number(text) : text;
    const std::string field = std::string(flag.section) + "." + std::string(flag.field);
    const auto [before, first] = seen_.emplace(field, value);
    flag_of_.emplace(field, name);
    if (!first && before->second != value) {
      mistake(name, value, "the same as before: " + before->second);
    }
    if (const std::string wrong = assign(result_.engine, flag, value); !wrong.empty()) {
      mistake(name, value, wrong);
    }
  }

  static bool is_special_switch(const std::string& name) {
    constexpr std::array<std::string_view, 11> kNames{
        "enable-expert-parallel", "enable-attention-dp",
        "enforce-eager",          "disable-cuda-graph",
        "enable-dp-attention",    "enable-ep-moe",
        "enable-deepep-moe",      "enable-lora",
        "trust-remote-code",      "enable-hierarchical-cache",
        "enable-auto-tool-choice"};
    return std::ranges::find(kNames, name) != kNames.end();
  }

  /// Applies a flag that is no field alone; false: not such a flag.
  bool apply_special(const SpokenFlag& spoken) {
    const std::string& name = spoken.name;
    const std::string value = spoken.value.value_or("");
    Engine& engine = result_.engine;
    if (name == "kv-cache-dtype" || name == "kv-cache-config.dtype") {
      return set_type(engine.kv, value);
    }
    if (name == "mamba-ssm-cache-dtype" || name == "mamba-ssm-dtype") {
      engine.state = value == "float32" ? graph::DataType::fp32 : engine.state;
      return value == "auto" || value == "float32" || value == "bfloat16" || value == "float16";
    }
    if (name == "quantization") {
      states_weights_ = true;
      return set_type(engine.weights, value) && set_type(engine.activations, value);
    }
    if (name == "enforce-eager" || name == "disable-cuda-graph") {
      engine.largest_graph = 0;
    } else if (name == "enable-expert-parallel" || name == "enable-ep-moe") {
      all_ranks_ = true;
    } else if (name == "enable-dp-attention" || name == "enable-attention-dp") {
      shares_attention_ = value != "false";
    } else if (name == "dtype") {
      return value == "auto" || value == "bfloat16" || value == "bf16";
    } else {
      return apply_exchange(name, value) || apply_adapters(name) || apply_memory(name, value) ||
             apply_speculation(name, value);
    }
    return true;
  }

  /// Applies what says who carries tokens to their experts.
  bool apply_exchange(const std::string& name, const std::string& value) {
    const bool names = name == "moe-a2a-backend" || name == "all2all-backend";
    if (name != "enable-deepep-moe" && name != "deepep-mode" && !names) {
      return false;
    }
    if (names && value != "deepep" && !value.starts_with("deepep-") &&
        !value.starts_with("deepep_")) {
      return value == "none" || value == "naive" || value == "allgather_reducescatter";
    }
    all_ranks_ = all_ranks_ || framework_ == "sglang";
    const bool whole = value.find("low_latency") != std::string::npos;
    result_.engine.dispatch =
        whole ? plan::MoeDispatch::all_to_all : plan::MoeDispatch::hierarchical;
    return true;
  }

  bool apply_adapters(const std::string& name) {
    if (name != "enable-lora") {
      return false;
    }
    constexpr std::int64_t kSglangs = 8;  // --max-loras-per-batch; vLLM's --max-loras is 1
    std::int64_t& slots = result_.engine.adapter_slots;
    slots = slots > 0 ? slots : framework_ == "sglang" ? kSglangs : 1;
    return true;
  }

  /// Keys and values on the host, in GiB.
  bool apply_memory(const std::string& name, const std::string& value) {
    if (name == "kv-offloading-backend" || name == "enable-hierarchical-cache") {
      return true;
    }
    const auto size = parse_number(value);
    if ((name != "kv-offloading-size" && name != "hicache-size") || !size || *size < 0) {
      return false;
    }
    result_.engine.tiers = *size > 0 ? "host:" + value + " GiB" : "";
    return true;
  }

  bool apply_speculation(const std::string& name, const std::string& value) {
    Engine& engine = result_.engine;
    if (name == "speculative-config") {
      return read_speculation(value);
    }
    if (name == "speculative-model" || name == "speculative-draft-model-path" ||
        name == "speculative-draft") {
      engine.draft_model = value == "[ngram]" ? "" : value;
      if (engine.speculation == Speculation::none) {
        engine.speculation = value == "[ngram]" ? Speculation::ngram : Speculation::model;
      }
      return true;
    }
    if (name != "speculative-algorithm" && name != "speculative-algo") {
      return false;
    }
    engine.speculation = value == "NGRAM"        ? Speculation::ngram
                         : value == "STANDALONE" ? Speculation::model
                                                 : Speculation::mtp;
    return true;
  }

  /// vLLM's JSON: {"method": "eagle3", "model": "...", "num_speculative_tokens": 3}.
  bool read_speculation(const std::string& text) {
    const auto node = parse_config(text, "--speculative-config", ConfigSyntax::json);
    if (!node) {
      mistake("--speculative-config", text, "a JSON object such as {\"method\": \"ngram\"}");
      return true;
    }
    const auto field = [&](std::string_view name) {
      const ConfigNode* found = node->find(name);
      return found == nullptr ? std::string() : found->text;
    };
    Engine& engine = result_.engine;
    const std::string method = field("method");
    const std::string model = field("model");
    engine.speculation = method == "ngram" || model == "[ngram]"     ? Speculation::ngram
                         : method.empty() || method == "draft_model" ? Speculation::model
                                                                     : Speculation::mtp;
    engine.draft_model = engine.speculation == Speculation::model ? model : "";
    const auto tokens = parse_integer(field("num_speculative_tokens"));
    engine.draft_tokens = tokens ? *tokens : engine.draft_tokens;
    return true;
  }

  void leave_out(const std::string& word, const SpokenFlag& spoken, const std::string& positive) {
    const std::string whole =
        spoken.value && word.find('=') == std::string::npos ? word + " " + *spoken.value : word;
    const std::string_view why = left_out_because(positive);
    if (spoken.name == "quantization") {
      weighty_.push_back({"--quantization " + spoken.value.value_or(""),
                          "left to the checkpoint, whose quantization_config says it"});
    } else if (!why.empty()) {
      weighty_.push_back({whole, "left out: " + std::string(why)});
    } else if (is_weightless(positive)) {
      weightless_ += (weightless_.empty() ? "--" : ", --") + spoken.name;
    } else {
      unknown_.push_back({word, "left out: no field of an engine says it" +
                                    did_you_mean("--" + spoken.name, known_)});
    }
  }

  /// Fields that follow from several flags.
  void settle() {
    Engine& engine = result_.engine;
    if (framework_ == "sglang" && engine.speculation != Speculation::none) {
      engine.speculation = Speculation::none;
      weighty_.push_back({"--speculative-algorithm",
                          "left out: the policy sglang guesses no tokens; vllm_v1 and trtllm do"});
    }
    if (engine.speculation == Speculation::mtp || engine.speculation == Speculation::none) {
      engine.draft_model.clear();
    }
    const bool adapters = std::ranges::any_of(flag_of_, [](const auto& field) {
      return field.first == "lora.slots" || field.first == "lora.rank";
    });
    engine.adapter_slots = adapters && engine.adapter_slots == 0 ? 1 : engine.adapter_slots;
    if (framework_ == "sglang" && engine.dp > 1) {
      if (!shares_attention_) {
        engine.replicas = engine.dp;  // SGLang's dp alone starts whole engines
        engine.dp = 1;
      } else if (engine.tp % engine.dp != 0) {
        mistake("--dp-size", std::to_string(engine.dp),
                "a divisor of --tp-size, " + std::to_string(engine.tp) +
                    ": with --enable-dp-attention tp counts all ranks");
      } else {
        engine.tp /= engine.dp;
      }
    }
    if (framework_ == "trtllm" && shares_attention_ && engine.dp == 1) {
      if (engine.ep == 1) {
        engine.ep = engine.tp;
        weighty_.push_back({"--enable-attention-dp", "experts are whole on their ranks here (ep " +
                                                         std::to_string(engine.ep) + ")"});
      }
      engine.dp = engine.tp;  // every rank has the attention of its own requests
      engine.tp = 1;
    }
    engine.ep = all_ranks_ ? engine.tp * engine.dp : engine.ep;
  }

  /// Puts first what changes the result, what is unknown, then one line for the rest.
  void sort_remarks() {
    result_.ignored = std::move(weighty_);
    std::ranges::move(unknown_, std::back_inserter(result_.ignored));
    if (!weightless_.empty()) {
      result_.ignored.push_back({weightless_, "without weight for time and memory"});
    }
  }

  const std::string& framework_;
  const std::vector<std::string>& places_;
  ImportedEngine result_;
  Error error_;
  std::size_t at_ = 0;
  std::vector<std::string> known_;
  std::map<std::string, std::string> seen_;     ///< "section.field" -> value
  std::map<std::string, std::string> flag_of_;  ///< "section.field" -> flag
  std::vector<IgnoredArgument> weighty_;
  std::vector<IgnoredArgument> unknown_;
  std::string weightless_;
  bool states_weights_ = false;
  bool all_ranks_ = false;         ///< experts are spread over all ranks, however many
  bool shares_attention_ = false;  ///< SGLang's copies of attention within tp
};

}  // namespace

const std::vector<std::string>& imported_frameworks() {
  static const std::vector<std::string> names{"vllm", "sglang", "trtllm"};
  return names;
}

Result<ImportedEngine> import_engine(const std::string& framework,
                                     const std::vector<std::string>& words,
                                     const std::vector<std::string>& places) {
  return load_engine(framework).and_then(
      [&](Engine engine) { return LineReader(framework, std::move(engine), places).run(words); });
}

}  // namespace orrery::serving
