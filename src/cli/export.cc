// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/lists.h"
#include "base/one_of.h"
#include "base/printable.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/export_chakra.h"
#include "cli/export_mpi.h"
#include "cli/plan_flags.h"
#include "machine/device_groups.h"
#include "machine/machine.h"
#include "report/json_writer.h"
#include "serving/launch_line.h"
#include "workload/interop/capabilities.h"

namespace orrery::cli {
namespace {

constexpr const char* kExportExamples =
    "Plan fields that the framework does not have are named in comments (on standard error where\n"
    "the format has none); with --strict they are mistakes.\n"
    "chakra writes the step itself: execution traces OUTPUT.<rank>.et of all ranks and the file "
    "of\n"
    "their groups, OUTPUT.groups.json. Computing takes the machine's time, without one 0.\n"
    "mpi writes a C++ program of the step for MPI that checks itself, with CMakeLists.txt, a test "
    "and "
    "a\n"
    "job script: every rank makes the simulated calls in the simulated order.\n"
    "Examples:\n"
    "  orrery export megatron --plan gpt3-175b-1024 --model gpt3-175b --machine dgx-a100-80g\n"
    "  orrery export vllm --engine engine.yaml --model llama-3.1-8b\n"
    "  orrery export deepspeed --plan llama-3-8b-8 > ds_config.json\n"
    "  orrery export chakra --model gpt2 --tp 2 --dp 4 --global-batch 4 --machine dgx-a100-80g \\\n"
    "                  --output trace/gpt2\n"
    "  orrery export mpi --model gpt2 --tp 2 --pp 2 --global-batch 4 --shrink 16 --out "
    "./gpt2-mpi\n";

std::vector<std::string> export_names() {
  std::vector<std::string> names =
      mapped<std::string>(interop::launchers(), &interop::LaunchFormat::name);
  names.emplace_back("chakra");
  names.emplace_back("mpi");
  const auto& engines = serving::imported_frameworks();
  names.insert(names.end(), engines.begin(), engines.end());
  return names;
}

class Export : public Command {
 public:
  void declare(Options& options) override {
    options.positional(
        "FORMAT", format_,
        "megatron, nemo, torchtitan, deepspeed, chakra or mpi; of engines vllm, sglang, trtllm");
    options.value("--engine", engine_, "NAME|FILE", "of `orrery serve`, for its launch line");
    options.value("--model", model_, "NAME|FILE", "also its arguments, where the format has them");
    options.value("--machine", machine_, "NAME|FILE",
                  "devices per node, for the launcher; chakra, mpi: times of computing");
    options.value("--devices", devices_, "INT", "must be what the plan needs");
    options.flag("--strict", strict_, "refuse a plan that the format cannot state wholly");
    options.flag("--json", json_, "print one JSON object: text, and the fields that are lost");
    options.value("--output", output_, "PREFIX", "of chakra's files");
    options.value("--most-files", most_files_, "INT", "that chakra may write (4096)");
    options.value("--out", out_, "DIR", "of mpi's files");
    options.value("--shrink", shrink_, "INT",
                  "mpi: layers, dimensions of products and messages that many times smaller (1)");
    plan_.declare(options, true, true);
    options.footer(kExportExamples);
  }

  Result<std::string> run(Error mistakes) override {
    const auto& frameworks = serving::imported_frameworks();
    if (std::find(frameworks.begin(), frameworks.end(), format_) != frameworks.end()) {
      return run_engine(std::move(mistakes));
    }
    if (engine_) {
      mistakes.add({"--engine", {}, {}, "is for vllm, sglang and trtllm"});
    }
    if (format_ == "mpi") {
      return run_mpi(std::move(mistakes));
    }
    refuse_given({{"--out", out_}, {"--shrink", shrink_}}, "is for mpi", mistakes);
    if (format_ == "chakra") {
      return run_chakra(std::move(mistakes));
    }
    refuse_given({{"--output", output_}, {"--most-files", most_files_}},
                 "is for chakra; other formats go to standard output", mistakes);
    const interop::LaunchFormat* format = interop::launcher_named(format_);
    if (format == nullptr) {
      mistakes.add(wrong_value("export", format_, one_of(format_, export_names())));
    }
    interop::ExportOptions options;
    zoo::Model model;
    if (model_) {
      model = load_named("--model", *model_, zoo::load_model, mistakes);
      options.model = &model;
    }
    const plan::Plan plan = plan_.plan(options.model, nullptr, 0, mistakes);
    options.devices_per_node = devices_per_node(mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const auto exported = format->write(plan, options);
    if (!exported) {
      return fail(exported.error());
    }
    if (devices_ && parse_value<std::int64_t>(*devices_) != plan.devices()) {
      mistakes.add(wrong_value("--devices", *devices_,
                               fmt::format("{}, which the plan needs", plan.devices())));
    }
    check(*exported, mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return write(*exported);
  }

  /// 1 where the format does not state all.
  int status() const override { return is_whole_ ? 0 : 1; }

 private:
  /// Returns a launch line; what it does not state stands above it, as a comment.
  Result<std::string> run_engine(Error mistakes) {
    refuse_given({{"--machine", machine_},
                  {"--devices", devices_},
                  {"--output", output_},
                  {"--most-files", most_files_},
                  {"--out", out_},
                  {"--shrink", shrink_}},
                 "is for plans; " + format_ + " takes an engine", mistakes);
    plan_.refuse(format_, mistakes);
    serving::Engine engine;
    if (engine_) {
      engine = load_named("--engine", *engine_, serving::load_engine, mistakes);
    } else {
      mistakes.add({"--engine", {}, {}, "missing; expected a name or a file"});
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const auto line = serving::export_engine(format_, engine, model_.value_or("MODEL"));
    if (!line) {
      return fail(line.error());
    }
    interop::Exported exported;
    for (const std::string& field : line->lost) {
      exported.lost.push_back({field, "no flag of " + format_ + " states it"});
      exported.text += fmt::format("# {}: no flag states it\n", field);
    }
    exported.text += line->text + "\n";
    check(exported, mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return write(exported);
  }

  Result<std::string> run_chakra(Error mistakes) {
    ChakraExport what;
    what.json = json_;
    if (model_) {
      what.model = load_named("--model", *model_, zoo::load_model, mistakes);
    } else {
      mistakes.add(Mistake{"--model", {}, {}, "chakra needs one: its operators are the trace"});
    }
    if (machine_) {
      what.machine = load_named("--machine", *machine_, machine::load_alike, mistakes);
    }
    if (!output_ || output_->empty()) {
      mistakes.add(Mistake{"--output", {}, {}, "chakra needs one: a prefix of files"});
    } else {
      what.prefix = *output_;
    }
    if (most_files_) {
      const auto most = parse_value<std::int64_t>(*most_files_);
      what.most_files = most.value_or(0);
      if (!most || *most < 1) {
        mistakes.add(wrong_value("--most-files", *most_files_, "a whole number above 0"));
      }
    }
    what.plan = whole_plan(what.model, what.machine ? &*what.machine : nullptr, mistakes);
    return mistakes.empty() ? export_chakra(what) : fail(std::move(mistakes));
  }

  /// The plan with what it leaves open; --devices must be what it needs.
  plan::Plan whole_plan(const zoo::Model& model, const machine::Machine* machine,
                        Error& mistakes) const {
    const auto devices = parse_value<std::int64_t>(devices_.value_or("0"));
    const plan::Plan plan = plan_.plan(&model, machine, devices.value_or(0), mistakes);
    if (devices_ && devices != plan.devices()) {
      mistakes.add(wrong_value("--devices", *devices_,
                               fmt::format("{}, which the plan needs", plan.devices())));
    }
    return plan;
  }

  Result<std::string> run_mpi(Error mistakes) {
    refuse_given({{"--output", output_}, {"--most-files", most_files_}},
                 "is for chakra; mpi writes into --out", mistakes);
    MpiExport what;
    what.json = json_;
    if (model_) {
      what.model = load_named("--model", *model_, zoo::load_model, mistakes);
    } else {
      mistakes.add(Mistake{"--model", {}, {}, "mpi needs one: its operators are the program"});
    }
    what.machine =
        load_named("--machine", machine_.value_or(kOrderMachine), machine::load_alike, mistakes);
    if (!out_ || out_->empty()) {
      mistakes.add(Mistake{"--out", {}, {}, "mpi needs one: a folder of files"});
    }
    what.folder = out_.value_or("");
    take("--shrink", shrink_, what.shrink, mistakes);
    if (what.shrink < 1) {
      mistakes.add(wrong_value("--shrink", *shrink_, "a whole number above 0"));
    }
    what.plan = whole_plan(what.model, &what.machine, mistakes);
    what.command = fmt::format("orrery export mpi --model {} --machine {} --shrink {} ...",
                               model_.value_or(""), what.machine.name, what.shrink);
    return mistakes.empty() ? export_mpi(what) : fail(std::move(mistakes));
  }

  /// The innermost dimension of the network is the node.
  std::int64_t devices_per_node(Error& mistakes) const {
    if (!machine_) {
      return 0;
    }
    const machine::Machine machine =
        load_named("--machine", *machine_, machine::load_alike, mistakes);
    return machine.network.empty() ? 0 : machine.network.front().size;
  }

  void check(const interop::Exported& exported, Error& mistakes) const {
    if (strict_) {
      for (const interop::Remark& remark : exported.lost) {
        mistakes.add({remark.about, {}, {}, remark.sentence});
      }
    }
  }

  std::string write(const interop::Exported& exported) {
    is_whole_ = exported.lost.empty();
    for (const interop::Remark& remark : exported.lost) {
      fmt::print(stderr, "not stated: {}\n", printable(remark.about + ": " + remark.sentence));
    }
    return json_ ? as_json(exported) : exported.text;
  }

  static std::string as_json(const interop::Exported& exported) {
    return report::json_text([&](report::JsonWriter& json) {
      json.begin_object();
      json.key("text").value(exported.text);
      json.key("lost").objects(exported.lost, [&](const interop::Remark& remark) {
        json.key("field").value(remark.about);
        json.key("why").value(remark.sentence);
      });
      json.end_object();
    });
  }

  std::string format_;
  std::optional<std::string> engine_;
  std::optional<std::string> model_;
  std::optional<std::string> machine_;
  std::optional<std::string> devices_;
  std::optional<std::string> output_;
  std::optional<std::string> most_files_;
  std::optional<std::string> out_;
  std::optional<std::string> shrink_;
  PlanFlags plan_;
  bool strict_ = false;
  bool json_ = false;
  bool is_whole_ = true;  ///< the text states all of the plan or engine
};

}  // namespace

std::unique_ptr<Command> make_export() {
  return std::make_unique<Export>();
}

}  // namespace orrery::cli
