// SPDX-License-Identifier: Apache-2.0
/// Says how far a result can be trusted, as text and as JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "report/fields.h"
#include "serving/metrics.h"
#include "study/trust.h"

namespace orrery::report {

/// Returns "80 % of such runs take 340 ms to 402 ms" and more, for what takes `time`, with this
/// text between the parts. Without an error model it says why there is none.
std::string trust_text(const machine::Machine& machine, const Result<study::Trust>& trust,
                       Time time, std::string_view between);

/// Declares interval80, in the unit of `value`, which is what is predicted, and trust. `limit`
/// above zero: the value is a rate, of which there is no more than this.
void declare_trust(Fields& fields, const machine::Machine& machine,
                   const Result<study::Trust>& trust, double value, double limit = 0);

/// Returns what 80 % of such served runs have as rate and as times, and the published rows that are
/// most alike. A rate ends at what the clients of the run ask for, where these do not wait.
std::string served_trust_text(const serving::Run& run, const serving::Metrics& metrics,
                              const machine::Machine& machine);
/// Declares interval80 and trust of the rate, and the intervals of the mean times.
void declare_served_trust(Fields& fields, const serving::Run& run, const serving::Metrics& metrics,
                          const machine::Machine& machine);

}  // namespace orrery::report
