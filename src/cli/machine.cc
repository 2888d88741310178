// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/lists.h"
#include "base/process.h"
#include "base/split.h"
#include "cli/commands.h"
#include "machine/detect.h"
#include "report/json_writer.h"

namespace orrery::cli {
namespace {

constexpr const char* kMachineExamples =
    "Asks nvidia-smi or rocm-smi, ibstat and Slurm, those that are there, and writes the machine:\n"
    "memory, devices of a node, links, adapters and nodes as they say, everything else as the\n"
    "shipped machine with that device has it. --from takes recorded outputs instead, of another\n"
    "node or time, in files of these names.\n";
constexpr const char* kMachineCalls =
    "Examples:\n"
    "  orrery machine detect\n"
    "  orrery machine detect --output mine.yaml\n"
    "  orrery machine detect --from recorded --like dgx-h100 --json\n";

constexpr std::size_t kMostOutput = std::size_t{1} << 24;  // Slurm prints 1 KiB a node

/// Returns what a command of words prints; "" where it is not there or fails.
std::string output_of(std::string_view command) {
  const std::vector<std::string> words =
      mapped<std::string>(split_at(command, ' '), std::identity{});
  const auto run = run_process(words, {.most_output = kMostOutput});
  return run && run->status == 0 ? run->output : "";
}

class MachineCommand : public Command {
 public:
  void declare(Options& options) override {
    options.positional("ACTION", action_, "detect");
    options.value("--from", from_, "FOLDER",
                  "recorded outputs of the tools, instead of running them");
    options.value("--like", like_, "NAME|FILE",
                  "the machine that everything else is from; default: by the device's name");
    options.output("-o,--output", output_, "FILE", "write the machine; default: print it");
    options.flag("--json", json_, "print one JSON object: what was found, what was kept");
    std::string footer = kMachineExamples;
    for (const machine::DetectTool& tool : machine::kDetectTools) {
      footer += fmt::format("{}: what `{}` prints\n", tool.file, tool.command);
    }
    options.footer(footer + kMachineCalls);
  }

  Result<std::string> run(Error mistakes) override {
    if (action_ != "detect") {
      mistakes.add(wrong_value("machine", action_, "detect"));
    }
    const machine::ToolOutputs outputs = mistakes.empty() ? read(mistakes) : machine::ToolOutputs();
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    auto detected = machine::detect(outputs, like_);
    if (!detected) {
      Error error = like_ ? of_flag("--like", *like_, std::move(detected.error()))
                          : std::move(detected.error());
      if (outputs.empty()) {
        error.add(
            Error("on a node with accelerators run it there, or record the files that "
                  "`orrery help machine` lists and give --from FOLDER"));
      }
      return fail(std::move(error));
    }
    if (output_) {
      if (!std::filesystem::path(*output_).stem().empty()) {
        detected->machine.name = std::filesystem::path(*output_).stem();
      }
      keep(write_file(*output_, file_of(*detected)));
    }
    return json_ ? as_json(*detected) : output_ ? as_text(*detected) : file_of(*detected);
  }

 private:
  machine::ToolOutputs read(Error& mistakes) const {
    machine::ToolOutputs outputs;
    std::error_code ignored;
    if (from_ && !std::filesystem::is_directory(*from_, ignored)) {
      mistakes.add(wrong_value("--from", *from_, "a folder of recorded outputs"));
      return outputs;
    }
    for (const machine::DetectTool& tool : machine::kDetectTools) {
      const std::string file(tool.file);
      if (!from_) {
        outputs[file] = output_of(tool.command);
      } else if (const std::string path = *from_ + "/" + file;
                 std::filesystem::exists(path, ignored)) {
        outputs[file] = collect(read_file(path, kMostOutput), mistakes);
      }
    }
    std::erase_if(outputs, [](const auto& entry) { return entry.second.empty(); });
    return outputs;
  }

  /// The machine's file with what was found as comments above.
  static std::string file_of(const machine::Detected& detected) {
    std::string text;
    for (const std::string& line : detected.found) {
      text += "# " + line + "\n";
    }
    for (const std::string& line : detected.kept) {
      text += "# " + line + "\n";
    }
    return text + machine::to_yaml(detected.machine);
  }

  std::string as_text(const machine::Detected& detected) const {
    std::string text = fmt::format("{} (like {})\n", detected.machine.name, detected.like);
    for (const std::string& line : detected.found) {
      text += "  " + line + "\n";
    }
    text += "kept\n";
    for (const std::string& line : detected.kept) {
      text += "  " + line + "\n";
    }
    return text + fmt::format("next: orrery simulate --model gpt2 --machine {} --devices {}\n",
                              *output_, detected.devices);
  }

  static std::string as_json(const machine::Detected& detected) {
    return report::json_text([&](report::JsonWriter& json) {
      json.begin_object();
      json.key("machine").value(detected.machine.name);
      json.key("like").value(detected.like);
      json.key("devices_per_node").value(detected.devices);
      json.key("nodes").value(detected.nodes);
      json.key("found").values(detected.found);
      json.key("kept").values(detected.kept);
      json.key("yaml").value(machine::to_yaml(detected.machine));
      json.end_object();
    });
  }

  std::string action_;
  std::optional<std::string> from_;
  std::optional<std::string> like_;
  std::optional<std::string> output_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_machine() {
  return std::make_unique<MachineCommand>();
}

}  // namespace orrery::cli
