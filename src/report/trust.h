// SPDX-License-Identifier: Apache-2.0
/// How far a result can be trusted, as a line and as JSON.
#pragma once

#include <string>

#include "base/result.h"
#include "report/json_writer.h"
#include "study/trust.h"

namespace orrery::report {

/// Returns "80 % of such runs take 340 ms to 402 ms; ...", for what takes `time`. Without an error
/// model it says why there is none.
std::string trust_line(const machine::Machine& machine, const Result<study::Trust>& trust,
                       Time time);

/// Writes the keys interval80 ([least, most], or null) and trust: numbers {measured, fitted,
/// stated, inferred}, kind, framework, coefficients, rows, sigma {kind, framework, origin, rest},
/// nearest [{table, machine, framework, rows, median_error}], measure_next; or problem.
/// `value`: what is predicted, in the unit of interval80.
void write_trust(JsonWriter& json, const machine::Machine& machine,
                 const Result<study::Trust>& trust, double value, bool rate = false);

}  // namespace orrery::report
