// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/file.h"
#include "base/letters.h"
#include "base/lists.h"
#include "base/names.h"
#include "base/printable.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/plan_flags.h"
#include "report/json_writer.h"
#include "report/report.h"
#include "report/serving.h"
#include "serving/launch_line.h"
#include "workload/interop/framework.h"
#include "workload/interop/interop.h"
#include "workload/plan/framework.h"

namespace orrery::cli {
namespace {

constexpr const char* kImportExamples =
    "Examples:\n"
    "  orrery import megatron -- torchrun --nnodes 16 --nproc-per-node 8 pretrain_gpt.py \\\n"
    "                  --tensor-model-parallel-size 8 ... > plan.yaml\n"
    "  orrery import megatron examples/import_megatron/launch.sh > plan.yaml\n"
    "  orrery import megatron launch.sh --devices 128 --model-out config.json > plan.yaml\n"
    "  orrery import megatron train.sh -- NNODES=4 CHECKPOINTS --vocab-size 32000 > plan.yaml\n"
    "  orrery import deepspeed ds_config.json --devices 64 --sequence 4096 > plan.yaml\n"
    "  orrery import torchtitan llama3_8b.toml --devices 8 > plan.yaml\n"
    "  orrery import accelerate fsdp.yaml --sequence 4096 --microbatch 2 > plan.yaml\n"
    "  orrery import nemo run.yaml -- trainer.num_nodes=4 model.seq_length=8192 > plan.yaml\n"
    "  orrery import vllm -- vllm serve meta-llama/Llama-3.1-8B --max-num-seqs 128 > engine.yaml\n"
    "vllm, sglang and trtllm give an engine of `orrery serve`.\n"
    "What the framework does not state (the sequence of DeepSpeed, host costs) is taken from the\n"
    "plan flags, and they win over what it does state.\n";

/// A Source is what the user gave: the words after `--` or the text of a file.
struct Source {
  std::vector<std::string> words;
  std::optional<std::string> file;
};

constexpr std::size_t kLargestLaunch = std::size_t{1} << 20;  // words take more than their file

Result<interop::Imported> from_megatron(std::string_view /*name*/, const Source& source,
                                        const interop::ImportOptions& options) {
  if (!source.file) {
    return interop::import_megatron(source.words, options);
  }
  return read_file(*source.file, kLargestLaunch)
      .and_then([&](const std::string& text) {
        return interop::launch_words(text, *source.file, source.words);
      })
      .and_then([&](const interop::LaunchWords& line) {
        return interop::import_megatron(line, options);
      });
}

Result<interop::Imported> from_deepspeed(std::string_view /*name*/, const Source& source,
                                         const interop::ImportOptions& options) {
  return read_file(*source.file)
      .and_then([&](const std::string& text) {
        return parse_config(interop::strict_json(text), *source.file, ConfigSyntax::json);
      })
      .and_then([&](const ConfigNode& node) { return interop::import_deepspeed(node, options); });
}

Result<interop::Imported> from_torchtitan(std::string_view /*name*/, const Source& source,
                                          const interop::ImportOptions& options) {
  return read_file(*source.file, kLargestLaunch).and_then([&](const std::string& text) {
    return interop::import_torchtitan(text, *source.file, options);
  });
}

/// A configuration in YAML, and words a.b=c that override it. One in Python is a program.
Result<interop::Imported> from_framework(std::string_view name, const Source& source,
                                         const interop::ImportOptions& options) {
  if (source.file->ends_with(".py")) {
    return fail(Error(wrong_value(
        "import", *source.file,
        "YAML: a configuration in Python is a program, which is not run; dump it there, such as "
        "with --dump-config, ConfigContainer.to_yaml(FILE) or OmegaConf.save(cfg, FILE)")));
  }
  return read_file(*source.file)
      .and_then([&](const std::string& text) {
        return parse_config(text, *source.file, syntax_of(text, *source.file));
      })
      .and_then([&](ConfigNode node) {
        return interop::import_framework(name, std::move(node), source.words, options);
      });
}

struct ImportFormat {
  std::string_view name;
  std::string_view title;
  std::string_view sentence;
  bool takes_words;
  Result<interop::Imported> (*read)(std::string_view name, const Source& source,
                                    const interop::ImportOptions& options);
};

const std::vector<ImportFormat>& import_formats() {
  static const std::vector<ImportFormat> formats = [] {
    std::vector<ImportFormat> all{
        {"megatron", "Megatron-LM's arguments", "arguments after --, or a FILE that holds them",
         true, from_megatron},
        {"deepspeed", "DeepSpeed's configuration", "FILE is a ds_config.json", false,
         from_deepspeed},
        {"torchtitan", "torchtitan's configuration", "FILE is a job configuration in TOML", false,
         from_torchtitan},
    };
    for (const interop::FrameworkFormat& format : interop::framework_formats()) {
      all.push_back(
          {format.name, format.title, "FILE is a configuration in YAML", true, from_framework});
    }
    return all;
  }();
  return formats;
}

std::vector<std::string> import_names() {
  std::vector<std::string> names = mapped<std::string>(import_formats(), &ImportFormat::name);
  for (const std::string& name : serving::imported_frameworks()) {
    names.push_back(name);
  }
  return names;
}

/// Returns the name without hyphens and underscores, in small letters.
std::string plain(std::string name) {
  std::erase_if(name, [](char c) { return c == '-' || c == '_'; });
  return lower_case(name);
}

class Import : public Command {
 public:
  void declare(Options& options) override {
    options.positional("FORMAT", format_, joined(import_names()));
    options.positional("FILE", file_,
                       "a launch script or line, or a configuration; words after -- are the "
                       "script's variables (NAME=value), arguments and further flags, or keys "
                       "that override (a.b=value)");
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
    // Other spellings of one name: llamafactory, llm_foundry.
    for (const std::string& name : import_names()) {
      format_ = plain(name) == plain(format_) ? name : format_;
    }
    const ImportFormat* format = find_format(mistakes);
    interop::ImportOptions options{.devices = parse_devices(mistakes), .rest = rest(mistakes)};
    zoo::Model model;
    if (model_) {
      model = load_named("--model", *model_, zoo::load_model, mistakes);
      options.model = &model;
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    auto imported = format->read(format_, {.words = words_, .file = file_}, options);
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
  /// Returns the flags, and what their framework has.
  plan::Plan rest(Error& mistakes) const {
    plan::PlacedPlan rest = plan_.placed_plan(mistakes);
    plan::apply_framework(rest);
    return rest.plan;
  }

  /// An engine of `orrery serve`.
  Result<std::string> run_engine(Error mistakes) const {
    refuse_given({{"--devices", devices_}, {"--model", model_}, {"--model-out", model_out_}},
                 "is for plans; " + format_ + " gives an engine", mistakes);
    plan_.refuse(format_, mistakes);
    serving::EngineWords line{.words = words_, .places = {}};
    if (!file_ && words_.empty()) {
      mistakes.add({"import", {}, {}, "missing; expected arguments after --, or a FILE of them"});
    } else if (file_) {
      line = collect(read_file(*file_, kLargestLaunch).and_then([&](const std::string& text) {
        return serving::launch_of(format_, text, *file_, words_);
      }),
                     mistakes);
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return serving::import_engine(format_, line.words, line.places)
        .and_then([&](serving::ImportedEngine imported) {
          imported.ignored.insert(imported.ignored.begin(), line.remarks.begin(),
                                  line.remarks.end());
          return write(imported);
        });
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
    const auto& formats = import_formats();
    const auto format = std::ranges::find(formats, format_, &ImportFormat::name);
    if (format == formats.end()) {
      mistakes.add(
          wrong_value("import", format_,
                      "one of " + joined(import_names()) + did_you_mean(format_, import_names())));
      return nullptr;
    }
    const bool given = file_ || (format->name == "megatron" && !words_.empty());
    if (!given) {
      mistakes.add({"import", {}, {}, "missing; expected " + std::string(format->sentence)});
    } else if (file_ && !words_.empty() && !format->takes_words) {
      mistakes.add(wrong_value("import", *file_, "either a file or arguments after --"));
    }
    return &*format;
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
      return report::json_of(imported.plan);
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
