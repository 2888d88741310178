// SPDX-License-Identifier: Apache-2.0
#include "collective/layout/sum_way.h"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::layout {
namespace {

using graph::Node;

bool reads(const Node& node, int tensor) {
  return std::any_of(node.reads.begin(), node.reads.end(),
                     [&](const graph::Use& use) { return use.tensor == tensor; });
}

bool is_by_token(const graph::Operator& op) {
  return op.kind == graph::OperatorKind::elementwise || op.kind == graph::OperatorKind::norm;
}

/// Returns whether what it makes is still the sum, a token at a time.
bool carries_on(const Node& node) {
  return node.kind == Node::Kind::wait ||
         (node.kind == Node::Kind::compute &&
          std::all_of(node.operators.begin(), node.operators.end(), is_by_token));
}

/// Work of a trace, which says how long it takes but not what it does.
bool is_unknown(const Node& node) {
  return node.kind == Node::Kind::compute &&
         std::any_of(node.operators.begin(), node.operators.end(), [](const graph::Operator& op) {
           return op.kind == graph::OperatorKind::opaque;
         });
}

/// Returns why a node between sum and message cannot work on a shard of tokens; empty: it can.
std::string obstacle(const Node& node) {
  if (node.kind == Node::Kind::compute) {
    for (const graph::Operator& op : node.operators) {
      if (op.kind == graph::OperatorKind::opaque) {
        return fmt::format("{} reads the sum, and nothing says that it works by token", op.name);
      }
      if (!is_by_token(op)) {
        return fmt::format("{} needs the whole sum", op.name);
      }
      if (op.kind == graph::OperatorKind::norm &&
          (op.backward || op.name.find("backward") != std::string::npos)) {
        return fmt::format("{} adds gradients of parameters over tokens", op.name);
      }
    }
    return {};
  }
  return carries_on(node) ? "" : fmt::format("{} reads the sum", node.name);
}

}  // namespace

int value_of(const graph::Template& t, const Node& node) {
  for (const graph::Use& use : node.writes) {
    if (t.tensors[static_cast<std::size_t>(use.tensor)].memory.none()) {
      return use.tensor;
    }
  }
  return -1;
}

SumWay::SumWay(const graph::Template& t, int sum) : template_(t) {
  values_.insert(value_of(t, t.nodes[static_cast<std::size_t>(sum)]));
  for (auto i = static_cast<std::size_t>(sum) + 1; i < t.nodes.size(); ++i) {
    visit(static_cast<int>(i));
  }
  if (send_ >= 0 && reason_.empty() && ends_ > 1) {
    reason_ = "several messages carry the sum";
  }
}

void SumWay::visit(int number) {
  const Node& node = template_.nodes[static_cast<std::size_t>(number)];
  const bool on_way =
      std::any_of(values_.begin(), values_.end(), [&](int value) { return reads(node, value); });
  if (!on_way) {
    return;
  }
  if (node.kind == Node::Kind::send) {
    send_ = number;
    ++ends_;
    return;
  }
  if (node.kind == Node::Kind::wait && value_of(template_, node) < 0) {
    return;
  }
  if (const std::string why = obstacle(node); !why.empty() && reason_.empty()) {
    reason_ = why;
  }
  between_.push_back(number);
  if (const int made = value_of(template_, node);
      made >= 0 && (carries_on(node) || is_unknown(node))) {
    values_.insert(made);
  }
}

}  // namespace orrery::layout
