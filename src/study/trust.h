// SPDX-License-Identifier: Apache-2.0
/// Says how far a figure can be trusted, from the errors of published rows
/// (configs/trust/errors.yaml, which tools/fit_trust.py writes).
///
///   e = ln(measured / predicted) of a time or a number of bytes
///   sigma^2 = kind^2 + framework^2 + origin^2 + rest^2;  of bytes kind^2
///
///   kind       what is predicted: a step of a dense model, of experts, of adapters; the bytes of
///              such a step that tensors take, that an allocator and that the driver holds; a
///              measure of serving
///   framework  whose run it is; of none the plan says which, "none"
///   origin     whether the kernels' coefficients of the machine are fitted to kernels measured on
///              it or inferred from those of another; of memory, whose autograd keeps tensors
///   rest       what differs between rows that have all of these and the machine in common
///
/// Errors of bytes come from tensors that are left out, not from kernels, so that nothing of a
/// time's error is in theirs: kind is how far four of five rows of that kind are off.
///
/// interval80 = predicted x exp([low, high]), which 80 % of such rows lie in: the narrowest one of
/// a combination that has rows, drawn towards -+1.2816 sigma where it has few; else -+1.2816
/// sigma. For times it reaches at least 2 % either way: identical settings differ by that much.
///
/// Two predictions: what they have in common cancels in their ratio. joint_sigma^2 = both rests,
/// and of both what differs: kind, framework, and (unless it is the same machine) origin.
///
/// Single steps vary about the median that is predicted: how much is known of one device under
/// PyTorch, an H200 or H100, by the longest steps of runs.
///
/// Ignores:  that errors of unlike shapes of one machine go together; jitter between devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "machine/machine.h"
#include "study/profile.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::study {

/// StepFigure is what of a training step is predicted.
enum class StepFigure : std::uint8_t { time, allocated, reserved, driver };

/// Causes name what an error comes from.
struct Causes {
  std::string kind;       ///< "dense", "reserved_dense"
  std::string framework;  ///< "nemo"
  std::string origin;     ///< "fitted" or "inferred"; of memory "pytorch"
  std::string machine;    ///< its name
  bool lone = false;      ///< a step of PyTorch on one device
};
/// `format` is that of the GEMMs' coefficients: "", "fp8", "fp8_block", "fp4".
std::string kernel_origin(const machine::Machine& machine, const std::string& format);
/// Returns the causes of a training step's error, or of one of its bytes.
Causes causes_of(const zoo::Model& model, const plan::Plan& plan, const machine::Machine& machine,
                 StepFigure figure = StepFigure::time);
/// Returns the causes of the error of a measure of serving; `engine` is its name.
Causes causes_of(Measure measure, const std::string& engine, const machine::Machine& machine);

/// OriginCounts are the numbers of a machine by where they come from (Machine::origins).
struct OriginCounts {
  std::size_t measured = 0;
  std::size_t fitted = 0;
  std::size_t stated = 0;    ///< published, recalled, or derived from such
  std::size_t inferred = 0;  ///< from another machine, assumed, or without a word
};
OriginCounts count_origins(const machine::Machine& machine);

/// Sigma is the standard deviation of e by cause.
struct Sigma {
  double kind = 0;
  double framework = 0;
  double origin = 0;
  double rest = 0;

  double total() const;
};

/// Validated is one group of published rows that predictions were compared with.
struct Validated {
  std::string table;
  Causes causes;
  std::int64_t rows = 0;
  double median = 0;  ///< of |predicted / measured - 1|
};

struct Range {
  double least = 0;
  double most = 0;
};

/// Trust is what is known of the error of one prediction.
struct Trust {
  Causes causes;
  Sigma sigma;
  double low = 0;                    ///< of e, where its 80 % begin
  double high = 0;                   ///< and where they end
  std::int64_t rows = 0;             ///< that low and high are of; 0: of no such combination
  std::vector<Validated> nearest{};  ///< most alike first
  std::string next{};                ///< what to measure to narrow the interval most
  /// The ninety-fifth percentile of single steps over their median, where that is known: the least
  /// where the device is busy, the most where it waits for the host.
  std::optional<Range> p95{};
};

/// Returns what 80 % of measured values lie in where `predicted` is; of a rate both ends change
/// places.
Range interval80(const Trust& trust, double predicted, bool rate = false);

/// Errors of predictions, by cause.
class ErrorModel {
 public:
  /// Mistakes: types, unknown fields, percentiles in the wrong order, negative deviations.
  static Result<ErrorModel> parse(const ConfigNode& node);
  /// Returns the shipped one.
  static Result<ErrorModel> load();

  Trust trust(const Causes& causes) const;

 private:
  struct Named {
    std::string name;
    double sigma = 0;
  };
  struct Cell {
    Causes causes;
    std::int64_t rows = 0;
    double low = 0;
    double high = 0;
  };

  static double sigma_of(const std::vector<Named>& named, const std::string& name);
  std::vector<Validated> nearest(const Causes& causes) const;

  double floor_ = 0;
  std::vector<Named> kinds_;
  std::vector<Named> frameworks_;
  std::vector<Named> origins_;
  std::vector<Named> rests_;  ///< by kind
  std::vector<Cell> cells_;
  std::vector<Validated> validated_;
};

/// Returns what the shipped error model says of a prediction. Mistakes: as ErrorModel::load().
Result<Trust> trust_in(const Causes& causes);

/// Returns the standard deviation of the logarithm of the ratio of two predictions.
double joint_sigma(const Causes& a, const Sigma& sigma_a, const Causes& b, const Sigma& sigma_b);

/// 80 % of a normal distribution lies within this many standard deviations.
inline constexpr double kEightyPercent = 1.2815515655446004;

}  // namespace orrery::study
