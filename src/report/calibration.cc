// SPDX-License-Identifier: Apache-2.0
#include "report/calibration.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"
#include "report/json_writer.h"

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

double number(double value) {
  return value;
}
double number(Time value) {
  return to_seconds(value);
}

void write_errors(JsonWriter& json, const calibrate::FitError& before,
                  const calibrate::FitError& after) {
  json.begin_object();
  json.key("shapes").value(before.shapes);
  json.key("median_before").value(before.median);
  json.key("mean_before").value(before.mean);
  json.key("median_after").value(after.median);
  json.key("mean_after").value(after.mean);
  json.end_object();
}

/// Fits of GEMMs and of other kernels have these in common.
template <class Fit>
void write_common(JsonWriter& json, const Fit& fit) {
  json.key("fitted");
  write_errors(json, fit.fitted_before, fit.fitted_after);
  json.key("held_out");
  write_errors(json, fit.held_out_before, fit.held_out_after);
  json.key("coefficients").begin_array();
  each_coefficient(fit, [&](std::string_view name, auto before, auto after) {
    json.begin_object();
    json.key("name").value(name);
    json.key("before").value(number(before));
    json.key("after").value(number(after));
    json.end_object();
  });
  json.end_array();
}

void write_own(JsonWriter& json, const calibrate::GemmFit& fit) {
  json.key("format").value(fit.format);
  json.key("cast_launch").value(to_seconds(fit.cast.launch));
  json.key("cast_bytes").value(fit.cast.bytes);
}
void write_own(JsonWriter& json, const calibrate::KernelFit& fit) {
  json.key("set").value(fit.set);
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
std::string calibration_json(const Calibration& calibration) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("machine").value(calibration.machine.name);
    json.key("fits").begin_array();
    for (const auto& fit : calibration.fits) {
      json.begin_object();
      write_own(json, fit);
      write_common(json, fit);
      json.end_object();
    }
    json.end_array();
    json.key("warnings").begin_array();
    for (const std::string& warning : calibration.warnings) {
      json.value(warning);
    }
    json.end_array();
    json.end_object();
  });
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

std::string gemm_calibration_json(const calibrate::GemmCalibration& calibration) {
  return calibration_json(calibration);
}

std::string kernel_calibration_table(const calibrate::KernelCalibration& calibration) {
  std::string text = machine_heading(calibration);
  for (const calibrate::KernelFit& fit : calibration.fits) {
    text += table_of("Coefficients of " + (fit.set.empty() ? "the general kernels" : fit.set), fit);
  }
  return text + warnings_of(calibration.warnings);
}

std::string kernel_calibration_json(const calibrate::KernelCalibration& calibration) {
  return calibration_json(calibration);
}

}  // namespace orrery::report
