// SPDX-License-Identifier: Apache-2.0
/// Kernels are what one operator of a block runs on a rank, without the communication around it.
#pragma once

#include <cstdint>
#include <vector>

#include "workload/lower/layouts.h"
#include "workload/lower/step.h"
#include "workload/zoo/model.h"

namespace orrery::lower {

class Kernels {
 public:
  Kernels() = default;
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;
  virtual ~Kernels() = default;

  /// Appends the steps of `own`, one rank's share of an operator, in their order: of a forward or
  /// of a backward pass. At most one is of Part::forward, or backward of Part::input_gradient:
  /// conversions of layouts stand around it. What runs before it works on one of `shards` equal
  /// shards of its operand, which are gathered then.
  virtual void append(const zoo::ModelOperator& own, const OperatorLayouts& layouts,
                      plan::StepPhase phase, std::int64_t shards,
                      std::vector<Step>& steps) const = 0;

  /// Returns whether a backward pass reads what the operator keeps of its input.
  virtual bool reads_input(const zoo::ModelOperator& /*own*/) const { return false; }
  /// Returns the bytes of an operand as it crosses the network.
  virtual Bytes on_wire(const zoo::ModelOperator& /*own*/, Bytes operand) const { return operand; }
  /// Returns the type of results of products.
  virtual graph::DataType result_type() const { return graph::DataType::bf16; }
};

}  // namespace orrery::lower
