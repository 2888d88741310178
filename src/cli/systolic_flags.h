// SPDX-License-Identifier: Apache-2.0
/// `orrery gemm` has these flags of systolic arrays.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "compat/scalesim/files.h"
#include "graph/operator.h"
#include "machine/compute/compute_model.h"
#include "machine/machine.h"
#include "report/json_writer.h"

namespace orrery::cli {

/// --device, --bandwidth, --sparsity, --compat and --scale-sim CFG TOPOLOGY.
class SystolicFlags {
 public:
  void declare(Options& options);

  bool has_device() const { return device_.has_value(); }
  bool has_files() const { return configuration_.has_value(); }

  /// Returns a machine of the one device that --device describes.
  machine::Machine machine(Error& mistakes) const;
  /// Checks what the flags say of a kernel; mistakes where the device has no arrays. Called once,
  /// before figures.
  void check(bool systolic, Error& mistakes);
  /// Returns the product on the arrays, with the flags' sparsity and compatibility.
  compute::SystolicKernel kernel(const graph::Operator& op, const compute::Device& device) const;

  /// Returns the time of the cycles of kernel(), with the launch.
  static Time time_of(const graph::Operator& op, const compute::SystolicCost& cost,
                      const compute::Device& device);

  /// Returns what the layers of --scale-sim take.
  Result<std::string> layers(bool json, Error mistakes);

 private:
  std::optional<std::string> device_;
  std::optional<std::string> bandwidth_;
  std::optional<std::string> sparsity_text_;
  std::optional<std::string> compat_text_;
  std::optional<std::string> configuration_;
  std::optional<std::string> topology_;
  compute::Sparsity sparsity_;
  scalesim::Compatibility compat_ = scalesim::Compatibility::none;
};

/// Writes the JSON fields of a product on arrays.
void write_systolic(report::JsonWriter& json, const compute::SystolicCost& cost,
                    std::optional<Energy> energy);

}  // namespace orrery::cli
