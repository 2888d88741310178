// SPDX-License-Identifier: Apache-2.0
#include "emit/sizes.h"

#include <algorithm>
#include <iterator>

namespace orrery::emit {
namespace {

using graph::Node;
using graph::Operator;
using graph::OperatorKind;

std::int64_t shrunk(std::int64_t value, std::int64_t by) {
  return std::max<std::int64_t>(value / by, 1);
}

bool is_sharded(const Node& node) {
  return node.kind == Node::Kind::collective &&
         (node.collective == graph::CollectiveKind::all_gather ||
          node.collective == graph::CollectiveKind::reduce_scatter ||
          node.collective == graph::CollectiveKind::all_to_all);
}

Operator operator_of(const Work& work) {
  Operator op{.name = "stream", .type = graph::DataType::fp32};
  if (work.gemm.batch > 0) {
    op.name = "product";
    op.kind = OperatorKind::gemm;
    op.gemm = work.gemm;
    op.flops = graph::flops_of(work.gemm);
  } else {
    op.bytes = work.bytes;
    op.duration = work.duration;
  }
  return op;
}

/// The node as the program's thread runs it. `members` of its communicator.
void execute(Node& node, std::int64_t members, std::int64_t shrink) {
  const std::vector<Work> works = works_of(node, shrink);
  if (node.kind == Node::Kind::copy || node.kind == Node::Kind::host) {
    node.kind = Node::Kind::compute;
    node.stream = graph::kComputeStream;
    node.group = {};
    node.sharers = {};
  }
  if (node.kind == Node::Kind::compute) {
    node.operators.clear();
    std::ranges::transform(works, std::back_inserter(node.operators), operator_of);
  } else if (node.kind != Node::Kind::wait) {
    const std::int64_t shards = is_sharded(node) ? members : 1;
    node.bytes = Bytes(elements_of(node, members, shrink) * shards * kElementBytes);
  }
}

template <class Visit>
void for_each_node(graph::Workload& workload, Visit visit) {
  for (graph::Program& program : workload.programs) {
    for (graph::Template& shape : program.templates) {
      std::ranges::for_each(shape.nodes, visit);
    }
  }
}

}  // namespace

std::int64_t elements_of(const Node& node, std::int64_t members, std::int64_t shrink) {
  const std::int64_t parts = is_sharded(node) ? members : 1;
  return shrunk(node.bytes.value() / parts, shrink * kElementBytes);
}

std::vector<Work> works_of(const Node& node, std::int64_t shrink) {
  std::vector<Work> works;
  for (const graph::Operator& op : node.operators) {
    const bool is_product = op.kind == OperatorKind::gemm ||
                            op.kind == OperatorKind::grouped_gemm ||
                            op.kind == OperatorKind::attention;
    if (is_product && op.gemm.batch > 0 && op.gemm.m > 0 && op.gemm.n > 0 && op.gemm.k > 0) {
      works.push_back({.gemm = {shrunk(op.gemm.batch, shrink), shrunk(op.gemm.m, shrink),
                                shrunk(op.gemm.n, shrink), shrunk(op.gemm.k, shrink)}});
    } else if (op.duration > Time(0)) {
      works.push_back({.duration = op.duration / shrink});
    } else if (op.bytes > Bytes(0)) {
      works.push_back({.bytes = Bytes(shrunk(op.bytes.value(), shrink))});
    }
  }
  if (node.kind == Node::Kind::copy) {
    works.push_back({.bytes = Bytes(shrunk(node.bytes.value(), shrink))});
  }
  return works;
}

graph::Workload executed(graph::Workload workload, std::int64_t shrink) {
  workload.host_dispatch = Time(0);
  for_each_node(workload, [&](Node& node) {
    execute(node, !node.group.none() ? workload.groups[*node.group].members.size() : 1, shrink);
  });
  return workload;
}

graph::Workload on_one_thread(graph::Workload executed) {
  for_each_node(executed, [](Node& node) {
    if (node.kind == Node::Kind::collective) {
      node.stream = graph::kComputeStream;
    }
  });
  return executed;
}

}  // namespace orrery::emit
