// SPDX-License-Identifier: Apache-2.0
/// A SumWay says what becomes of a sum in a template, up to the message that carries it away.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/workload.h"

namespace orrery::layout {

/// Returns the value that a node makes; -1: none.
int value_of(const graph::Template& t, const graph::Node& node);

/// Follows a sum from the node `sum` on: it holds the work between, the message that carries the
/// result, and why a shard of tokens would not do for all of it (empty: it does).
class SumWay {
 public:
  SumWay(const graph::Template& t, int sum);

  int send() const { return send_; }  ///< -1: no message carries it
  const std::string& reason() const { return reason_; }
  const std::vector<int>& between() const { return between_; }

 private:
  void visit(int number);

  const graph::Template& template_;
  std::set<int> values_;
  std::vector<int> between_;
  std::string reason_;
  int send_ = -1;
  int ends_ = 0;
};

}  // namespace orrery::layout
