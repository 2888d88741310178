// SPDX-License-Identifier: Apache-2.0
/// Policies with a file of their own. Internal to this folder.
#pragma once

#include <memory>

#include "serving/scheduler/scheduler.h"

namespace orrery::scheduler {

std::unique_ptr<Scheduler> make_max_utilization(const Limits& limits, KvBook book);
std::unique_ptr<Scheduler> make_mlfq(const Limits& limits, KvBook book);

}  // namespace orrery::scheduler
