// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/file.h"
#include "base/names.h"
#include "base/printable.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/plan_flags.h"
#include "report/json_writer.h"
#include "report/report.h"
#include "report/serving.h"
#include "serving/launch_line.h"
#include "workload/interop/interop.h"

namespace orrery::cli {
namespace {

constexpr const char* kImportExamples =
    "Examples:\n"
    "  orrery import megatron -- torchrun --nnodes 16 --nproc-per-node 8 pretrain_gpt.py \\\n"
    "                  --tensor-model-parallel-size 8 ... > plan.yaml\n"
    "  orrery import megatron examples/import_megatron/launch.sh > plan.yaml\n"
    "  orrery import megatron launch.sh --devices 128 --model-out config.json > plan.yaml\n"
    "  orrery import deepspeed ds_config.json --devices 64 --sequence 4096 > plan.yaml\n"
    "  orrery import torchtitan llama3_8b.toml --devices 8 > plan.yaml\n"
    "  orrery import vllm -- vllm serve meta-llama/Llama-3.1-8B --max-num-seqs 128 > engine.yaml\n"
    "vllm, sglang and trtllm give an engine of `orrery serve`.\n"
    "What the framework does not state (the sequence of DeepSpeed, host costs) is taken from the\n"
    "plan flags, and they win over what it does state.\n";

/// A Source is what the user gave: the words after `--` or the text of a file.
struct Source {
  std::vector<std::string> words;
  std::optional<std::string> file;
};

Result<interop::Imported> from_megatron(const Source& source,
                                        const interop::ImportOptions& options) {
  if (!source.file) {
    return interop::import_megatron(source.words, options);
  }
  return read_file(*source.file)
      .and_then([&](const std::string& text) { return interop::shell_words(text, *source.file); })
      .and_then([&](const std::vector<std::string>& words) {
        return interop::import_megatron(words, options);
      });
}

Result<interop::Imported> from_deepspeed(const Source& source,
                                         const interop::ImportOptions& options) {
  return read_file(*source.file)
      .and_then([&](const std::string& text) {
        return parse_config(text, *source.file, ConfigSyntax::json);
      })
      .and_then([&](const ConfigNode& node) { return interop::import_deepspeed(node, options); });
}

Result<interop::Imported> from_torchtitan(const Source& source,
                                          const interop::ImportOptions& options) {
  return read_file(*source.file).and_then([&](const std::string& text) {
    return interop::import_torchtitan(text, *source.file, options);
  });
}

struct ImportFormat {
  std::string_view name;
  std::string_view title;
  std::string_view sentence;
  bool takes_words;
  Result<interop::Imported> (*read)(const Source& source, const interop::ImportOptions& options);
};

constexpr std::array kImportFormats{
    ImportFormat{"megatron", "Megatron-LM's arguments",
                 "arguments after --, or a FILE that holds them", true, from_megatron},
    ImportFormat{"deepspeed", "DeepSpeed's configuration", "FILE is a ds_config.json", false,
                 from_deepspeed},
    ImportFormat{"torchtitan", "torchtitan's configuration", "FILE is a job configuration in TOML",
                 false, from_torchtitan},
};

std::vector<std::string> import_names() {
  std::vector<std::string> names;
  names.reserve(kImportFormats.size());
  for (const ImportFormat& format : kImportFormats) {
    names.emplace_back(format.name);
  }
  return names;
}

class Import : public Command {
 public:
  void declare(Options& options) override {
    options.positional("FORMAT", format_,
                       "megatron, deepspeed, torchtitan, vllm, sglang or trtllm");
    options.positional("FILE", file_, "a launch line in a file, or a configuration");
    options.value("--devices", devices_, "INT", "accelerators, when the launch line is silent");
    options.value("--model", model_, "NAME|FILE", "the model, where its layers decide stages");
    options.output("--model-out", model_out_, "FILE",
                   "also write the model of Megatron-LM's arguments as a config.json");
    options.flag("--strict", strict_, "refuse what a plan cannot state exactly");
    options.flag("--json", json_, "print one JSON object; remarks go to standard error");
    plan_.declare(options, false, false);
    options.footer(kImportExamples);
  }

  void take_rest(std::vector<std::string> words, Error&) override { words_ = std::move(words); }

  Result<std::string> run(Error mistakes) override {
    const auto& engines = serving::imported_frameworks();
    if (std::find(engines.begin(), engines.end(), format_) != engines.end()) {
      return run_engine(std::move(mistakes));
    }
    const ImportFormat* format = find_format(mistakes);
    interop::ImportOptions options{.devices = parse_devices(mistakes),
                                   .rest = plan_.placed_plan(mistakes).plan};
    zoo::Model model;
    if (model_) {
      model = load_named("--model", *model_, zoo::load_model, mistakes);
      options.model = &model;
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    auto imported = format->read({.words = words_, .file = file_}, options);
    if (!imported) {
      return fail(std::move(imported.error()));
    }
    imported->plan = plan_.over(std::move(imported->plan), mistakes);
    check(*imported, mistakes);
    if (mistakes.empty() && model_out_) {
      collect(write_file(*model_out_, *imported->model_config).map([] { return 0; }), mistakes);
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return write(*format, *imported);
  }

 private:
  /// An engine of `orrery serve`.
  Result<std::string> run_engine(Error mistakes) const {
    refuse_given({{"--devices", devices_}, {"--model", model_}, {"--model-out", model_out_}},
                 "is for plans; " + format_ + " gives an engine", mistakes);
    plan_.refuse(format_, mistakes);
    std::vector<std::string> words = words_;
    if (file_.has_value() == !words_.empty()) {
      mistakes.add({"import", {}, {}, "what? expected arguments after --, or a FILE of them"});
    } else if (file_) {
      words = collect(read_file(*file_).and_then([&](const std::string& text) {
        return interop::shell_words(text, *file_);
      }),
                      mistakes);
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return serving::import_engine(format_, words)
        .and_then([&](const serving::ImportedEngine& imported) { return write(imported); });
  }

  Result<std::string> write(const serving::ImportedEngine& imported) const {
    std::string remarks;
    Error ignored;
    for (const auto& [words, sentence] : imported.ignored) {
      remarks += fmt::format("{}{}: {}\n", json_ ? "" : "# ", printable(words), sentence);
      ignored.add({words, {}, {}, sentence});
    }
    if (strict_ && !ignored.empty()) {
      return fail(std::move(ignored));
    }
    if (!json_) {
      return remarks + serving::to_yaml(imported.engine, true);
    }
    fmt::print(stderr, "{}", remarks);
    return report::engine_json(imported.engine, true);
  }

  const ImportFormat* find_format(Error& mistakes) const {
    const auto* const format =
        std::find_if(kImportFormats.begin(), kImportFormats.end(),
                     [&](const ImportFormat& f) { return f.name == format_; });
    if (format == kImportFormats.end()) {
      mistakes.add(wrong_value("import", format_,
                               "one of megatron, deepspeed, torchtitan, vllm, sglang, trtllm" +
                                   did_you_mean(format_, import_names())));
      return nullptr;
    }
    const bool given = file_ || (format->takes_words && !words_.empty());
    if (!given) {
      mistakes.add({"import", {}, {}, "what? expected " + std::string(format->sentence)});
    } else if (file_ && !words_.empty()) {
      mistakes.add(wrong_value("import", *file_, "either a file or arguments after --"));
    }
    return format;
  }

  std::int64_t parse_devices(Error& mistakes) const {
    constexpr std::int64_t kMost = std::int64_t{1} << 24;
    if (!devices_) {
      return 0;
    }
    const auto number = parse_value<std::int64_t>(*devices_);
    if (number && *number >= 1 && *number <= kMost) {
      return *number;
    }
    mistakes.add(wrong_value("--devices", *devices_, number ? "1 to 2^24" : number.error()));
    return 0;
  }

  void check(const interop::Imported& imported, Error& mistakes) const {
    if (model_out_ && !imported.model_config) {
      mistakes.add(imported.model_config.error());
    }
    if (strict_) {
      for (const interop::Remark& remark : imported.remarks) {
        mistakes.add({remark.about, {}, {}, remark.sentence});
      }
    }
  }

  Result<std::string> write(const ImportFormat& format, const interop::Imported& imported) const {
    if (json_) {
      for (const interop::Remark& remark : imported.remarks) {
        fmt::print(stderr, "{}\n", printable(remark.about + ": " + remark.sentence));
      }
      return report::json_text(
          [&](report::JsonWriter& json) { report::write_plan(json, imported.plan); });
    }
    std::string text =
        fmt::format("# From {}, for {} devices.\n", format.title, imported.plan.devices());
    for (const interop::Remark& remark : imported.remarks) {
      text += fmt::format("#   {}: {}\n", remark.about, remark.sentence);
    }
    return text + plan::to_yaml(imported.plan);
  }

  std::string format_;
  std::optional<std::string> file_;
  std::optional<std::string> devices_;
  std::optional<std::string> model_;
  std::optional<std::string> model_out_;
  std::vector<std::string> words_;
  PlanFlags plan_;
  bool strict_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_import() {
  return std::make_unique<Import>();
}

}  // namespace orrery::cli
