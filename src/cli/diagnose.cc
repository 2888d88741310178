// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose.h"

#include "cli/commands.h"
#include "cli/html_flag.h"
#include "report/diagnose.h"

namespace orrery::cli {
namespace {

constexpr const char* kExamples =
    "Files: telemetry, one JSON object per line (docs/diagnose.md), or the dumps of PyTorch's "
    "NCCL\n"
    "flight recorder, one per rank, whose names end with the rank.\n"
    "Examples:\n"
    "  orrery diagnose telemetry.jsonl\n"
    "  orrery diagnose telemetry.jsonl --timeout '2 min' --json\n"
    "  orrery diagnose /tmp/nccl_trace_rank_*\n";

class Diagnose : public Command {
 public:
  void declare(Options& options) override {
    options.positionals("FILE", files_, "telemetry, or a flight recorder's dump of a rank");
    options.value("--timeout", timeout_, "TIME",
                  "a collective hangs that takes longer; default 30 s");
    options.value("--window", window_, "INT",
                  "messages of a pair that count, the last; default 20");
    html_.declare(options);
    options.flag("--json", json_, "print one JSON object");
    options.footer(kExamples);
  }

  Result<std::string> run(Error mistakes) override {
    diagnose::Options options;
    take("--timeout", timeout_, options.timeout, mistakes);
    take("--window", window_, options.window, mistakes);
    if (options.window < 1) {
      mistakes.add(wrong_value("--window", *window_, "a number of messages above 0"));
    }
    if (files_.empty()) {
      mistakes.add({"diagnose", {}, {}, "which files? telemetry, or dumps of the flight recorder"});
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return diagnose::load_telemetry(files_).and_then([&](const diagnose::Telemetry& telemetry) {
      const diagnose::Diagnosis found = diagnose::diagnose(telemetry, options);
      const auto json = [&] { return report::json_of(found); };
      return html_.beside(json_ ? json() : report::diagnosis_text(found), json);
    });
  }

 private:
  std::vector<std::string> files_;
  std::optional<std::string> timeout_;
  std::optional<std::string> window_;
  HtmlFlag html_{"diagnose"};
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_diagnose() {
  return std::make_unique<Diagnose>();
}

}  // namespace orrery::cli
