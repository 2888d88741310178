// SPDX-License-Identifier: Apache-2.0
#include "collective/layout/fuse_workload.h"
#include "workload/parallel/passes.h"

namespace orrery::parallel {

graph::Workload passes::communication(graph::Workload workload, const PassSetting& setting) {
  const bool planned =
      setting.plan != nullptr && setting.plan->fuse_communication;  // no plan: traces
  if (!setting.fuse_communication && !planned) {
    return workload;
  }
  return layout::fuse_communication(std::move(workload), setting.machine).workload;
}

}  // namespace orrery::parallel
