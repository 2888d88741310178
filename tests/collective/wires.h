// SPDX-License-Identifier: Apache-2.0
/// Links of one whole dimension of p devices, one by one, for schedules to run on.
#pragma once

#include <cstdlib>
#include <vector>

#include "collective/execute.h"
#include "collective/steps.h"

namespace orrery::testing {

/// Links of a path of devices: link i leads from i to i+1, link p + i back.
inline std::vector<int> along_a_line(int from, int to, int ranks) {
  std::vector<int> links;
  for (int at = from; at < to; ++at) {
    links.push_back(at);
  }
  for (int at = from; at > to; --at) {
    links.push_back(ranks + at - 1);
  }
  return links;
}

/// The same with a link from the last device to the first; the shorter way, and if both are equal
/// forwards from even devices.
inline std::vector<int> around_a_cycle(int from, int to, int ranks) {
  const int forward = (to - from + ranks) % ranks;
  const bool tie_forward = 2 * forward == ranks && from % 2 == 0;
  std::vector<int> links;
  if (2 * forward < ranks || tie_forward) {
    for (int i = 0; i < forward; ++i) {
      links.push_back((from + i) % ranks);
    }
  } else {
    for (int i = 0; i < ranks - forward; ++i) {
      links.push_back(ranks + (from - i - 1 + ranks) % ranks);
    }
  }
  return links;
}

/// `bandwidth` is that of a device, as in NetworkDimension.
inline Wires wires_of(Fabric::Form form, int ranks, Bandwidth bandwidth, Time latency) {
  Wires wires{.links = 2 * ranks,
              .bandwidth = bandwidth,
              .step_latency = latency,
              .hop_latency = {},
              .speed = {},
              .route = {}};
  switch (form) {
    case Fabric::Form::switched:  // up to the switch, down from it
      wires.route = [ranks](int from, int to) { return std::vector<int>{from, ranks + to}; };
      break;
    case Fabric::Form::complete:
      wires.links = ranks * ranks;
      wires.bandwidth = bandwidth / (ranks - 1);
      wires.route = [ranks](int from, int to) { return std::vector<int>{from * ranks + to}; };
      break;
    case Fabric::Form::cycle:
      wires.bandwidth = bandwidth / 2;
      wires.hop_latency = latency;
      wires.route = [ranks](int from, int to) { return around_a_cycle(from, to, ranks); };
      break;
    case Fabric::Form::line:
      wires.bandwidth = ranks == 2 ? bandwidth : bandwidth / 2;
      wires.hop_latency = latency;
      wires.route = [ranks](int from, int to) { return along_a_line(from, to, ranks); };
      break;
  }
  return wires;
}

}  // namespace orrery::testing
