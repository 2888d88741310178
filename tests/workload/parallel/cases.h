// SPDX-License-Identifier: Apache-2.0
/// Ways to count what a lowered workload does.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "../plan/cases.h"
#include "workload/parallel/lower.h"
#include "workload/plan/axes.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/shard.h"

namespace orrery::cases {

inline graph::Workload lowered(const zoo::Model& model, const plan::Plan& plan,
                               const parallel::LowerOptions& options = {}) {
  Result<graph::Workload> workload = parallel::lower(model, plan, options);
  if (!workload) {
    ADD_FAILURE() << workload.error().to_string();
    return {};
  }
  return std::move(*workload);
}

/// Calls `visit` for every node execution of one rank of `role`, in issue order.
inline void each_node(const graph::Workload& workload, int role,
                      const std::function<void(const graph::Node&)>& visit) {
  for (std::int64_t i = 0; i < workload.source->list()->length(role); ++i) {
    const graph::Instance instance = workload.source->list()->at(role, i);
    const graph::Program& program = workload.program_of(role);
    for (const graph::Node& node :
         program.templates[static_cast<std::size_t>(instance.template_index)].nodes) {
      visit(node);
    }
  }
}

inline const graph::Node* find_node(const graph::Workload& workload, const std::string& part) {
  for (const graph::Template& t : workload.program_of(0).templates) {
    for (const graph::Node& node : t.nodes) {
      if (node.name.find(part) != std::string::npos) {
        return &node;
      }
    }
  }
  return nullptr;
}

struct Tally {
  std::int64_t count = 0;
  Bytes bytes{0};
  friend bool operator==(const Tally&, const Tally&) = default;
};
inline void PrintTo(const Tally& tally, std::ostream* out) {
  *out << tally.count << " of " << tally.bytes.value() << " bytes in all";
}

/// Collectives of one rank of `role` over the whole step, counted apart by phase.
inline Tally collectives(const graph::Workload& workload, int role, plan::Axis axis,
                         graph::CollectiveKind kind, plan::StepPhase phase) {
  Tally tally;
  each_node(workload, role, [&](const graph::Node& node) {
    if (node.kind == graph::Node::Kind::collective && node.group == axis &&
        node.collective == kind && node.phase == phase) {
      ++tally.count;
      tally.bytes += node.bytes;
    }
  });
  return tally;
}

inline Tally sends(const graph::Workload& workload, int role, plan::Channel channel) {
  Tally tally;
  each_node(workload, role, [&](const graph::Node& node) {
    if (node.kind == graph::Node::Kind::send &&
        node.channel == static_cast<std::uint32_t>(channel)) {
      ++tally.count;
      tally.bytes += node.bytes;
    }
  });
  return tally;
}

/// FLOPs of GEMMs and fused attention over all roles, one rank each.
inline double matrix_flops(const graph::Workload& workload, plan::StepPhase phase) {
  double sum = 0;
  for (int role = 0; role < static_cast<int>(workload.roles.size()); ++role) {
    each_node(workload, role, [&](const graph::Node& node) {
      for (const graph::Operator& op : node.operators) {
        const bool matrix =
            op.kind == graph::OperatorKind::gemm || op.kind == graph::OperatorKind::attention;
        sum += matrix && node.phase == phase ? op.flops.value() : 0;
      }
    });
  }
  return sum;
}

/// The same of the whole model for one microbatch, forward.
inline double model_matrix_flops(const zoo::Model& model, const plan::Plan& plan) {
  double sum = 0;
  const auto blocks = plan::block_graphs(model, plan);
  for (std::size_t kind = 0; kind < blocks.size(); ++kind) {
    const double times = kind == plan::kFirstLayerBlock ? static_cast<double>(model.layers) : 1.0;
    for (const zoo::ModelOperator& op : blocks[kind].operators) {
      const bool matrix =
          op.kind == graph::OperatorKind::gemm || op.kind == graph::OperatorKind::attention;
      sum += matrix ? times * op.forward_flops.value() : 0;
    }
  }
  return sum;
}

}  // namespace orrery::cases
