// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/csv.h"
#include "base/file.h"
#include "base/lists.h"
#include "base/one_of.h"
#include "base/reader.h"
#include "base/table_reader.h"
#include "calibrate/collectives.h"
#include "calibrate/gemm.h"
#include "calibrate/impossible_times.h"
#include "calibrate/kernel_fit.h"
#include "cli/commands.h"
#include "cli/served_model.h"
#include "machine/comments.h"
#include "machine/device_groups.h"
#include "report/calibration.h"
#include "report/collective_calibration.h"
#include "report/host_fit.h"
#include "study/kernels.h"

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
    "KIND memory reads CSV with columns bytes (read and written) and latency_us: kernels that "
    "stream.\n"
    "KIND attention and KIND moe read CSV with the columns of `orrery attention --file` and\n"
    "`orrery moe --file` and latency_us; attention.csv of tools/measure_gpu.py is one, and moe "
    "also\n"
    "reads its grouped.csv (dtype, experts, m, n, k, latency_us): products without permutations.\n"
    "KIND serving reads what `orrery serve --observe URL` writes and fits the host of --engine: "
    "its\n"
    "front end, gap or step, and time per request; --output is an engine's file.\n"
    "Without --output the fit is only printed.\n"
    "Examples:\n"
    "  orrery calibrate gemm examples/calibrate_gemm/gemm.csv --machine dgx-h100\n"
    "  orrery calibrate gemm gemm.csv --machine dgx-h100 --type fp8 --output my-h100.yaml\n"
    "  orrery calibrate attention attention.csv --machine dgx-h100 -o my-h100.yaml\n"
    "  orrery calibrate collectives all_reduce_perf.txt --machine dgx-h100 -o my-h100.yaml\n"
    "  orrery calibrate serving seen.csv --machine dgx-h100 --model llama-3.1-8b -o engine.yaml\n";

class Calibrate : public Command {
 public:
  void declare(Options& options) override {
    options.positional("KIND", kind_, "what was measured: " + kind_names());
    options.positional("FILE", file_, "measurements");
    options.value("--machine", machine_, "NAME|FILE", "the machine whose coefficients are fitted");
    options.value("--model", model_, "NAME|FILE", "of serving: the model that was served");
    options.value("--engine", engine_, "NAME|FILE",
                  "of serving: what served it; default vllm@0.20");
    options.value("--type", type_, "NAME", "fit only this data type of the file");
    options.output("-o,--output", output_, "FILE",
                   "write the fitted machine, of serving the engine");
    options.flag("--cast", cast_, "times of 8-bit types contain a conversion of A: fit it apart");
    options.flag("--json", json_, "print one JSON object");
    options.footer(kCalibrateExamples);
  }

  Result<std::string> run(Error mistakes) override {
    const auto* const kind =
        std::find_if(kinds.begin(), kinds.end(), [&](const Kind& k) { return k.name == kind_; });
    if (kind == kinds.end()) {
      mistakes.add(
          wrong_value("calibrate", kind_, one_of(kind_, mapped<std::string>(kinds, &Kind::name))));
    }
    if (!file_) {
      mistakes.add({"FILE", {}, {}, "missing; expected a table of measurements"});
    }
    if (!machine_) {
      mistakes.add({"--machine", {}, {}, "missing; expected the machine to start from"});
    }
    if (kind != kinds.end() && kind_ != "serving") {
      refuse_given({{"--model", model_}, {"--engine", engine_}}, "goes with calibrate serving",
                   mistakes);
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
        collect(load_csv(file_.value_or(""),
                         [&](const CsvTable& csv) {
                           return calibrate::read_gemm_table(csv, type_.value_or("bf16"),
                                                             type_.value_or(""));
                         }),
                mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    auto calibration = calibrate::calibrate_gemm(std::move(machine), table, source(), cast_);
    if (!calibration) {
      return fail(std::move(calibration.error()));
    }
    keep(write(calibration->machine));
    return json_ ? report::json_of(*calibration) : report::gemm_calibration_table(*calibration);
  }

  Result<std::string> collectives() const {
    Error mistakes;
    const machine::Machine machine =
        load_named("--machine", machine_.value_or(""), machine::load_alike, mistakes);
    const auto measured = collect(calibrate::load_collectives(file_.value_or("")), mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return calibrate::calibrate_collectives(machine, measured, source())
        .and_then([&](const calibrate::CollectiveFit& fit) -> Result<std::string> {
          keep(write(fit.machine));
          return json_ ? report::json_of(fit) : report::collective_calibration_table(fit);
        });
  }

  using Calibrator = Result<calibrate::KernelCalibration> (*)(
      machine::Machine, const std::vector<calibrate::KernelMeasurement>&, const std::string&);

  /// Rows of `orrery attention --file` or `orrery moe --file` with what they took, or of grouped
  /// products alone.
  template <class Query>
  Result<std::string> kernels(Calibrator calibrator) const {
    Error mistakes;
    machine::Machine machine =
        load_named("--machine", machine_.value_or(""), machine::load_alike, mistakes);
    const CsvTable table = collect(load_csv(file_.value_or("")), mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const bool grouped = std::is_same_v<Query, study::MoeQuery> &&
                         (table.column("experts") || table.column("k")) &&
                         !table.column("num_experts");
    const auto rows = collect(
        grouped ? calibrate::read_grouped(table) : read_measured<Query>(table, machine.device),
        mistakes);
    return mistakes.empty() ? tell(calibrator(std::move(machine), rows, source()))
                            : fail(std::move(mistakes));
  }

  /// Rows of bytes that a kernel reads and writes.
  Result<std::string> memory() const {
    Error mistakes;
    machine::Machine machine =
        load_named("--machine", machine_.value_or(""), machine::load_alike, mistakes);
    const auto rows = collect(load_csv(file_.value_or(""), calibrate::read_streams), mistakes);
    return mistakes.empty() ? tell(calibrate::calibrate_streams(std::move(machine), rows, source()))
                            : fail(std::move(mistakes));
  }

  std::string source() const {
    return std::filesystem::path(file_.value_or("")).filename().string();
  }

  Result<std::string> tell(const Result<calibrate::KernelCalibration>& fit) const {
    if (!fit) {
      return fail(fit.error());
    }
    if (auto written = write(fit->machine); !written) {
      return fail(std::move(written.error()));
    }
    return json_ ? report::json_of(*fit) : report::kernel_calibration_table(*fit);
  }

  Result<std::string> attention() const {
    return kernels<study::AttentionQuery>(calibrate::calibrate_attention);
  }
  Result<std::string> moe() const { return kernels<study::MoeQuery>(calibrate::calibrate_moe); }

  template <class Query>
  static Result<std::vector<calibrate::KernelMeasurement>> read_measured(
      const CsvTable& table, const compute::Device& device) {
    Error mistakes;
    const auto queries =
        collect(study::read_queries<Query>(table, calibrate::kMeasurementBytes), mistakes);
    TableReader read(table);
    read.need("latency_us");
    std::vector<calibrate::KernelMeasurement> rows;
    for (std::size_t i = 0; i < std::min(queries.size(), read.rows().size()); ++i) {
      const CsvRow& row = table.rows[i];
      const double microseconds =
          read.number(row, "latency_us", calibrate::kShortestMicroseconds,
                      calibrate::kLongestMicroseconds, calibrate::kMicrosecondsExpected);
      if (auto kernels = study::kernels_of(queries[i], device, table.where(row))) {
        rows.push_back({std::move(*kernels), from_seconds(1e-6 * microseconds)});
      } else {
        read.add(std::move(kernels.error()));
      }
    }
    mistakes.add(read.finish());
    return or_mistakes(std::move(rows), std::move(mistakes));
  }

  Result<std::string> serving() const {
    Error mistakes;
    const machine::Machine machine =
        load_named("--machine", machine_.value_or(""), machine::load_alike, mistakes);
    const auto [model, engine] = load_served(model_, engine_, mistakes);
    const auto measured =
        collect(load_csv(file_.value_or(""), serving::read_measured_requests), mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return serving::fit_host(model, machine, engine, measured)
        .and_then([&](const serving::HostFit& fit) -> Result<std::string> {
          if (output_) {
            if (auto done = write_file(*output_, serving::to_yaml(fit.engine)); !done) {
              return fail(std::move(done.error()));
            }
          }
          return json_ ? report::json_of(fit) : report::host_fit_text(fit);
        });
  }

  /// Writes the machine, with the comments of the file that it was read from.
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
  static const std::array<Kind, 6> kinds;
  static std::string kind_names() { return joined(kinds, ", ", &Kind::name); }

  std::string kind_;
  std::optional<std::string> file_;
  std::optional<std::string> machine_;
  std::optional<std::string> model_;
  std::optional<std::string> engine_;
  std::optional<std::string> type_;
  std::optional<std::string> output_;
  bool cast_ = false;
  bool json_ = false;
};

const std::array<Calibrate::Kind, 6> Calibrate::kinds{{{"gemm", &Calibrate::gemm},
                                                       {"memory", &Calibrate::memory},
                                                       {"attention", &Calibrate::attention},
                                                       {"moe", &Calibrate::moe},
                                                       {"collectives", &Calibrate::collectives},
                                                       {"serving", &Calibrate::serving}}};

}  // namespace

std::unique_ptr<Command> make_calibrate() {
  return std::make_unique<Calibrate>();
}

}  // namespace orrery::cli
