// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/template_builder.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace orrery::parallel {
namespace {

/// Returns the bytes that the node writes, of the size of what it reads unless it says otherwise.
Bytes written_bytes(const graph::Node& node, Bytes read, std::int64_t members) {
  if (node.kind == graph::Node::Kind::collective) {
    const bool scatters = node.collective == graph::CollectiveKind::reduce_scatter ||
                          node.collective == graph::CollectiveKind::all_to_all;
    return scatters ? node.bytes / members : node.bytes;
  }
  if (node.kind != graph::Node::Kind::compute) {
    return node.kind == graph::Node::Kind::wait ? read : node.bytes;
  }
  return read > Bytes(0) ? read : node.operators.back().bytes / 2;
}

void set_layer(graph::Node& node, const std::vector<int>& layers, int block) {
  if (block != kNoBlock) {
    node.layer = layers[static_cast<std::size_t>(block)];
    for (graph::Operator& op : node.operators) {
      op.layer = node.layer;
    }
  }
}

void set(std::vector<graph::Sharding>& layout, const graph::Sharding& sharding) {
  std::erase_if(layout, [&](const graph::Sharding& one) { return one.group == sharding.group; });
  layout.push_back(sharding);
}

}  // namespace

TemplateBuilder::TemplateBuilder(const StepList& list, const plan::RankLayout& layout)
    : layout_(layout), dependencies_(list.lanes) {
  template_.name = list.name;
  for (const StepLane& shape : list.lanes) {
    Lane& lane = lanes_.emplace_back();
    for (std::size_t block = 0; block < shape.blocks(); ++block) {
      lane.layers.push_back(shape.chunk->blocks[block].layer);
    }
    lane.gathered.resize(lane.layers.size());
    lane.moments.resize(lane.layers.size());
    lane.tensors.fill(kNone);
    lane.backward = shape.pass != footprint::ChunkPass::forward;
  }
  for (const PlacedStep& placed : list.steps) {
    add(placed);
  }
}

void TemplateBuilder::add(const PlacedStep& placed) {
  const Step& step = *placed.step;
  const int block = placed.block;
  Lane& lane = lanes_[placed.lane];
  const int index = static_cast<int>(template_.nodes.size());
  graph::Node node = step.node;
  dependencies_.next(placed, node.after);
  const int tensor =
      step.reads == Value::none ? kNone : lane.tensors[static_cast<std::size_t>(step.reads)];
  read(node, tensor);
  set_layer(node, lane.layers, block == kNoBlock ? step.gathers_block : block);
  if (block != kNoBlock) {
    const auto at = static_cast<std::size_t>(block);
    NodeRange& moment = lane.moments[lane.backward ? lane.moments.size() - 1 - at : at];
    moment.first = moment.first == kNone ? index : moment.first;
    moment.last = index;
    for (std::size_t i = 0;
         node.stream == plan::StepStream::compute && i < lane.gathered[at].size(); ++i) {
      read(node, lane.gathered[at][i]);
    }
  }
  if (step.gathers_block != kNoBlock) {
    lane.gathered[static_cast<std::size_t>(step.gathers_block)].push_back(
        write(node, step, std::nullopt));
  }
  if (step.writes != Value::none) {
    lane.tensors[static_cast<std::size_t>(step.writes)] =
        write(node, step, tensor == kNone ? std::nullopt : std::optional(tensor));
  }
  template_.nodes.push_back(std::move(node));
}

void TemplateBuilder::read(graph::Node& node, int tensor) {
  if (tensor == kNone || node.group == plan::Axis::from_host) {
    return;  // a copy waits for the moment; what it brings is no part of the value
  }
  node.reads.push_back({.tensor = tensor});
  if (node.kind != graph::Node::Kind::collective) {
    return;
  }
  std::vector<graph::Sharding>& layout = template_.tensors[static_cast<std::size_t>(tensor)].layout;
  if (node.collective == graph::CollectiveKind::all_gather) {
    set(layout, {.group = node.group});
  } else if (node.collective == graph::CollectiveKind::all_reduce ||
             node.collective == graph::CollectiveKind::reduce_scatter) {
    set(layout, {.group = node.group, .kind = graph::Sharding::Kind::partial});
  }
}

int TemplateBuilder::write(graph::Node& node, const Step& step, std::optional<int> read) {
  graph::Tensor written;
  if (read) {
    const graph::Tensor& from = template_.tensors[static_cast<std::size_t>(*read)];
    written.layout = from.layout;
    written.bytes = from.bytes;
  }
  const bool collective = node.kind == graph::Node::Kind::collective;
  written.bytes = written_bytes(
      node, written.bytes, collective ? layout_.size(static_cast<plan::Axis>(*node.group)) : 1);
  if (collective) {
    set(written.layout, {.group = node.group});
    const bool whole = node.collective == graph::CollectiveKind::all_reduce ||
                       node.collective == graph::CollectiveKind::all_gather ||
                       node.collective == graph::CollectiveKind::broadcast;
    if (whole) {
      written.layout.pop_back();
    }
  }
  if (const lower::Made& made = step.made; made.bytes > Bytes(0)) {
    written.bytes = made.bytes;
    written.layout = made.held ? std::vector{*made.held} : std::vector<graph::Sharding>();
  }
  const int tensor = static_cast<int>(template_.tensors.size());
  template_.tensors.push_back(std::move(written));
  node.writes.push_back({.tensor = tensor});
  return tensor;
}

void TemplateBuilder::allocate(const footprint::ChunkWork& work, std::size_t lane_number) {
  const std::vector<NodeRange>& moments = lanes_[lane_number].moments;
  assert(work.moments == moments.size() || work.moments == 0);
  const auto runs = [](const NodeRange& moment) { return moment.first != kNone; };
  for (const graph::Allocation& allocation : work.allocations) {
    const auto first = std::find_if(
        moments.begin() + static_cast<std::ptrdiff_t>(std::min(allocation.first, moments.size())),
        moments.end(), runs);
    const auto end = moments.begin() +
                     static_cast<std::ptrdiff_t>(std::min(allocation.last + 1, moments.size()));
    const auto last = std::find_if(std::reverse_iterator(end), moments.rend(), runs);
    const bool leaves = allocation.lifetime == graph::Tensor::Lifetime::leaves;
    const bool enters = allocation.lifetime == graph::Tensor::Lifetime::enters;
    if (!leaves && !enters && (first >= end || last == moments.rend())) {
      continue;
    }
    hold(allocation, enters || first == moments.end() ? kNone : first->first,
         leaves || last == moments.rend() ? kNone : last->last);
  }
}

void TemplateBuilder::allocate(std::string_view name, plan::MemoryCategory category, Bytes bytes,
                               std::size_t first, std::size_t last) {
  if (bytes > Bytes(0) && first <= last && last < template_.nodes.size()) {
    hold({.name = name, .memory = category, .bytes = bytes}, static_cast<int>(first),
         static_cast<int>(last));
  }
}

void TemplateBuilder::allocate_messages(Bytes bytes) {
  std::size_t first = template_.nodes.size();
  std::size_t last = 0;
  for (const Lane& lane : lanes_) {
    for (const NodeRange& moment : lane.moments) {
      if (moment.first != kNone) {
        first = std::min(first, static_cast<std::size_t>(moment.first));
        last = std::max(last, static_cast<std::size_t>(moment.last));
      }
    }
  }
  allocate("messages", plan::MemoryCategory::buffers, bytes, first, last);
}

void TemplateBuilder::hold(const graph::Allocation& allocation, int first, int last) {
  const graph::Use use{.tensor = static_cast<int>(template_.tensors.size())};
  template_.tensors.push_back({.name = std::string(allocation.name),
                               .bytes = allocation.bytes,
                               .layout = {},
                               .memory = allocation.memory,
                               .lifetime = allocation.lifetime,
                               .tier = allocation.tier,
                               .shared = allocation.shared});
  if (first != kNone) {
    template_.nodes[static_cast<std::size_t>(first)].writes.push_back(use);
  }
  if (last != kNone) {
    graph::Node& node = template_.nodes[static_cast<std::size_t>(last)];
    const int operators = static_cast<int>(node.operators.size());
    node.reads.push_back({.tensor = use.tensor, .at = std::max(0, operators - 1)});
  }
}

}  // namespace orrery::parallel
