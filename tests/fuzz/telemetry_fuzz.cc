// SPDX-License-Identifier: Apache-2.0
/// Any bytes as telemetry, or as a flight recorder's dump in JSON or pickled: a diagnosis that
/// blames ranks of the job, or a reason.
#include <algorithm>

#include "diagnose/diagnose.h"
#include "tests/fuzz/fuzz.h"

ORRERY_FUZZ(telemetry) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  const auto read = orrery::diagnose::parse_telemetry(text, "trace_0");
  if (!read) {
    orrery::fuzz::hold_error(read.error());
    return 0;
  }
  const std::vector<std::int64_t> ranks = read->ranks();
  for (const auto& finding : orrery::diagnose::diagnose(*read, {}).findings) {
    orrery::fuzz::hold(!finding.ranks.empty(), "somebody is at fault");
    for (const std::int64_t rank : finding.ranks) {
      orrery::fuzz::hold(std::ranges::binary_search(ranks, rank), "a rank of the job");
    }
  }
  return 0;
}
