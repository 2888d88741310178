// SPDX-License-Identifier: Apache-2.0
/// How far a result can be trusted, as text and as JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "report/json_writer.h"
#include "study/trust.h"

namespace orrery::report {

/// Returns "80 % of such runs take 340 ms to 402 ms" and more, for what takes `time`, with this
/// text between the parts. Without an error model it says why there is none.
std::string trust_text(const machine::Machine& machine, const Result<study::Trust>& trust,
                       Time time, std::string_view between);

/// Writes the keys interval80 ([least, most], or null) and trust: numbers {measured, fitted,
/// stated, inferred}, kind, framework, coefficients, rows, sigma {kind, framework, origin, rest},
/// nearest [{table, machine, framework, rows, median_error}], measure_next; or problem.
/// `value`: what is predicted, in the unit of interval80.
void write_trust(JsonWriter& json, const machine::Machine& machine,
                 const Result<study::Trust>& trust, double value, bool rate = false);

}  // namespace orrery::report
