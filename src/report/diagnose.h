// SPDX-License-Identifier: Apache-2.0
/// `orrery diagnose` prints these texts.
#pragma once

#include <string>

#include "diagnose/diagnose.h"

namespace orrery::report {

/// For a terminal: a paragraph per finding, then what could not be decided.
std::string diagnosis_text(const diagnose::Diagnosis& diagnosis);
/// docs/schema/diagnose.json.
std::string diagnosis_json(const diagnose::Diagnosis& diagnosis);

}  // namespace orrery::report
