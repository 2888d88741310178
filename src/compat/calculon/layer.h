// SPDX-License-Identifier: Apache-2.0
/// Operators of a block as Calculon counts them, and what each takes. Elements and FLOPs are of one
/// microbatch on one rank of its tensor-parallel group (t ranks).
///
///   pass       FLOPs        bytes of memory moved (b bytes per element)
///   forward    forward      b (inputs + outputs + weights)
///   backward   backward     b (weights + activations + gradients)
///   weight     weight       b (weights + activations + gradients); 0 without weights
///   optimizer  11 weights   what the optimizer holds: 4 bytes for the weights (of narrower ones)
///                           and 8 for two moments; both over the replicas where it is sharded
///
/// Differences by kind: dropout moves a mask of a byte an element beside its inputs and outputs in
/// both passes and keeps that mask alone; what is streamed (softmax, GeLU) moves in the backward
/// pass what it does forward; a fork moves nothing forward and one more than its users backward.
///
/// exchange    communication by itself: its link time is that of the network and of its adding up
/// overlapped  a product in t tiles with its communication. With compute c, memory m, network n per
///             tile and u the compute that a running network takes,
///               n > c / (1 - u)   takes (t - 1) (c / (1 - u) + m) + c + m, exposes
///                                 (t - 1) (n - c / (1 - u))
///               otherwise         takes t (c + m) + (t - 1) u n, exposes nothing
///             and "pipe" takes and exposes n more
///
/// Source: Calculon (Isaev et al., SC'23), its published program, with all that it does.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "compat/calculon/execution.h"

namespace orrery::calculon {

enum class LayerKind : std::uint8_t {
  plain,
  product,
  dropout,
  streamed,
  fork,
  exchange,
  overlapped
};

struct Layer {
  LayerKind kind = LayerKind::plain;
  Flops forward{0};
  Flops backward{0};
  Flops weight{0};
  double inputs = 0;  ///< elements, as all below
  double outputs = 0;
  double weights = 0;
  double activations = 0;
  double gradients = 0;     ///< of the outputs, held
  double users = 0;         ///< of a fork
  bool conjugate = false;   ///< communicates after the product instead of before it
  bool again = false;       ///< runs in the backward pass again
  bool again_sent = false;  ///< communicates again there
  bool reused = false;      ///< its activations are another layer's
  bool stored = true;       ///< keeps its activations
  bool output_stored = true;
};

enum class Pass : std::uint8_t { forward, backward, weight, optimizer };

/// Says whether a block ends its chunk: p2p_rs_ag communicates otherwise there.
enum class Place : std::uint8_t { base, edge };

struct LayerTime {
  Time taken{0};    ///< 0 of an exchange, whose link time is all
  Time exposed{0};  ///< of its communication
  Time compute{0};
  Time memory{0};
};

/// LayerCost is what layers take and hold under one execution.
class LayerCost {
 public:
  /// All must outlive it.
  LayerCost(const System& system, const Execution& execution);

  LayerTime time(const Layer& layer, Pass pass) const;
  /// Returns the time of communication on its link; of the pass weight what is sent again.
  Time link(const Layer& layer, Pass pass, Place place) const;
  Flops flops(const Layer& layer, Pass pass) const;

  Bytes weights(const Layer& layer) const { return bytes(layer.weights); }
  Bytes activations(const Layer& layer) const;
  Bytes outputs(const Layer& layer) const { return bytes(layer.outputs); }
  /// Returns the gradients of weights, over the replicas where the optimizer is.
  Bytes weight_gradients(const Layer& layer) const { return bytes(layer.weights / shards_); }
  /// Returns the gradients of weights in 32 bits, of this rank alone.
  Bytes whole_weight_gradients(const Layer& layer) const;
  Bytes gradients(const Layer& layer) const;
  Bytes optimizer(const Layer& layer) const;

 private:
  Bytes bytes(double elements) const { return Bytes::from_double(elements * element_); }
  Bytes moved(const Layer& layer, Pass pass) const;
  /// Returns whether its communication is cut into reduce-scatter and all-gather.
  bool is_split(Place place) const;
  /// Says whether the layer communicates in a pass.
  bool communicates(const Layer& layer, Pass pass, Place place) const;
  double sent_elements(const Layer& layer) const;
  Operation operation(const Layer& layer, Pass pass, Place place) const;
  /// Returns the time of a pass of a product beside its communication.
  LayerTime tiled(LayerTime alone, Time network) const;

  const System& system_;
  const Execution& execution_;
  const Network& network_;
  double element_;  ///< bytes
  double shards_;   ///< of the optimizer
};

}  // namespace orrery::calculon
