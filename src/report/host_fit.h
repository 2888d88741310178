// SPDX-License-Identifier: Apache-2.0
/// A fit of an engine's host in the forms in which people and programs read it.
#pragma once

#include <string>

#include "report/fields.h"
#include "serving/host_fit.h"

namespace orrery::report {

std::string host_fit_text(const serving::HostFit& fit);
/// Declares docs/schema/calibrate-serving.json.
void declare(const serving::HostFit& fit, Fields& fields);

}  // namespace orrery::report
