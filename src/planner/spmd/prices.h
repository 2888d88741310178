// SPDX-License-Identifier: Apache-2.0
/// Prices say what computing a node and converting a tensor cost: the seam between the search and
/// cost models.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "planner/spmd/operator_graph.h"
#include "planner/spmd/profile.h"
#include "planner/spmd/stage.h"

namespace orrery::spmd {

class Prices {
 public:
  virtual ~Prices() = default;

  virtual StageRule rule() const = 0;
  /// Returns the time forward of one half-batch. Backward is twice that.
  virtual Time compute(const OperatorGraph& graph, int node, const Signature& signature) const = 0;
  /// Returns the communication only; it depends on the tensor's shape, bytes and producer's kind
  /// alone. Requires a legal conversion.
  virtual StageWork convert(const OperatorGraph& graph, int tensor, Form from, Form to) const = 0;
  /// Returns the collective that a conversion's backward is charged as.
  virtual Operation backward(const Conversion& conversion) const = 0;
  /// Returns whether the strategy may use the signature of the node.
  virtual bool allows(const OperatorGraph& graph, int node, const Signature& signature) const = 0;
  /// Returns what is charged once, beside all else, for having the tensor in this form, `converted`
  /// or as it was made: the optimizer's time, what memory is worth (memory.h). Depends on what
  /// convert() depends on.
  virtual Time penalty(const OperatorGraph&, int /*tensor*/, Form, bool /*converted*/) const {
    return Time(0);
  }

 protected:
  Prices() = default;
  Prices(const Prices&) = default;
  Prices(Prices&&) = default;
  Prices& operator=(const Prices&) = default;
  Prices& operator=(Prices&&) = default;
};

/// The published cost, for comparisons with it:
///
///   compute     = flops / device_flops / (N if any input or output is sliced, else 1)
///   collective  = bytes of the whole tensor / bandwidth + 100 us ; slices are free
///
/// both for each half-batch, though a half has half the flops and bytes and parameters are
/// converted once for both; flush = 1 (stage.h). Every time is rounded to a picosecond. Source:
/// HiDup (Zhang et al., SoCC'22), its published search.
class PublishedPrices : public Prices {
 public:
  struct Setting {
    std::int64_t devices = 1;
    Profile profile;
    Overlap overlap = Overlap::forward;
    Time collective_latency = 100_us;
  };
  explicit PublishedPrices(Setting setting) : setting_(std::move(setting)) {}

  StageRule rule() const override { return {setting_.overlap, 1}; }
  Time compute(const OperatorGraph& graph, int node, const Signature& signature) const override;
  StageWork convert(const OperatorGraph& graph, int tensor, Form from, Form to) const override;
  Operation backward(const Conversion& conversion) const override { return conversion.published; }
  bool allows(const OperatorGraph&, int, const Signature&) const override { return true; }

 private:
  Time collective(Operation kind, Bytes bytes) const;

  Setting setting_;
};

}  // namespace orrery::spmd
