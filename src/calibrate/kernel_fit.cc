// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kernel_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/collect.h"
#include "base/lists.h"
#include "base/reader.h"
#include "base/split.h"
#include "base/table_reader.h"
#include "calibrate/gemm.h"
#include "calibrate/impossible_times.h"
#include "machine/compute/compute_model.h"
#include "machine/compute/number_format.h"

namespace orrery::calibrate {
namespace {

constexpr std::array kPrompts{
    Coefficient{"attention_share", {0.1, 1}},     Coefficient{"attention_softmax", {0, 2000}},
    Coefficient{"attention_key_ramp", {0, 1000}}, Coefficient{"attention_tail", {0, 2}},
    Coefficient{"attention_traffic", {0, 8}},     Coefficient{"attention_launch", {0.2e-6, 40e-6}},
};
constexpr std::array kBackward{
    Coefficient{"attention_backward_share", {0.1, 1}},
    Coefficient{"attention_softmax", {0, 2000}},
    Coefficient{"attention_key_ramp", {0, 1000}},
    Coefficient{"attention_tail", {0, 2}},
    Coefficient{"attention_traffic", {0, 8}},
    Coefficient{"attention_launch", {0.2e-6, 40e-6}},
};
constexpr std::array kDecodes{
    Coefficient{"elementwise_share", {0.1, 1}},
    Coefficient{"attention_start", {0, 40e-6}},
    Coefficient{"attention_head_share", {0.005, 1}},
};
constexpr std::array kExperts{
    Coefficient{"grouped_k_ramp", {0, 5000}},
    Coefficient{"grouped_launch", {0, 40e-6}},
    Coefficient{"permute_share", {0.05, 1}},
};
constexpr std::array kStreams{
    Coefficient{"elementwise_share", {0.02, 1}},
    Coefficient{"stream_launch", {0, 40e-6}},
};
constexpr double kUsualTile = 128;        ///< queries of a tile, where the device states none
constexpr std::int64_t kFewQueries = 16;  ///< of a sequence: below, its keys are split

/// Names the set of a device's coefficients that a row tells, and which of them it tells.
struct Told {
  std::string set;
  std::span<const Coefficient> coefficients;
};

/// 16 bits are the general kernels'.
std::string set_of_format(const graph::Operator& op) {
  if (graph::bits_of(op.type) >= 16) {
    return "";
  }
  return std::string(op.block_scaled && op.type == graph::DataType::fp8 ? compute::kBlockScaledFp8
                                                                        : name_of(op.type));
}

std::optional<Told> told_by_attention(const graph::Operator& op) {
  using graph::AttentionLibrary;
  if (op.kind != graph::OperatorKind::attention) {
    return std::nullopt;
  }
  std::string set(compute::attention_set(op.library, op.backward));
  if (set.empty()) {
    set = set_of_format(op);
  }
  if (op.gemm.m >= kFewQueries || op.gemm.n <= op.gemm.m ||
      op.library == AttentionLibrary::trtllm) {
    return Told{std::move(set), op.backward ? std::span<const Coefficient>(kBackward)
                                            : std::span<const Coefficient>(kPrompts)};
  }
  if (op.library == AttentionLibrary::any || op.library == AttentionLibrary::cudnn) {
    return Told{std::string(compute::kDecodeKernels), kDecodes};
  }
  return std::nullopt;
}

std::optional<Told> told_by_experts(const graph::Operator& op) {
  if (op.kind != graph::OperatorKind::grouped_gemm) {
    return std::nullopt;
  }
  return Told{set_of_format(op), kExperts};
}

/// Products without the permutations around them.
std::optional<Told> told_by_grouped(const graph::Operator& op) {
  auto told = told_by_experts(op);
  if (told) {
    told->coefficients = told->coefficients.first(2);
  }
  return told;
}

std::optional<Told> told_by_streams(const graph::Operator& op) {
  if (op.kind != graph::OperatorKind::elementwise) {
    return std::nullopt;
  }
  return Told{set_of_format(op), kStreams};
}

std::uint64_t hash_of(const KernelMeasurement& row) {
  std::vector<std::int64_t> numbers;
  for (const graph::Operator& op : row.kernels) {
    numbers.insert(numbers.end(),
                   {op.gemm.batch, op.gemm.m, op.gemm.n, op.gemm.k, op.bytes.value()});
  }
  return shape_hash(numbers);
}

compute::KernelCoefficients& member_of(compute::Device& device, const std::string& set) {
  return set.empty() ? device.kernels : device.format_kernels[set];
}

using Rows = std::vector<const KernelMeasurement*>;

std::vector<double> ratios_of(const Rows& rows, const compute::Device& in_a_job) {
  const compute::Device device = compute::at_boost(in_a_job);
  std::vector<double> ratios;
  for (const KernelMeasurement* row : rows) {
    Time time{0};
    for (const graph::Operator& op : row->kernels) {
      time += compute::kernel_time(op, device).alone;
    }
    ratios.push_back(to_seconds(time) / to_seconds(row->time));
  }
  return ratios;
}

double loss_of(const Rows& rows, const compute::Device& device) {
  const std::vector<double> ratios = ratios_of(rows, device);
  RatioLoss loss;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Time of_step = rows[i]->of_step;
    loss.add(of_step > Time(0) ? to_seconds(of_step) : 1, ratios[i]);
  }
  return loss.value(rows.front()->of_step > Time(0));
}

struct Group {
  std::span<const Coefficient> coefficients;
  const graph::Operator* example = nullptr;
  Rows rows;
};

KernelFit fit(const std::string& set, const Group& group, const compute::Device& device) {
  KernelFit result;
  result.set = set;
  result.coefficients = group.coefficients;
  Rows used, held_out;
  for (const KernelMeasurement* row : group.rows) {
    const bool hold = row->of_step == Time(0) && is_held_out(hash_of(*row), group.rows.size());
    (hold ? held_out : used).push_back(row);
  }
  result.before = device.kernels_of(*group.example);
  if (const auto own = device.format_kernels.find(set); own != device.format_kernels.end()) {
    result.before = own->second;
  }
  compute::Device trial = device;
  result.fitted_before = fit_error(ratios_of(used, trial));
  result.held_out_before = fit_error(ratios_of(held_out, trial));
  compute::KernelCoefficients start = result.before;
  if (start.attention_tile <= 0 && group.example->kind == graph::OperatorKind::attention) {
    start.attention_tile = kUsualTile;
  }
  std::vector<Bounds> box;
  std::vector<double> from = values_of(start, group.coefficients);
  for (std::size_t i = 0; i < group.coefficients.size(); ++i) {
    box.push_back(group.coefficients[i].bounds);
    from[i] = std::clamp(from[i], box[i].low, box[i].high);
  }
  std::vector<double> best = minimize(
                                 [&](std::span<const double> values) {
                                   member_of(trial, set) =
                                       with_values(start, group.coefficients, values);
                                   return loss_of(used, trial);
                                 },
                                 box, from)
                                 .at;
  std::transform(best.begin(), best.end(), best.begin(),
                 [](double value) { return rounded(value, 4); });
  result.after = with_values(start, group.coefficients, best);
  member_of(trial, set) = result.after;
  result.fitted_after = fit_error(ratios_of(used, trial));
  result.held_out_after = fit_error(ratios_of(held_out, trial));
  return result;
}

Result<KernelCalibration> calibrate(machine::Machine machine,
                                    const std::vector<KernelMeasurement>& rows,
                                    const std::string& source,
                                    std::optional<Told> (*told)(const graph::Operator&)) {
  std::map<std::string, Group> groups;
  std::size_t unused = 0;
  for (const KernelMeasurement& row : rows) {
    std::optional<Told> found;
    for (auto op = row.kernels.begin(); op != row.kernels.end() && !found; ++op) {
      found = told(*op);
      if (found) {
        Group& group = groups[found->set];
        group.coefficients = found->coefficients;
        group.example = &*op;
        group.rows.push_back(&row);
      }
    }
    unused += found ? 0 : 1;
  }
  if (groups.empty()) {
    return fail(source + ": found no row whose coefficients are fitted");
  }
  KernelCalibration result{.machine = std::move(machine), .fits = {}, .warnings = {}};
  const compute::Device base = result.machine.device;
  for (const auto& [set, group] : groups) {
    result.fits.push_back(fit(set, group, base));
    member_of(result.machine.device, set) = result.fits.back().after;
    if (group.rows.size() < group.coefficients.size()) {
      result.warnings.push_back(fmt::format(
          "{}: {} rows do not determine {} coefficients; what they leave open is of no meaning",
          set.empty() ? "general kernels" : set, group.rows.size(), group.coefficients.size()));
    }
    for (const Coefficient& coefficient : group.coefficients) {
      const std::string path = set.empty() ? "device.kernels" : "device.kernels." + set;
      result.machine.origins[fmt::format("{}.{}", path, coefficient.name)] = "measured: " + source;
    }
  }
  if (unused > 0) {
    result.warnings.push_back(fmt::format(
        "{} rows are not used: nothing is fitted to kernels of their library and shape", unused));
  }
  return result;
}

constexpr std::int64_t kMostExtent = 1'000'000'000;
using Numbers = std::vector<std::int64_t>;

/// One kernel a row: `make` from the whole numbers of `columns`, up to `most`, with latency_us.
template <class Make>
Result<std::vector<KernelMeasurement>> read_rows(TableReader& read,
                                                 const std::vector<std::string_view>& columns,
                                                 std::int64_t most, const Make& make) {
  read.need_all(columns);
  read.need("latency_us");
  read.limit(sizeof(KernelMeasurement) + sizeof(graph::Operator));
  std::vector<KernelMeasurement> rows;
  for (const CsvRow& row : read.rows()) {
    const Numbers numbers =
        mapped(columns, [&](std::string_view column) { return read.whole(row, column, 1, most); });
    const double time = read.number(row, "latency_us", kShortestMicroseconds, kLongestMicroseconds,
                                    kMicrosecondsExpected);
    rows.push_back({{make(row, numbers)}, from_seconds(1e-6 * time)});
  }
  return or_mistakes(std::move(rows), read.finish("no rows: expected at least one measurement"));
}

/// `loads`: rows of every expert, between blanks. Experts without rows do nothing, the others have
/// equal parts of all, as those of `orrery moe`.
void share_evenly(TableReader& read, const CsvRow& row, graph::GemmShape& shape) {
  std::int64_t rows = 0;
  std::int64_t busy = 0;
  std::int64_t experts = 0;
  for (const std::string_view load : split_at(read.text(row, "loads"), ' ')) {
    const auto number = parse_value<std::int64_t>(std::string(load));
    if (!number || *number < 0 || *number > kMostExtent) {
      return read.mistake(row, "loads",
                          fmt::format("rows of each expert, between blanks ('{}' is none)", load));
    }
    ++experts;
    rows += *number;
    busy += *number > 0 ? 1 : 0;
  }
  if (busy == 0) {
    return read.mistake(row, "loads", "a row of any expert");
  }
  if (experts != shape.batch) {
    return read.mistake(row, "loads", fmt::format("one for each of {} experts", shape.batch));
  }
  shape.batch = busy;
  shape.m = (rows + busy - 1) / busy;
}

}  // namespace

Result<KernelCalibration> calibrate_attention(machine::Machine machine,
                                              const std::vector<KernelMeasurement>& rows,
                                              const std::string& source) {
  return calibrate(std::move(machine), rows, source, told_by_attention);
}

Result<KernelCalibration> calibrate_moe(machine::Machine machine,
                                        const std::vector<KernelMeasurement>& rows,
                                        const std::string& source) {
  const bool alone = std::ranges::all_of(
      rows, [](const KernelMeasurement& row) { return row.kernels.size() == 1; });
  return calibrate(std::move(machine), rows, source, alone ? told_by_grouped : told_by_experts);
}

Result<std::vector<KernelMeasurement>> read_streams(const CsvTable& csv) {
  constexpr std::int64_t kMostBytes = 1'000'000'000'000'000;
  TableReader read(csv);
  return read_rows(read, {"bytes"}, kMostBytes, [](const CsvRow&, const Numbers& numbers) {
    graph::Operator op{.name = "stream", .type = graph::DataType::fp32};
    op.bytes = Bytes(numbers[0]);
    return op;
  });
}

Result<std::vector<KernelMeasurement>> read_grouped(const CsvTable& csv) {
  TableReader read(csv);
  if (!read.has("loads") && !read.has("m")) {
    return fail(Error(Mistake{csv.file + ":1", "header", "", "a column 'm', or 'loads'"}));
  }
  read.know({"device", "dtype", "experts", "m", "n", "k", "loads", "latency_us"});
  return read_rows(
      read, {"experts", "n", "k"}, kMostExtent, [&](const CsvRow& row, const Numbers& numbers) {
        const std::string format =
            read.has("dtype") ? std::string(read.text(row, "dtype")) : "bf16";
        if (!compute::number_format(format)) {
          read.mistake(row, "dtype", "a number format such as bf16 or fp8");
        }
        graph::GemmShape shape{.batch = numbers[0], .m = 1, .n = numbers[1], .k = numbers[2]};
        if (!read.text(row, "loads").empty()) {
          share_evenly(read, row, shape);
        } else {
          shape.m = read.whole(row, "m", 1, kMostExtent);
        }
        graph::Operator op = gemm_operator(format, shape);
        op.kind = graph::OperatorKind::grouped_gemm;
        return op;
      });
}

Result<KernelCalibration> calibrate_streams(machine::Machine machine,
                                            const std::vector<KernelMeasurement>& rows,
                                            const std::string& source) {
  return calibrate(std::move(machine), rows, source, told_by_streams);
}

}  // namespace orrery::calibrate
