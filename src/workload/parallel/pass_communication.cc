// SPDX-License-Identifier: Apache-2.0
#include "collective/layout/fuse_workload.h"
#include "workload/parallel/passes.h"

namespace orrery::parallel {

graph::Workload passes::communication(graph::Workload workload, const PassSetting& setting) {
  if (!setting.fuse_communication) {
    return workload;
  }
  return layout::fuse_communication(std::move(workload), setting.machine).workload;
}

}  // namespace orrery::parallel
