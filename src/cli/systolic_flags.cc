// SPDX-License-Identifier: Apache-2.0
#include "cli/systolic_flags.h"

#include <fmt/format.h>

#include <cmath>

#include "base/file.h"
#include "base/reader.h"
#include "cli/command_line.h"
#include "machine/compute/compute_model.h"
#include "machine/compute/rates.h"

namespace orrery::cli {
namespace {

constexpr const char* kDeviceForm =
    "systolic:ROWSxCOLS:DATAFLOW with os, ws, is or best, such as systolic:256x256:os";
constexpr std::int64_t kMostCells = 1 << 16;
constexpr double kClock = 1e9;  // cycles per second, as the Chimera artifact's
// Energy per access, 45 nm: recalled of Horowitz, ISSCC 2014 (fp16 multiply and add; SRAM of 1 MB;
// DRAM).
constexpr Energy kMacEnergy(1.5e-12);
constexpr EnergyPerByte kSramEnergy(12.5e-12);
constexpr EnergyPerByte kDramEnergy(162.5e-12);

std::optional<compute::SystolicArray> parse_device(const std::string& text) {
  const auto colon = text.find(':');
  const auto cross = text.find('x', colon);
  const auto last = text.find(':', cross);
  if (text.substr(0, colon) != "systolic" || last == std::string::npos) {
    return std::nullopt;
  }
  const auto rows = parse_integer(text.substr(colon + 1, cross - colon - 1));
  const auto cols = parse_integer(text.substr(cross + 1, last - cross - 1));
  const auto dataflow = value_of<compute::Dataflow>(text.substr(last + 1));
  const auto fits = [](const auto& cells) { return cells && *cells >= 1 && *cells <= kMostCells; };
  if (!fits(rows) || !fits(cols) || !dataflow) {
    return std::nullopt;
  }
  // SRAMs of the Chimera artifact's array.
  return compute::SystolicArray{.rows = *rows,
                                .cols = *cols,
                                .dataflow = *dataflow,
                                .input_sram = 12_MiB,
                                .filter_sram = 12_MiB,
                                .output_sram = 8_MiB,
                                .mac_energy = kMacEnergy,
                                .sram_energy = kSramEnergy};
}

/// Counts are whole, but beyond 2^63 no longer numbers of an integer.
void write_count(report::JsonWriter& json, std::string_view key, double count) {
  constexpr double kMostWhole = 9e15;
  if (count < kMostWhole && count == std::floor(count)) {
    json.key(key).value(static_cast<std::int64_t>(count));
  } else {
    json.key(key).value(count);
  }
}

/// SCALE-Sim's two files and what they cost.
struct LayerRun {
  scalesim::Configuration configuration;
  std::vector<scalesim::Layer> layers;
  scalesim::Compatibility compat{};
  std::vector<compute::SystolicCost> costs;  ///< by layer

  double cycles() const {
    double sum = 0;
    for (const compute::SystolicCost& cost : costs) {
      sum += cost.cycles;
    }
    return sum;
  }
};

std::string layers_json(const LayerRun& run) {
  return report::json_text([&](report::JsonWriter& out) {
    out.begin_object();
    out.key("run_name").value(run.configuration.run_name);
    out.key("array_rows").value(run.configuration.array.rows);
    out.key("array_cols").value(run.configuration.array.cols);
    out.key("compat").value(name_of(run.compat));
    out.key("warnings").values(run.configuration.warnings);
    write_count(out, "cycles", run.cycles());
    out.key("layers").begin_array();
    for (std::size_t i = 0; i < run.layers.size(); ++i) {
      out.begin_object();
      out.key("layer").value(run.layers[i].name);
      write_systolic(out, run.costs[i], std::nullopt);
      out.end_object();
    }
    out.end_array();
    out.end_object();
  });
}

std::string layers_text(const LayerRun& run) {
  std::string text = fmt::format(
      "{}: {} x {} cells, {}, {}\n", run.configuration.run_name, run.configuration.array.rows,
      run.configuration.array.cols, name_of(run.configuration.array.dataflow),
      run.configuration.feed ? "memory as fast as Bandwidth says" : "memory never waits");
  for (const std::string& warning : run.configuration.warnings) {
    text += "warning: " + warning + "\n";
  }
  text += fmt::format("{:<24}{:>16}{:>16}{:>10}{:>10}{:>16}\n", "layer", "cycles", "stalled",
                      "used %", "mapped %", "DRAM bytes");
  for (std::size_t i = 0; i < run.layers.size(); ++i) {
    const compute::SystolicCost& cost = run.costs[i];
    text += fmt::format("{:<24}{:>16.0f}{:>16.0f}{:>10.2f}{:>10.2f}{:>16.0f}\n", run.layers[i].name,
                        cost.cycles, cost.stall_cycles, 100 * cost.utilization,
                        100 * cost.mapping_efficiency, cost.dram_bytes.sum());
  }
  return text + fmt::format("{:<24}{:>16.0f}\n", "all", run.cycles());
}

}  // namespace

void write_systolic(report::JsonWriter& json, const compute::SystolicCost& cost,
                    std::optional<Energy> energy) {
  json.key("dataflow").value(name_of(cost.dataflow));
  write_count(json, "cycles", cost.cycles);
  write_count(json, "stall_cycles", cost.stall_cycles);
  write_count(json, "folds", cost.folds);
  json.key("utilization").value(cost.utilization);
  json.key("mapping_efficiency").value(cost.mapping_efficiency);
  json.key("compute_utilization").value(cost.compute_utilization);
  write_count(json, "input_sram_reads", cost.sram_words.input);
  write_count(json, "filter_sram_reads", cost.sram_words.filter);
  write_count(json, "output_sram_writes", cost.sram_words.output);
  write_count(json, "input_dram_bytes", cost.dram_bytes.input);
  write_count(json, "filter_dram_bytes", cost.dram_bytes.filter);
  write_count(json, "output_dram_bytes", cost.dram_bytes.output);
  if (energy) {
    json.key("energy_j").value(energy->value());
  }
}

void SystolicFlags::declare(Options& options) {
  options.group("Systolic arrays");
  options.value("--device", device_, "systolic:RxC:os",
                "an array at 1 GHz instead of a machine; dataflow os, ws, is or best");
  options.value("--bandwidth", bandwidth_, "RATE",
                "of the memory of --device; without it nothing waits");
  options.value("--sparsity", sparsity_text_, "N:M", "of B: at most n of m weights are not zero");
  options.value("--compat", compat_text_, "scale-sim",
                "SCALE-Sim's figures: a cycle less, outputs rounded up, padding written");
  options.value("--scale-sim", configuration_, "CFG",
                "SCALE-Sim's configuration, unchanged; a topology follows");
  options.positional("topology", topology_, "SCALE-Sim's topology, with --scale-sim");
}

machine::Machine SystolicFlags::machine(Error& mistakes) const {
  machine::Machine machine;
  const auto array = parse_device(*device_);
  if (!array) {
    mistakes.add(wrong_value("--device", *device_, kDeviceForm));
    return machine;
  }
  Bandwidth bandwidth(1e24);
  if (bandwidth_) {
    if (const auto value = parse_bandwidth(*bandwidth_); value && *value > Bandwidth(0)) {
      bandwidth = *value;
    } else {
      mistakes.add(
          wrong_value("--bandwidth", *bandwidth_, value ? "a rate above 0" : value.error()));
    }
  }
  machine.name = *device_;
  compute::Device& device = machine.device;
  device.name = *device_;
  device.model = compute::ComputeModel::systolic;
  device.systolic = *array;
  device.peak.fill(FlopRate(2 * kClock * static_cast<double>(array->rows * array->cols)));
  device.memory = {{"memory", Bytes(std::int64_t{1} << 60), bandwidth, Time(0), kDramEnergy}};
  device.kernels.gemm_launch = Time(0);
  device.kernels.gemm_memory_share = 1;
  return machine;
}

void SystolicFlags::check(bool systolic, Error& mistakes) {
  if (topology_ && !configuration_) {
    mistakes.add({"topology", {}, *topology_, "nothing without --scale-sim"});
  }
  if (bandwidth_ && !device_) {
    mistakes.add({"--bandwidth", {}, {}, "is of --device; a machine says its own"});
  }
  for (const auto& [flag, text] :
       {std::pair{"--sparsity", &sparsity_text_}, std::pair{"--compat", &compat_text_}}) {
    if (*text && !systolic) {
      mistakes.add({flag, {}, **text, "a device of model systolic: --device or such a machine"});
    }
  }
  if (sparsity_text_) {
    const auto colon = sparsity_text_->find(':');
    const auto n = parse_integer(sparsity_text_->substr(0, colon));
    const auto m = parse_integer(colon == std::string::npos ? std::string()
                                                            : sparsity_text_->substr(colon + 1));
    if (n && m && *n >= 1 && *n <= *m && *m <= kMostCells) {
      sparsity_ = {*n, *m};
    } else {
      mistakes.add(wrong_value("--sparsity", *sparsity_text_, "N:M, 1 <= N <= M, such as 2:4"));
    }
  }
  if (compat_text_) {
    if (const auto value = parse_value<scalesim::Compatibility>(*compat_text_)) {
      compat_ = *value;
    } else {
      mistakes.add(wrong_value("--compat", *compat_text_, value.error()));
    }
  }
}

compute::SystolicKernel SystolicFlags::kernel(const graph::Operator& op,
                                              const compute::Device& device) const {
  compute::SystolicKernel kernel =
      compute::systolic_kernel(op, device, sparsity_, !device_ || bandwidth_.has_value());
  if (compat_ == scalesim::Compatibility::scale_sim) {
    compute::SystolicCost& cost = kernel.cost;
    const auto missing = static_cast<double>(op.gemm.batch);
    cost.utilization *= cost.cycles / (cost.cycles - missing);
    cost.cycles -= missing;
  }
  return kernel;
}

Time SystolicFlags::time_of(const graph::Operator& op, const compute::SystolicCost& cost,
                            const compute::Device& device) {
  const compute::SystolicArray& array = device.systolic;
  const double per_cycle = 2 * static_cast<double>(array.rows * array.cols * array.arrays);
  const double clock =
      compute::rates_of(op, device, compute::clock_of(op, device)).flops / per_cycle;
  return device.kernels_of(op).gemm_launch + from_seconds(cost.cycles / clock);
}

Result<std::string> SystolicFlags::layers(bool json, Error mistakes) {
  check(true, mistakes);
  if (!topology_) {
    mistakes.add({"topology", {}, {}, "missing; --scale-sim CFG needs a topology after it"});
  }
  refuse_given({{"--device", device_}, {"--sparsity", sparsity_text_}},
               "contradicts --scale-sim, whose files say it", mistakes);
  scalesim::Configuration configuration;
  std::vector<scalesim::Layer> layers;
  if (const auto text = kept(read_file(*configuration_), mistakes)) {
    configuration = collect(scalesim::parse_configuration(*text, *configuration_), mistakes);
  }
  if (topology_) {
    if (const auto text = kept(read_file(*topology_), mistakes)) {
      layers = collect(scalesim::parse_topology(*text, *topology_), mistakes);
    }
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  LayerRun run{std::move(configuration), std::move(layers), compat_, {}};
  for (const scalesim::Layer& layer : run.layers) {
    run.costs.push_back(scalesim::report(run.configuration, layer, compat_).cost);
  }
  return json ? layers_json(run) : layers_text(run);
}

}  // namespace orrery::cli
