// SPDX-License-Identifier: Apache-2.0
/// A fit of an engine's host in the forms in which people and programs read it.
#pragma once

#include <string>

#include "serving/host_fit.h"

namespace orrery::report {

std::string host_fit_text(const serving::HostFit& fit);
/// One JSON object: engine, requests, front_end_s, step_s, gap_s, per_request_s, ttft_before,
/// ttft_after, tpot_before, tpot_after (means of |ln(predicted / measured)|).
std::string host_fit_json(const serving::HostFit& fit);

}  // namespace orrery::report
