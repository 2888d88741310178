// SPDX-License-Identifier: Apache-2.0
/// Frameworks are what runs a plan: configs/frameworks/NAME.yaml holds, with their sources, the
/// plan fields that a run of it has unless its user says otherwise.
///
///   name, description
///   plan: {field: value}      what every release has
///   why: {field: source}      of every field of `plan`, here and in releases
///   releases: [{from, year, plan}]  in order; a release has what those up to it state, later ones
///                             first; year: when it came out, needed unless `from` begins with it
///
/// "NAME@RELEASE" takes the releases whose `from` is not behind RELEASE, both compared number by
/// number ("25.09", "2024-12"); NAME alone takes all, or with Plan::as_of those up to that year.
///
/// Ignores:  what a framework chooses by the shapes of tensors or by the device.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "workload/plan/plan.h"

namespace orrery::plan {

/// FrameworkField is a plan field that a framework sets, with its value as in a plan file.
struct FrameworkField {
  std::string name;
  std::string value;
  std::string place;  ///< "torchtitan.yaml:7"
};

/// Returns the fields of "NAME" or "NAME@RELEASE", each once; `as_of`: of NAME alone, the last year
/// whose releases count, 0: all. Mistakes: an unknown name, a release
/// that is no list of numbers, what is wrong with the file (unknown fields, values that do not
/// parse, a field without its source, releases out of order).
Result<std::vector<FrameworkField>> framework_fields(const std::string& framework,
                                                     std::int64_t as_of = 0);

/// Returns the sentence that describes a shipped framework.
Result<std::string> framework_description(const std::string& name);

/// Gives those fields of the plan that have no place the values of its framework, and the place
/// "framework NAME". Nothing happens without a framework or with one that framework_fields() does
/// not know, which check_texts() says.
void apply_framework(PlacedPlan& placed);

}  // namespace orrery::plan
