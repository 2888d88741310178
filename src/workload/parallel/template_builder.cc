// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/template_builder.h"

#include <utility>

namespace orrery {

TemplateBuilder::TemplateBuilder(std::string name, const std::vector<std::size_t>& blocks) {
  template_.name = std::move(name);
  for (const std::size_t count : blocks) {
    Lane& lane = lanes_.emplace_back();
    lane.gathered.resize(count);
    lane.writers.fill(kNoNode);
  }
  for (auto& of_stream : satisfied_) {
    of_stream.fill(kNoNode);
  }
}

void TemplateBuilder::add(const Step& step, int block, std::size_t lane_number) {
  Lane& lane = lanes_[lane_number];
  const int index = static_cast<int>(template_.nodes.size());
  Node node = step.node;
  if (step.reads != Value::none) {
    depend(node, lane.writers[static_cast<std::size_t>(step.reads)]);
  }
  const bool communicates = node.kind == Node::Kind::collective || node.kind == Node::Kind::send;
  if (communicates || step.after_compute) {
    depend(node, last_compute_);
  }
  if (block != kNoBlock && node.stream == StepStream::compute) {
    for (const int gather : lane.gathered[static_cast<std::size_t>(block)]) {
      depend(node, gather);
    }
  }
  if (step.gathers_block != kNoBlock) {
    lane.gathered[static_cast<std::size_t>(step.gathers_block)].push_back(index);
  }
  if (step.writes != Value::none) {
    lane.writers[static_cast<std::size_t>(step.writes)] = index;
  }
  if (node.stream == StepStream::compute) {
    last_compute_ = index;
  }
  template_.nodes.push_back(std::move(node));
}

/// Streams are in order, so a dependency is implied by one of the own stream, and by an earlier
/// node of the own stream that waited for the same or a later node of the other.
void TemplateBuilder::depend(Node& node, int on) {
  if (on == kNoNode) {
    return;
  }
  const StreamIndex other = template_.nodes[static_cast<std::size_t>(on)].stream;
  int& known = satisfied_[*node.stream][*other];
  if (other == node.stream || on <= known) {
    return;
  }
  known = on;
  node.after.push_back(on);
}

}  // namespace orrery
