// SPDX-License-Identifier: Apache-2.0
#include "estimate/meanwhile.h"

#include <algorithm>
#include <iterator>

namespace orrery::estimate {
namespace {

using Spans = std::vector<LaneSpan>;

/// Those of one lane, by begin.
Spans of_lane(const Spans& all, int lane) {
  Spans spans;
  std::copy_if(all.begin(), all.end(), std::back_inserter(spans),
               [&](const LaneSpan& span) { return span.lane == lane; });
  std::sort(spans.begin(), spans.end(),
            [](const LaneSpan& a, const LaneSpan& b) { return a.begin < b.begin; });
  return spans;
}

Time length_of(const Spans& spans) {
  Time sum{0};
  for (const LaneSpan& span : spans) {
    sum += span.end - span.begin;
  }
  return sum;
}

/// Time in which both transfer. The spans of a lane do not overlap: its stream is in order.
Time meeting_of(const Spans& a, const Spans& b) {
  Time sum{0};
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Time both = std::min(a[i].end, b[j].end) - std::max(a[i].begin, b[j].begin);
    sum += std::max(both, Time(0));
    (a[i].end < b[j].end ? i : j) += 1;
  }
  return sum;
}

}  // namespace

Meanwhile meanwhile_of(const ReplayResult& run) {
  Meanwhile meanwhile{};
  for (int lane = 1; lane < kMostLanes; ++lane) {
    std::vector<Spans> stages;
    Time transfers{0};
    for (const Spans& all : run.spans) {
      stages.push_back(of_lane(all, lane));
      transfers += length_of(stages.back());
    }
    Time met{0};
    for (std::size_t s = 0; s < stages.size(); ++s) {
      for (std::size_t other = s + 1; other < stages.size(); ++other) {
        met += 2 * meeting_of(stages[s], stages[other]);
      }
    }
    if (transfers > Time(0) && stages.size() > 1) {
      meanwhile[static_cast<std::size_t>(lane)] =
          std::min(1.0, met / transfers / static_cast<double>(stages.size() - 1));
    }
  }
  return meanwhile;
}

}  // namespace orrery::estimate
