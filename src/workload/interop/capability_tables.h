// SPDX-License-Identifier: Apache-2.0
/// Rows of capabilities.h. Internal to this folder.
#pragma once

#include <span>
#include <string_view>

#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::interop {

/// Run is what a rule reads: the plan and its model, which may be null.
struct Run {
  const plan::Plan& plan;
  const zoo::Model* model;
};

struct Capability {
  std::string_view field;
  bool (*runs)(const Run& run);
  std::string_view can;  ///< the values that run, with the reason
};

/// Imposed is a field that the framework decides from others.
struct Imposed {
  std::string_view field;
  void (*set)(plan::Plan& plan);
};

struct CapabilityTable {
  std::span<const Capability> rows{};
  std::span<const Imposed> imposed{};
};

/// Returns the rows of "NAME" or "NAME@RELEASE"; none where it is no launcher.
CapabilityTable capability_table(std::string_view launcher);
/// Returns the rows that hold for every framework.
std::span<const Capability> common_capabilities();

}  // namespace orrery::interop
