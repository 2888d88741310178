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

  /// Appends the steps of `own`, one rank's share of an operator, in their order. At most one is of
  /// Part::forward, or backward of Part::input_gradient: conversions of layouts stand around it.
  /// What runs before it works on one of `shards` equal shards of its operand, which are gathered
  /// then.
  virtual void forward(const zoo::ModelOperator& own, const OperatorLayouts& layouts,
                       std::int64_t shards, std::vector<Step>& steps) const = 0;
  virtual void backward(const zoo::ModelOperator& own, const OperatorLayouts& layouts,
                        std::int64_t shards, std::vector<Step>& steps) const = 0;

  /// Whether a backward pass reads what the operator keeps of its input.
  virtual bool reads_input(const zoo::ModelOperator& own) const = 0;
  /// Returns the bytes of an operand as it crosses the network.
  virtual Bytes on_wire(const zoo::ModelOperator& own, Bytes in_compute_type) const = 0;
  /// Returns rows i m / n to (i+1) m / n of a product of m rows.
  virtual Step piece(Step product, std::int64_t i, std::int64_t n) const = 0;
};

}  // namespace orrery::lower
