// SPDX-License-Identifier: Apache-2.0
/// `orrery diagnose` prints these texts.
#pragma once

#include <string>

#include "diagnose/diagnose.h"
#include "report/fields.h"

namespace orrery::report {

/// Returns text for a terminal: a paragraph per finding, then what could not be decided.
std::string diagnosis_text(const diagnose::Diagnosis& diagnosis);
/// Declares docs/schema/diagnose.json.
void declare(const diagnose::Diagnosis& diagnosis, Fields& fields);

}  // namespace orrery::report
