// SPDX-License-Identifier: Apache-2.0
/// Any bytes as output of nccl-tests or a table of collectives: measurements that can be, or a
/// reason.
#include "calibrate/collectives.h"
#include "tests/fuzz/fuzz.h"

ORRERY_FUZZ(collectives) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  const auto read = orrery::calibrate::read_collectives(text, "all_reduce_perf.txt");
  if (!read) {
    orrery::fuzz::hold_error(read.error());
    return 0;
  }
  orrery::fuzz::hold(!read->empty(), "at least one measurement");
  for (const orrery::calibrate::CollectiveMeasurement& measured : *read) {
    orrery::fuzz::hold(measured.members >= 2 && measured.bytes > orrery::Bytes(0) &&
                           measured.time > orrery::Time(0) && measured.per_node <= measured.members,
                       "a measurement that can be");
  }
  return 0;
}
