// SPDX-License-Identifier: Apache-2.0
#include "report/calibration.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"

namespace orrery::report {
namespace {

template <class T>
std::string shown(const T& value) {
  if constexpr (std::is_same_v<T, double>) {
    return fmt::format("{:.4g}", value);
  } else {
    return to_string(value);
  }
}

std::string error_line(std::string_view name, const calibrate::FitError& before,
                       const calibrate::FitError& after) {
  if (before.shapes == 0) {
    return "";
  }
  return fmt::format("  {:<10}{:>7}{:>10.1f}{:>9.1f}{:>10.1f}{:>9.1f}\n", name, before.shapes,
                     100 * before.median, 100 * before.mean, 100 * after.median, 100 * after.mean);
}

/// visit(name, before, after) of every coefficient that the measurements tell.
template <class Fit, class Visit>
void each_coefficient(const Fit& fit, Visit visit) {
  compute::KernelCoefficients::fields([&](std::string_view name, auto member, std::string_view) {
    if (std::any_of(fit.coefficients.begin(), fit.coefficients.end(),
                    [&](const calibrate::Coefficient& c) { return c.name == name; })) {
      visit(name, fit.before.*member, fit.after.*member);
    }
  });
}

void declare_errors(Fields& fields, std::string_view name, const calibrate::FitError& before,
                    const calibrate::FitError& after) {
  fields.object(name, "errors on these shapes, of |predicted / measured - 1|", [&] {
    fields.field("shapes", "how many", before.shapes);
    fields.field("median_before", "with the machine's coefficients", before.median);
    fields.field("mean_before", "with the machine's coefficients", before.mean);
    fields.field("median_after", "with the fitted ones", after.median);
    fields.field("mean_after", "with the fitted ones", after.mean);
  });
}

struct FittedCoefficient {
  std::string name;
  double before = 0;
  double after = 0;
};

/// Fits of GEMMs and of other kernels have these in common.
template <class Fit>
void declare_common(Fields& fields, const Fit& fit) {
  declare_errors(fields, "fitted", fit.fitted_before, fit.fitted_after);
  declare_errors(fields, "held_out", fit.held_out_before, fit.held_out_after);
  std::vector<FittedCoefficient> coefficients;
  each_coefficient(fit, [&](std::string_view name, auto before, auto after) {
    coefficients.push_back(
        {std::string(name), std::get<double>(leaf_of(before)), std::get<double>(leaf_of(after))});
  });
  fields.list("coefficients", {"by name", "one"}, coefficients, [&](const FittedCoefficient& one) {
    fields.field("name", "field of the machine's kernels", one.name);
    fields.field("before", "times in seconds", one.before);
    fields.field("after", "times in seconds", one.after);
  });
}

void declare_own(Fields& fields, const calibrate::GemmFit& fit) {
  fields.field("format", "data type", fit.format);
  fields.field("cast_launch", "seconds of the conversion of A, with --cast", fit.cast.launch);
  fields.field("cast_bytes", "of memory traffic per element of A, with --cast", fit.cast.bytes);
}
void declare_own(Fields& fields, const calibrate::KernelFit& fit) {
  fields.field("set", "name in the machine's kernels; empty: the general ones", fit.set);
}

template <class Fit>
std::string table_of(const std::string& title, const Fit& fit) {
  std::string text = fmt::format("\n{}; error in %\n  {:<10}{:>7}{:>10}{:>9}{:>10}{:>9}\n", title,
                                 "", "shapes", "median", "mean", "median", "mean");
  text += fmt::format("  {:<10}{:>7}{:>19}{:>19}\n", "", "", "before", "after");
  text += error_line("fitted", fit.fitted_before, fit.fitted_after);
  text += error_line("held out", fit.held_out_before, fit.held_out_after);
  text += fmt::format("\n  {:<26}{:>12}{:>12}\n", "coefficient", "before", "after");
  each_coefficient(fit, [&](std::string_view name, auto before, auto after) {
    text += fmt::format("  {:<26}{:>12}{:>12}\n", name, shown(before), shown(after));
  });
  return text;
}

template <class Calibration>
std::string machine_heading(const Calibration& calibration) {
  return fmt::format("{} ({})\n", calibration.machine.name, calibration.machine.device.name);
}

std::string warnings_of(const std::vector<std::string>& warnings) {
  std::string text;
  for (const std::string& warning : warnings) {
    text += "\nwarning: " + warning + "\n";
  }
  return text;
}

template <class Calibration>
void declare_calibration(const Calibration& calibration,
                         std::pair<std::string_view, std::string_view> fits, Fields& fields) {
  fields.field("machine", "that was fitted", calibration.machine.name);
  fields.list("fits", fits, calibration.fits, [&](const auto& fit) {
    declare_own(fields, fit);
    declare_common(fields, fit);
  });
  fields.values("warnings",
                {"what the measurements do not determine or what cannot be", "a sentence"},
                calibration.warnings);
}

}  // namespace

std::string gemm_calibration_table(const calibrate::GemmCalibration& calibration) {
  std::string text = machine_heading(calibration);
  for (const calibrate::GemmFit& fit : calibration.fits) {
    text += table_of(fit.format + " GEMMs", fit);
    if (fit.cast.launch > Time(0) || fit.cast.bytes > 0) {
      text += fmt::format("  and a cast of A: {} + {:.4g} bytes per element\n",
                          to_string(fit.cast.launch), fit.cast.bytes);
    }
  }
  return text + warnings_of(calibration.warnings);
}

void declare(const calibrate::GemmCalibration& calibration, Fields& fields) {
  declare_calibration(calibration, {"by data type", "one type"}, fields);
}

std::string kernel_calibration_table(const calibrate::KernelCalibration& calibration) {
  std::string text = machine_heading(calibration);
  for (const calibrate::KernelFit& fit : calibration.fits) {
    text += table_of("Coefficients of " + (fit.set.empty() ? "the general kernels" : fit.set), fit);
  }
  return text + warnings_of(calibration.warnings);
}

void declare(const calibrate::KernelCalibration& calibration, Fields& fields) {
  declare_calibration(calibration, {"by set of coefficients", "one set"}, fields);
}

}  // namespace orrery::report
