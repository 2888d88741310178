// SPDX-License-Identifier: Apache-2.0
/// Devices of different rates r_d in one cluster: device d holds the share B_d of everything that
/// is sliced, the same share throughout. Nothing hides behind anything.
///
///   compute     flops max_d(B_d / r_d) where the work is divided, else flops / min_d r_d;
///               backward twice that
///   collective  latency + bytes / bandwidth ; slices are padded to the largest, so of all but the
///               all-reduce bytes N max_d B_d
///   parameters  and activations converted once, gradients as we charge them (form.h); buffers and
///               inputs have none
///
/// A stage between two collectives takes what its slowest device takes. That is the sum of the
/// slowest of every operator where the slowest device also has the most to do for its rate, which
/// holds for the shares below.
///
/// For one program the time is a x + b y + c with a, b >= 0, x = max_d(B_d / r_d), y = max_d B_d.
/// The least x for a y has B_d = min(y, x r_d); it is linear in y but where y meets some x r. So
/// some rate r has the best shares, B_d = min(r_d, r) / sum_e min(r_e, r), and one exact search for
/// each distinct rate finds the best program and the best shares together.
///
/// Ignores:  that slices are whole numbers of elements; shares that change within a program.
/// Source:   HAP (Zhang et al., EuroSys'24): cost and problem; there shares and programs take
///           turns in being improved.
#pragma once

#include <cstddef>
#include <vector>

#include "planner/spmd/prices.h"
#include "planner/spmd/search.h"

namespace orrery::spmd {

struct MixedDevices {
  Profile profile;              ///< bandwidths; its rate is not used
  std::vector<FlopRate> rates;  ///< of every device, above 0
  Time collective_latency = 100_us;
};

/// Returns the shares of every device, in the order of the rates; they add up to 1. Slower devices
/// have shares in proportion to their rates, and all from `cap` up have equal ones.
std::vector<double> capped_shares(const std::vector<FlopRate>& rates, FlopRate cap);

class MixedPrices : public Prices {
 public:
  /// Requires a share for every rate.
  MixedPrices(const MixedDevices& devices, const std::vector<double>& shares);

  StageRule rule() const override { return {Overlap::none, 3}; }
  Time compute(const OperatorGraph& graph, int node, const Signature& signature) const override;
  StageWork convert(const OperatorGraph& graph, int tensor, Form from, Form to) const override;
  Operation backward(const Conversion& conversion) const override { return conversion.gradient; }
  bool allows(const OperatorGraph& graph, int node, const Signature& signature) const override;

 private:
  Time collective(Operation kind, Bytes bytes) const;

  Profile profile_;
  Time latency_;
  FlopRate divided_;  ///< of all devices together, by the slowest for its share
  FlopRate slowest_;
  double padding_;  ///< of what is sliced
};

struct MixedSolution {
  Solution solution;
  std::vector<double> shares;
};

/// The fastest program and shares. Mistakes: those of search(). Requires rates.
Result<MixedSolution> search_mixed(const OperatorGraph& graph, const MixedDevices& devices,
                                   const SearchOptions& options = {});

}  // namespace orrery::spmd
