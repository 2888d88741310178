// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/schedule_row.h"

namespace orrery::plan {

std::vector<ScheduleRow> schedule_list() {
  return shipped_schedules();
}

}  // namespace orrery::plan
