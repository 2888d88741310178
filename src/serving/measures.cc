// SPDX-License-Identifier: Apache-2.0
#include "serving/measures.h"

#include <algorithm>

namespace orrery::serving {

void Measures::on_step(const StepRecord& step, const State& state) {
  constexpr Time kSamplePeriod = from_seconds(1);
  constexpr std::size_t kMostSamples = 1'000'000;
  if (run_.steps.size() < most_steps_) {
    run_.steps.push_back(step);
  }
  on_blocks(step.begin, state.blocks);
  const double use = static_cast<double>(state.blocks) / static_cast<double>(blocks_);
  run_.peak_kv_use = std::max(run_.peak_kv_use, use);
  run_.peak_running = std::max(run_.peak_running, state.running);
  while (next_sample_ <= step.end && run_.samples.size() < kMostSamples) {
    run_.samples.push_back(
        {next_sample_, state.running, state.waiting, use, run_.drawn, run_.busy});
    next_sample_ += kSamplePeriod;
  }
  if (run_.samples.size() == kMostSamples) {
    next_sample_ = Time::max();
  }
}

void Measures::on_tokens(Time end, std::int64_t passes) {
  constexpr std::int64_t kMostSeconds = 1'000'000;
  if (end.is_overflow()) {
    return;
  }
  const std::int64_t second = (end - first_).value() / Time(1_s).value();
  if (second >= kMostSeconds) {
    return;
  }
  const auto place = static_cast<std::size_t>(second);
  if (place >= run_.tokens.size()) {
    run_.tokens.resize(place + 1);
  }
  run_.tokens[place] += passes;
}

void Measures::on_gaps(Time gap, std::int64_t passes) {
  if (!run_.gaps.empty() && run_.gaps.back().gap == gap) {
    run_.gaps.back().count += passes;
  } else {
    run_.gaps.push_back({gap, passes});
  }
}

void Measures::on_blocks(Time at, std::int64_t blocks) {
  held_time_ += static_cast<BlockTime>(held_) * (at - held_since_).value();
  held_ = blocks;
  held_since_ = at;
}

void Measures::finish() {
  on_blocks(std::max(run_.duration, held_since_), 0);
  run_.kv_use_s = static_cast<double>(held_time_) / static_cast<double>(Time(1_s).value()) /
                  static_cast<double>(blocks_);
}

}  // namespace orrery::serving
