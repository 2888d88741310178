// SPDX-License-Identifier: Apache-2.0
#include "machine/compute/clock.h"

#include <algorithm>
#include <cmath>

#include "machine/compute/compute_model.h"

namespace orrery::compute {
namespace {

/// Returns the share of the rate of tables that were taken at `table_clock`.
double rate_left(double clock, double table_clock, const Device& device) {
  return device.power_model.known() ? std::min(device.sustained_clock, clock / table_clock) : 1;
}

double rate_left(double clock, const Device& device) {
  return rate_left(clock, device.power_model.table_clock, device);
}

double table_clock_of_attention(const PowerModel& model) {
  return model.attention_table_clock > 0 ? model.attention_table_clock : model.table_clock;
}

double attention_rate_left(double clock, const Device& device) {
  return rate_left(clock, table_clock_of_attention(device.power_model), device);
}

double full_rate(graph::DataType type, const Device& device) {
  return device.peak[static_cast<std::size_t>(type)].value() * device.power_model.full_clock_rate;
}

/// Bytes of a product whose operator does not say them.
double bytes_of_kernel(const graph::Operator& op) {
  if (op.bytes > Bytes(0) || op.gemm.m == 0) {
    return static_cast<double>(op.bytes.value());
  }
  const graph::GemmShape& s = op.gemm;
  const auto bits = static_cast<double>(graph::bits_of(op.type));
  const double stored = op.stored_bits > 0 ? static_cast<double>(op.stored_bits) : bits;
  const auto m = static_cast<double>(s.m);
  const auto n = static_cast<double>(s.n);
  const auto k = static_cast<double>(s.k);
  return static_cast<double>(s.batch) *
         (bits / 8 * m * k + stored / 8 * k * n + std::max(bits, 16.0) / 8 * m * n);
}

bool is_matrix_product(const graph::Operator& op) {
  return op.kind == graph::OperatorKind::gemm || op.kind == graph::OperatorKind::grouped_gemm;
}

/// Fused attention of few queries reads keys rather than computes (compute_model.h).
bool is_decode(const graph::Operator& op) {
  return op.kind == graph::OperatorKind::attention && op.gemm.m > 0 && op.gemm.m < 16;
}

double joules_of(const graph::Operator& op, double bytes, const Device& device) {
  const PowerModel& model = device.power_model;
  if (is_decode(op)) {
    const Power power = op.library == graph::AttentionLibrary::flash2 ? model.decode_flash2_power
                                                                      : model.decode_power;
    return power.value() * bytes / device.memory.front().bandwidth.value();
  }
  const double flops =
      op.flops > Flops(0) || !is_matrix_product(op) ? op.flops.value() : flops_of(op.gemm).value();
  const double rate = full_rate(op.type, device);
  const bool attends =
      op.kind == graph::OperatorKind::attention && model.attention_power > Power(0);
  const Power power = attends ? model.attention_power : model.gemm_power;
  return flops > 0 && rate > 0 ? power.value() * flops / rate : 0;
}

/// Start and drain of the kernel, in which it draws next to nothing.
double launches_of(const graph::Operator& op, const Device& device) {
  const KernelCoefficients& c = device.kernels_of(op);
  switch (op.kind) {
    case graph::OperatorKind::gemm:
    case graph::OperatorKind::grouped_gemm:
    case graph::OperatorKind::scan:
    case graph::OperatorKind::opaque:
      return to_seconds(c.gemm_launch);
    case graph::OperatorKind::attention:
      return to_seconds(c.attention_tile > 0 ? c.attention_launch : c.gemm_launch);
    default:
      return to_seconds(c.stream_launch) * op.kernels;
  }
}

double seconds_at(const Load& load, double clock, const Device& device) {
  return load.seconds + longer_by(load, clock, device);
}

double energy_at(const Load& load, double clock, const Device& device) {
  return device.idle_power.value() * seconds_at(load, clock, device) +
         energy_above_idle(load, clock, device).value();
}

double power_at(const Load& load, double clock, const Device& device) {
  return energy_at(load, clock, device) / seconds_at(load, clock, device);
}

}  // namespace

Load& Load::operator+=(const Load& other) {
  seconds += other.seconds;
  clocked += other.clocked;
  attending += other.attending;
  busy += other.busy;
  joules += other.joules;
  bytes += other.bytes;
  return *this;
}

Load operator*(Load load, double times) {
  load.seconds *= times;
  load.clocked *= times;
  load.attending *= times;
  load.busy *= times;
  load.joules *= times;
  load.bytes *= times;
  return load;
}

Load load_of(const graph::Operator& op, const Device& device) {
  constexpr double kSlow = 0.8;  // of the rate: the step by which the slope is taken
  const double rate = device.power_model.known() ? 1 : device.clock;
  const double seconds = to_seconds(lone_kernel_time(op, device, rate));
  if (!device.power_model.known()) {
    return {.seconds = seconds, .busy = seconds};
  }
  Load load{.seconds = seconds};
  load.busy = std::max(0.0, seconds - (op.piece == 0 ? launches_of(op, device) : 0));
  load.bytes = bytes_of_kernel(op);
  load.joules = joules_of(op, load.bytes, device);
  if (op.duration == Time(0) && load.joules > 0) {
    const double slower = to_seconds(lone_kernel_time(op, device, kSlow));
    load.clocked = std::clamp((slower - seconds) / (1 / kSlow - 1), 0.0, seconds);
    load.attending = op.kind == graph::OperatorKind::attention ? load.clocked : 0;
  }
  return load;
}

double longer_by(const Load& load, double clock, const Device& device) {
  return (load.clocked - load.attending) * (1 / rate_left(clock, device) - 1) +
         load.attending * (1 / attention_rate_left(clock, device) - 1);
}

Energy energy_above_idle(const Load& load, double clock, const Device& device) {
  const PowerModel& model = device.power_model;
  if (!model.known()) {
    return Energy((device.power - device.idle_power).value() * load.busy);
  }
  const double longer = longer_by(load, clock, device);
  const double voltage = std::pow(clock, model.power_exponent);
  return Energy(model.busy_power.value() * voltage * (load.busy + longer) +
                load.joules * voltage / clock + model.memory_energy.value() * load.bytes);
}

ClockPoint at_clock(const Load& load, double clock, const Device& device) {
  const double seconds = seconds_at(load, clock, device);
  const double energy = energy_at(load, clock, device);
  return {.clock = clock,
          .rate = rate_left(clock, device),
          .attention_rate = attention_rate_left(clock, device),
          .time = from_seconds(seconds),
          .power = seconds > 0 ? Power(energy / seconds) : device.idle_power,
          .energy = Energy(energy)};
}

PowerModel inferred_power_model(const Device& device) {
  // Of an H200 of 700 W: docs/models/power.md.
  constexpr double kDesign = 700;
  const double scale = device.power.value() / kDesign;
  return {.busy_power = Power(84 * scale),
          .gemm_power = Power(1003 * scale),
          .attention_power = Power(1130 * scale),
          .decode_power = Power(133 * scale),
          .decode_flash2_power = Power(695 * scale),
          .memory_energy = EnergyPerByte(90e-12),
          .full_clock_rate = 1.0815};
}

Power cap_of(const Device& device) {
  return device.power_cap > Power(0) ? device.power_cap : device.power;
}

ClockPoint at_own_clock(const Load& load, const Device& device) {
  const PowerModel& model = device.power_model;
  const double target = model.regulated * cap_of(device).value();
  if (!model.known() || target <= 0 || load.seconds <= 0 || power_at(load, 1, device) <= target) {
    return at_clock(load, 1, device);
  }
  // P grows with the clock: the last step whose power is within the target.
  int low = kLowestClockStep;
  int high = kClockSteps;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (power_at(load, static_cast<double>(middle) / kClockSteps, device) <= target ? low : high) =
        middle;
  }
  return at_clock(load, static_cast<double>(low) / kClockSteps, device);
}

void set_clock(Device& device, const Load& load) {
  device.clock = device.attention_clock = device.sustained_clock;
  device.full_clock = 1;
  if (device.power_model.known()) {
    const ClockPoint own = at_own_clock(load, device);
    device.clock = own.rate;
    device.attention_clock = own.attention_rate;
    device.full_clock = own.clock;
  }
}

void set_usual_clock(Device& device) {
  const PowerModel& model = device.power_model;
  if (!model.known() || device.memory.empty()) {
    device.clock = device.attention_clock = device.sustained_clock;
    device.full_clock = 1;
    return;
  }
  // Shares of the time; pipe use of products and of attention, share of bandwidth of what streams,
  // and that of products: assumed, of an H200's kernels.
  constexpr double kGemm = 0.65;
  constexpr double kAttention = 0.12;
  constexpr double kStream = 0.20;
  constexpr double kGemmUse = 0.83;
  constexpr double kAttentionUse = 0.55;
  constexpr double kStreamShare = 0.85;
  constexpr double kGemmShare = 0.15;
  const double bandwidth = device.memory.front().bandwidth.value();
  const double attention =
      (model.attention_power > Power(0) ? model.attention_power : model.gemm_power).value();
  const Load usual{
      .seconds = 1,
      .clocked = kGemm + kAttention,
      .attending = kAttention,
      .busy = kGemm + kAttention + kStream,
      .joules = kGemm * kGemmUse * model.table_clock * model.gemm_power.value() +
                kAttention * kAttentionUse * table_clock_of_attention(model) * attention,
      .bytes = bandwidth * (kStream * kStreamShare + kGemm * kGemmShare)};
  set_clock(device, usual);
}

}  // namespace orrery::compute
