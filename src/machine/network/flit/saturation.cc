// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "machine/network/flit/experiment.h"

namespace orrery::flit {
namespace {

constexpr int kBisections = 6;
constexpr double kRateDigits = 1e4;  // loads of four digits, as the public cases were run with

}  // namespace

Saturation find_saturation(const Experiment& experiment, const Prepared& prepared,
                           const RunOptions& options) {
  OpenLoopSettings load = experiment.load;
  if (!experiment.states_periods) {
    load.sample_period = 500;
    load.warmup_periods = 2;
    load.max_samples = 8;
    load.latency_limit = 200;
    load.stopping_threshold = 0.1;
  }
  Saturation saturation;
  double high = 1;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (saturation.offered + high) / 2;
    load.rate = std::nearbyint(middle * kRateDigits) / kRateDigits;
    const RunOptions part{options.skip, [&](double share) {
                            if (options.progress) {
                              options.progress((i + share) / kBisections);
                            }
                          }};
    OpenLoopResult run = run_open_loop(prepared.network(experiment), load, part);
    if (run.stable) {
      saturation.offered = middle;
      saturation.accepted = run.accepted;
    } else {
      high = middle;
    }
    saturation.runs.push_back(std::move(run));
  }
  return saturation;
}

}  // namespace orrery::flit
