// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "workload/parallel/passes.h"

namespace orrery::parallel {
namespace {

/// Returns which nodes a node of another stream waits for: they must end when they end today.
std::vector<bool> awaited_elsewhere(const std::vector<graph::Node>& nodes) {
  std::vector<bool> awaited(nodes.size(), false);
  for (const graph::Node& node : nodes) {
    for (const int before : node.after) {
      awaited[static_cast<std::size_t>(before)] = true;
    }
  }
  return awaited;
}

/// Names "first .. last" of a run of fused nodes.
void extend_name(graph::Node& run, const graph::Node& node) {
  if (run.name.empty()) {
    return;
  }
  const std::size_t cut = run.name.find(" .. ");
  run.name = run.name.substr(0, cut) + " .. " + node.name;
}

/// Appends the uses of a node whose operators come after `before` others.
void append_uses(const std::vector<graph::Use>& uses, std::size_t before,
                 std::vector<graph::Use>& to) {
  for (const graph::Use& use : uses) {
    to.push_back({.tensor = use.tensor, .at = use.at + static_cast<int>(before)});
  }
}

/// Dependencies of a compute node on its own stream are never listed (assemble drops them), so one
/// that lists none starts as soon as the compute node before it ends: the two may be one, unless
/// someone waits for the first alone.
void fuse_template(graph::Template& t) {
  const std::vector<bool> awaited = awaited_elsewhere(t.nodes);
  std::vector<int> moved(t.nodes.size(), -1);
  std::vector<graph::Node> fused;
  int run = -1;  // the new compute node that may still grow
  for (std::size_t i = 0; i < t.nodes.size(); ++i) {
    graph::Node& node = t.nodes[i];
    const bool compute = node.kind == graph::Node::Kind::compute;
    for (int& before : node.after) {
      before = moved[static_cast<std::size_t>(before)];
    }
    if (compute && run >= 0 && node.after.empty() && !node.host_sync &&
        fused[static_cast<std::size_t>(run)].phase == node.phase) {
      graph::Node& target = fused[static_cast<std::size_t>(run)];
      extend_name(target, node);
      append_uses(node.reads, target.operators.size(), target.reads);
      append_uses(node.writes, target.operators.size(), target.writes);
      std::move(node.operators.begin(), node.operators.end(), std::back_inserter(target.operators));
      moved[i] = run;
    } else {
      moved[i] = static_cast<int>(fused.size());
      fused.push_back(std::move(node));
      if (fused.back().stream == plan::StepStream::compute) {
        run = compute && !fused.back().host_sync ? moved[i] : -1;
      }
    }
    if (awaited[i] && run == moved[i]) {
      run = -1;
    }
  }
  t.nodes = std::move(fused);
}

}  // namespace

graph::Workload passes::fuse(graph::Workload workload, const PassSetting& /*setting*/) {
  if (workload.streams[*graph::kComputeStream].order != graph::Order::issue) {
    return workload;  // what becomes ready in between would have to wait
  }
  for (graph::Program& program : workload.programs) {
    for (graph::Template& t : program.templates) {
      fuse_template(t);
    }
  }
  return workload;
}

}  // namespace orrery::parallel
