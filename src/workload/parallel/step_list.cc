// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/step_list.h"

namespace orrery::parallel {

StepDependencies::StepDependencies(const std::vector<StepLane>& lanes) {
  for (const StepLane& shape : lanes) {
    Lane& lane = lanes_.emplace_back();
    lane.gathers.resize(shape.blocks());
    lane.writers.fill(kNone);
  }
  for (auto& of_stream : satisfied_) {
    of_stream.fill(kNone);
  }
}

void StepDependencies::next(const PlacedStep& placed, std::vector<int>& after) {
  const Step& step = *placed.step;
  Lane& lane = lanes_[placed.lane];
  const int number = static_cast<int>(streams_.size());
  const graph::StreamIndex stream = step.node.stream;
  streams_.push_back(stream);
  if (step.reads != Value::none) {
    depend(stream, lane.writers[static_cast<std::size_t>(step.reads)], after);
  }
  const bool communicates =
      step.node.kind == graph::Node::Kind::collective || step.node.kind == graph::Node::Kind::send;
  if (communicates || step.after_compute) {
    depend(stream, last_compute_, after);
  }
  const int block = placed.block == kNoBlock ? step.before_block : placed.block;
  if (block != kNoBlock && stream == plan::StepStream::compute) {
    for (const int gather : lane.gathers[static_cast<std::size_t>(block)]) {
      depend(stream, gather, after);
    }
  }
  if (step.gathers_block != kNoBlock) {
    lane.gathers[static_cast<std::size_t>(step.gathers_block)].push_back(number);
  }
  if (step.writes != Value::none) {
    lane.writers[static_cast<std::size_t>(step.writes)] = number;
  }
  if (stream == plan::StepStream::compute) {
    last_compute_ = number;
  }
}

void StepDependencies::depend(graph::StreamIndex stream, int on, std::vector<int>& after) {
  if (on == kNone || streams_[static_cast<std::size_t>(on)] == stream) {
    return;
  }
  int& known = satisfied_[*stream][*streams_[static_cast<std::size_t>(on)]];
  if (on > known) {
    known = on;
    after.push_back(on);
  }
}

}  // namespace orrery::parallel
