// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/csv.h"
#include "base/file.h"
#include "calibrate/collectives.h"
#include "calibrate/gemm.h"
#include "cli/commands.h"
#include "machine/comments.h"
#include "machine/device_groups.h"
#include "report/calibration.h"
#include "report/collective_calibration.h"

namespace orrery::cli {
namespace {

constexpr const char* kCalibrateExamples =
    "KIND gemm reads CSV with columns m, n, k, latency_us and, if you like, dtype and batch, as\n"
    "tools/measure_gpu.py writes it. Each data type of the file is fitted; bf16 (else fp16) gives\n"
    "the machine's general kernels.\n"
    "KIND collectives reads the output of nccl-tests (one file of several runs, with their # "
    "lines)\n"
    "or CSV with columns collective, n_gpus, bytes, time_us and, for several nodes, "
    "gpus_per_node.\n"
    "Without --output the fit is only printed.\n"
    "Examples:\n"
    "  orrery calibrate gemm examples/calibrate_gemm/gemm.csv --machine dgx-h100\n"
    "  orrery calibrate gemm gemm.csv --machine dgx-h100 --type fp8 --output my-h100.yaml\n"
    "  orrery calibrate collectives all_reduce_perf.txt --machine dgx-h100 -o my-h100.yaml\n";

class Calibrate : public Command {
 public:
  void declare(Options& options) override {
    options.positional("KIND", kind_, "what was measured: " + kind_names());
    options.positional("FILE", file_, "measurements");
    options.value("--machine", machine_, "NAME|FILE", "the machine whose coefficients are fitted");
    options.value("--type", type_, "NAME", "fit only this data type of the file");
    options.output("-o,--output", output_, "FILE", "write the fitted machine");
    options.flag("--cast", cast_, "times of 8-bit types contain a conversion of A: fit it apart");
    options.flag("--json", json_, "print one JSON object");
    options.footer(kCalibrateExamples);
  }

  Result<std::string> run(Error mistakes) override {
    const auto* const kind =
        std::find_if(kinds.begin(), kinds.end(), [&](const Kind& k) { return k.name == kind_; });
    if (kind == kinds.end()) {
      std::vector<std::string> names;
      names.reserve(kinds.size());
      for (const Kind& known : kinds) {
        names.emplace_back(known.name);
      }
      mistakes.add(
          wrong_value("calibrate", kind_, "one of " + kind_names() + did_you_mean(kind_, names)));
    }
    if (!file_) {
      mistakes.add({"FILE", {}, {}, "missing; expected a table of measurements"});
    }
    if (!machine_) {
      mistakes.add({"--machine", {}, {}, "missing; expected the machine to start from"});
    }
    if (kind != kinds.end() && kind_ != "gemm") {
      refuse_given({{"--type", type_}, {"--cast", cast_}}, "goes with calibrate gemm", mistakes);
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return (this->*kind->run)();
  }

 private:
  Result<std::string> gemm() const {
    Error mistakes;
    machine::Machine machine =
        load_named("--machine", machine_.value_or(""), machine::load_alike, mistakes);
    const calibrate::GemmTable table =
        collect(load_csv(file_.value_or("")).and_then([&](const CsvTable& csv) {
          return calibrate::read_gemm_table(csv, type_.value_or("bf16"), type_.value_or(""));
        }),
                mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const std::string name = std::filesystem::path(file_.value_or("")).filename().string();
    auto calibration = calibrate::calibrate_gemm(std::move(machine), table, name, cast_);
    if (!calibration) {
      return fail(std::move(calibration.error()));
    }
    keep(write(calibration->machine));
    return json_ ? report::gemm_calibration_json(*calibration)
                 : report::gemm_calibration_table(*calibration);
  }

  Result<std::string> collectives() const {
    Error mistakes;
    const machine::Machine machine =
        load_named("--machine", machine_.value_or(""), machine::load_alike, mistakes);
    const auto measured = collect(calibrate::load_collectives(file_.value_or("")), mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const std::string name = std::filesystem::path(file_.value_or("")).filename().string();
    return calibrate::calibrate_collectives(machine, measured, name)
        .and_then([&](const calibrate::CollectiveFit& fit) -> Result<std::string> {
          keep(write(fit.machine));
          return json_ ? report::collective_calibration_json(fit)
                       : report::collective_calibration_table(fit);
        });
  }

  /// With the comments of the file that the machine was read from.
  Result<void> write(const machine::Machine& machine) const {
    if (!output_) {
      return {};
    }
    const std::string source =
        find_config("machines", machine_.value_or(""))
            .and_then([](const std::string& path) { return read_file(path); })
            .value_or("");  // what was read from a pipe has gone
    return write_file(*output_, machine::with_comments(machine::to_yaml(machine), source));
  }

  /// A kind of measurement: a line here and a function that fits.
  struct Kind {
    std::string_view name;
    Result<std::string> (Calibrate::*run)() const;
  };
  static const std::array<Kind, 2> kinds;
  static std::string kind_names() {
    std::string names;
    for (const Kind& kind : kinds) {
      names += (names.empty() ? "" : ", ") + std::string(kind.name);
    }
    return names;
  }

  std::string kind_;
  std::optional<std::string> file_;
  std::optional<std::string> machine_;
  std::optional<std::string> type_;
  std::optional<std::string> output_;
  bool cast_ = false;
  bool json_ = false;
};

const std::array<Calibrate::Kind, 2> Calibrate::kinds{
    {{"gemm", &Calibrate::gemm}, {"collectives", &Calibrate::collectives}}};

}  // namespace

std::unique_ptr<Command> make_calibrate() {
  return std::make_unique<Calibrate>();
}

}  // namespace orrery::cli
