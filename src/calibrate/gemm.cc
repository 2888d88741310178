// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/format.h"
#include "base/lists.h"
#include "calibrate/minimize.h"
#include "machine/compute/compute_model.h"
#include "machine/compute/number_format.h"

namespace orrery::calibrate {
namespace {

/// GEMM times tell these coefficients, each with the range that a device can plausibly have.
constexpr std::array kFitted{
    Coefficient{"gemm_peak_share", {0.3, 1}},      Coefficient{"gemm_memory_share", {0.3, 1}},
    Coefficient{"gemm_tile_load", {0, 250}},       Coefficient{"gemm_k_ramp", {0, 2000}},
    Coefficient{"gemm_wave_quantisation", {0, 1}}, Coefficient{"gemm_launch", {0.2e-6, 30e-6}},
    Coefficient{"gemm_split_latency", {0, 50e-6}}, Coefficient{"gemm_split_traffic", {0, 2}},
};
constexpr std::string_view kUnknownBesideACast = "gemm_launch";
constexpr std::array kCastBounds{Bounds{0, 30e-6}, Bounds{0, 16}};
constexpr double kLeastShareOfPeakTime = 0.8;

struct Region {
  double weight;
  bool (*contains)(const graph::GemmShape& shape);
};
/// The regions are asked in order; a shape belongs to the first that contains it.
constexpr std::array kRegions{
    Region{3,
           [](const graph::GemmShape& s) {
             return std::min({s.m, s.n, s.k}) >= 1024;
           }},
    Region{1, [](const graph::GemmShape& s) { return s.m >= 1024; }},
    Region{1.5, [](const graph::GemmShape& s) { return s.m >= 128; }},
    Region{1, [](const graph::GemmShape&) { return true; }},
};
constexpr std::size_t kMostShapesPerRegion = 150;

std::uint64_t hash_of(const graph::GemmShape& shape) {
  return shape_hash(std::array{shape.batch, shape.m, shape.n, shape.k});
}

/// A GEMM to be predicted and what it took.
struct Sample {
  graph::Operator op;
  double seconds = 0;
  double weight = 1;
  bool of_a_step = false;
};

std::vector<Sample> samples_of(const std::string& format,
                               std::vector<GemmMeasurement> measurements) {
  std::sort(measurements.begin(), measurements.end(),
            [](const auto& a, const auto& b) { return hash_of(a.shape) < hash_of(b.shape); });
  std::array<std::vector<Sample>, kRegions.size()> regions;
  for (const GemmMeasurement& measured : measurements) {
    const auto region =
        std::find_if(kRegions.begin(), kRegions.end(),
                     [&](const Region& candidate) { return candidate.contains(measured.shape); });
    auto& samples = regions[static_cast<std::size_t>(region - kRegions.begin())];
    if (samples.size() < kMostShapesPerRegion) {
      samples.push_back({gemm_operator(format, measured.shape), to_seconds(measured.time),
                         to_seconds(measured.of_step), measured.of_step > Time(0)});
    }
  }
  std::vector<Sample> all;
  for (std::size_t r = 0; r < kRegions.size(); ++r) {
    for (Sample& sample : regions[r]) {
      if (!sample.of_a_step) {
        sample.weight = kRegions[r].weight / static_cast<double>(regions[r].size());
      }
      all.push_back(std::move(sample));
    }
  }
  return all;
}

/// Returns the device with one set of coefficients for everything.
compute::Device with_kernels(compute::Device device, const compute::KernelCoefficients& kernels) {
  device.kernels = kernels;
  device.format_kernels.clear();
  device.overlap_units = device.overlap_memory = 0;  // not asked for, not computed
  return compute::at_boost(std::move(device));
}

double cast_seconds(const GemmCast& cast, const graph::GemmShape& s,
                    const compute::Device& device) {
  const double elements =
      static_cast<double>(s.batch) * static_cast<double>(s.m) * static_cast<double>(s.k);
  return to_seconds(cast.launch) + to_seconds(cast.row) * static_cast<double>(s.k) +
         cast.bytes * elements / device.memory.front().bandwidth.value();
}

double predicted_seconds(const graph::Operator& op, const GemmCast& cast,
                         const compute::Device& device) {
  return to_seconds(compute::kernel_time(op, device).alone) + cast_seconds(cast, op.gemm, device);
}

/// One fit: which coefficients are free, and what they give.
class Fit {
 public:
  Fit(const std::vector<Sample>& samples, const compute::Device& device,
      const compute::KernelCoefficients& start, bool cast)
      : samples_(samples), trial_(with_kernels(device, start)), start_(values_of(start, kFitted)) {
    for (std::size_t i = 0; i < kFitted.size(); ++i) {
      if (!cast || kFitted[i].name != kUnknownBesideACast) {
        free_.push_back(i);
        box_.push_back(kFitted[i].bounds);
      }
    }
    if (cast) {
      box_.insert(box_.end(), kCastBounds.begin(), kCastBounds.end());
    }
    of_a_step_ = std::ranges::any_of(samples_, &Sample::of_a_step);
  }

  std::pair<compute::KernelCoefficients, GemmCast> run() {
    std::vector<double> from = mapped(free_, [&](const std::size_t i) { return start_[i]; });
    from.resize(box_.size(), 0);
    std::vector<double> best =
        minimize([&](std::span<const double> values) { return loss(values); }, box_, from).at;
    std::transform(best.begin(), best.end(), best.begin(),
                   [](double value) { return rounded(value, 4); });
    return {kernels_of(best), cast_of(best)};
  }

 private:
  compute::KernelCoefficients kernels_of(std::span<const double> values) const {
    std::vector<double> all = start_;
    for (std::size_t i = 0; i < free_.size(); ++i) {
      all[free_[i]] = values[i];
    }
    return with_values(trial_.kernels, kFitted, all);
  }

  GemmCast cast_of(std::span<const double> values) const {
    if (values.size() == free_.size()) {
      return {};
    }
    return {from_seconds(values[free_.size()]), values[free_.size() + 1]};
  }

  double loss(std::span<const double> values) {
    trial_.kernels = kernels_of(values);
    const GemmCast cast = cast_of(values);
    RatioLoss loss;
    for (const Sample& sample : samples_) {
      loss.add(sample.weight, predicted_seconds(sample.op, cast, trial_) / sample.seconds);
    }
    return loss.value(of_a_step_);
  }

  const std::vector<Sample>& samples_;
  compute::Device trial_;
  std::vector<double> start_;
  std::vector<std::size_t> free_;  ///< numbers in kFitted
  std::vector<Bounds> box_;        ///< of the free coefficients, then of the cast
  bool of_a_step_ = false;         ///< weights are seconds
};

/// Reports measurements whose times no device of that peak reaches.
void check_rates(const std::string& format, const std::vector<GemmMeasurement>& measurements,
                 FlopRate peak, const std::string& source, Error& error) {
  for (const GemmMeasurement& measured : measurements) {
    const Time least = kLeastShareOfPeakTime * (graph::flops_of(measured.shape) / peak);
    if (measured.time < least) {
      const graph::GemmShape& shape = measured.shape;
      error.add({source, fmt::format("{} {} x {} x {}", format, shape.m, shape.n, shape.k),
                 to_string(measured.time),
                 fmt::format("at least {}: the peak is {}", to_string(least), to_string(peak))});
    }
  }
}

bool is_general(const std::string& format, const GemmTable& table) {
  return format == "bf16" || (format == "fp16" && !table.contains("bf16")) ||
         (format == "fp32" && !table.contains("bf16") && !table.contains("fp16"));
}

}  // namespace

graph::Operator gemm_operator(const std::string& format, const graph::GemmShape& shape) {
  graph::Operator op;
  op.name = "gemm";
  op.kind = graph::OperatorKind::gemm;
  const auto known = compute::number_format(format).value_or(compute::NumberFormat{});
  op.block_scaled = known.block_scaled;
  op.type = known.type;
  op.gemm = shape;
  op.flops = graph::flops_of(shape);
  return op;
}

FitError gemm_error(const std::string& format, const std::vector<GemmMeasurement>& measurements,
                    const compute::Device& device, const GemmCast& cast) {
  const std::vector<double> ratios = mapped(measurements, [&](const GemmMeasurement& measured) {
    return predicted_seconds(gemm_operator(format, measured.shape), cast, device) /
           to_seconds(measured.time);
  });
  return fit_error(ratios);
}

GemmFit fit_gemm(const std::string& format, const std::vector<GemmMeasurement>& measurements,
                 const compute::Device& device, bool cast) {
  assert(!measurements.empty() && "something to fit to");
  std::vector<GemmMeasurement> used, held_out;
  for (const GemmMeasurement& measured : measurements) {
    const bool hold =
        measured.of_step == Time(0) && is_held_out(hash_of(measured.shape), measurements.size());
    (hold ? held_out : used).push_back(measured);
  }
  GemmFit fit;
  fit.format = format;
  fit.coefficients = kFitted;
  fit.before = device.kernels_of(gemm_operator(format, {}));
  const graph::Operator op = gemm_operator(format, {});
  const std::vector<Sample> samples = samples_of(format, used);
  std::tie(fit.after, fit.cast) =
      Fit(samples, device, fit.before, cast && graph::bits_of(op.type) <= 8).run();
  const compute::Device before = with_kernels(device, fit.before);
  const compute::Device after = with_kernels(device, fit.after);
  fit.fitted_before = gemm_error(format, used, before);
  fit.fitted_after = gemm_error(format, used, after, fit.cast);
  fit.held_out_before = gemm_error(format, held_out, before);
  fit.held_out_after = gemm_error(format, held_out, after, fit.cast);
  return fit;
}

namespace {

FlopRate fastest_of(const std::vector<GemmMeasurement>& measurements) {
  double fastest = 0;
  for (const GemmMeasurement& measured : measurements) {
    fastest =
        std::max(fastest, graph::flops_of(measured.shape).value() / to_seconds(measured.time));
  }
  return FlopRate(fastest);
}

/// Lowers a peak that no product comes near: a machine file that only assumes one, as localhost.
void lower_peak(const std::string& format, const std::vector<GemmMeasurement>& measurements,
                const std::string& source, GemmCalibration& result) {
  constexpr double kUsualShare = 0.9;
  FlopRate& peak =
      result.machine.device.peak[static_cast<std::size_t>(gemm_operator(format, {}).type)];
  const FlopRate fastest = fastest_of(measurements);
  if (fastest.value() >= kFitted.front().bounds.low * peak.value()) {
    return;
  }
  const FlopRate lowered(rounded(fastest.value() / kUsualShare, 3));
  result.warnings.push_back(
      fmt::format("{}: no product reaches {} of the peak of {}: it becomes {}", format,
                  kFitted.front().bounds.low, to_string(peak), to_string(lowered)));
  peak = lowered;
  result.machine.origins["device.peak"] = "measured: " + source;
}

}  // namespace

Result<GemmCalibration> calibrate_gemm(machine::Machine machine, const GemmTable& table,
                                       const std::string& source, bool cast) {
  Error error;
  for (const auto& [format, measurements] : table) {
    const graph::Operator op = gemm_operator(format, {});
    if (machine.device.peak[static_cast<std::size_t>(op.type)] <= FlopRate(0)) {
      error.add({{},
                 "device.peak",
                 "",
                 fmt::format("required to fit {} GEMMs, but {} has no {}", format, machine.name,
                             name_of(op.type))});
    } else {
      check_rates(format, measurements, machine.device.peak[static_cast<std::size_t>(op.type)],
                  source, error);
    }
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  GemmCalibration result{.machine = std::move(machine), .fits = {}, .warnings = {}};
  for (const auto& [format, measurements] : table) {
    lower_peak(format, measurements, source, result);
  }
  compute::Device& device = result.machine.device;
  const compute::Device base = device;
  for (const auto& [format, measurements] : table) {
    result.fits.push_back(fit_gemm(format, measurements, base, cast));
    if (measurements.size() < kFitted.size()) {
      result.warnings.push_back(
          fmt::format("{}: {} shapes do not determine {} coefficients; what they leave open is of "
                      "no meaning",
                      format, measurements.size(), kFitted.size()));
    }
    const bool general = is_general(format, table);
    (general ? device.kernels : device.format_kernels[format]) = result.fits.back().after;
    const std::string path = general ? "device.kernels" : "device.kernels." + format;
    for (const Coefficient& coefficient : kFitted) {
      result.machine.origins[fmt::format("{}.{}", path, coefficient.name)] = "measured: " + source;
    }
  }
  return result;
}

}  // namespace orrery::calibrate
