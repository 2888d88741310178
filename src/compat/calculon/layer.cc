// SPDX-License-Identifier: Apache-2.0
#include "compat/calculon/layer.h"

namespace orrery::calculon {
namespace {

constexpr double kOptimizerFlops = 11;  // per weight
constexpr double kMaster = 4;           // bytes of a weight or gradient in 32 bits
constexpr double kMoments = 8;          // bytes of two moments of a weight

}  // namespace

LayerCost::LayerCost(const System& system, const Execution& execution)
    : system_(system),
      execution_(execution),
      network_(system.networks[static_cast<std::size_t>(execution.tensor_par_net)]),
      element_(static_cast<double>(size_of(execution.datatype).value())),
      shards_(execution.optimizer_sharding ? static_cast<double>(execution.data_par) : 1) {}

Flops LayerCost::flops(const Layer& layer, Pass pass) const {
  switch (pass) {
    case Pass::forward:
      return layer.forward;
    case Pass::backward:
      return layer.backward;
    case Pass::weight:
      return layer.weight;
    case Pass::optimizer:
      return Flops(layer.weights / shards_ * kOptimizerFlops);
  }
  return Flops(0);
}

Bytes LayerCost::moved(const Layer& layer, Pass pass) const {
  const bool backward = pass == Pass::backward;
  if (pass == Pass::optimizer) {
    return optimizer(layer);
  }
  if (pass == Pass::weight) {
    return layer.weights > 0 ? bytes(layer.weights + layer.activations + layer.gradients)
                             : Bytes(0);
  }
  if (layer.kind == LayerKind::dropout) {
    return bytes(layer.inputs + layer.outputs) + Bytes::from_double(layer.activations);
  }
  if (layer.kind == LayerKind::fork) {
    return backward ? bytes(layer.activations * (layer.users + 1)) : Bytes(0);
  }
  if (layer.kind == LayerKind::exchange && !execution_.sequence_par() &&
      layer.conjugate == backward) {
    return Bytes(0);  // the identity
  }
  return backward && layer.kind != LayerKind::streamed
             ? bytes(layer.weights + layer.activations + layer.gradients)
             : bytes(layer.inputs + layer.outputs + layer.weights);
}

Bytes LayerCost::activations(const Layer& layer) const {
  if (layer.kind == LayerKind::dropout) {
    return Bytes::from_double(layer.activations);
  }
  if (layer.kind == LayerKind::exchange) {
    const double held = execution_.sequence_par()
                            ? layer.activations / static_cast<double>(execution_.tensor_par)
                        : layer.conjugate ? layer.activations
                                          : 0;
    return bytes(held);
  }
  return bytes(layer.activations);
}

Bytes LayerCost::whole_weight_gradients(const Layer& layer) const {
  return Bytes::from_double(layer.weights * kMaster);
}

Bytes LayerCost::gradients(const Layer& layer) const {
  if (layer.kind == LayerKind::dropout) {
    return Bytes::from_double(layer.gradients);
  }
  if (layer.kind == LayerKind::exchange) {
    const double held = execution_.sequence_par()
                            ? layer.activations / static_cast<double>(execution_.tensor_par)
                        : layer.conjugate ? 0
                                          : layer.gradients;
    return bytes(held);
  }
  return bytes(layer.gradients);
}

Bytes LayerCost::optimizer(const Layer& layer) const {
  const double master = element_ < kMaster ? kMaster : 0;
  return Bytes::from_double(layer.weights * (master + kMoments) / shards_);
}

bool LayerCost::is_split(Place place) const {
  return execution_.tensor_par_comm_type == TensorComm::rs_ag ||
         (execution_.tensor_par_comm_type == TensorComm::p2p_rs_ag && place == Place::edge);
}

bool LayerCost::communicates(const Layer& layer, Pass pass, Place place) const {
  const bool able = layer.kind == LayerKind::exchange || layer.kind == LayerKind::overlapped;
  if (!able || execution_.tensor_par == 1 || pass == Pass::optimizer ||
      (pass == Pass::weight && !layer.again_sent)) {
    return false;
  }
  return is_split(place) || layer.conjugate == (pass != Pass::backward);
}

double LayerCost::sent_elements(const Layer& layer) const {
  return layer.conjugate ? layer.outputs : layer.inputs;
}

Operation LayerCost::operation(const Layer& layer, Pass pass, Place place) const {
  if (!is_split(place)) {
    return Operation::all_reduce;
  }
  return layer.conjugate == (pass != Pass::backward) ? Operation::reduce_scatter
                                                     : Operation::all_gather;
}

Time LayerCost::link(const Layer& layer, Pass pass, Place place) const {
  if (layer.kind != LayerKind::exchange && layer.kind != LayerKind::overlapped) {
    return Time(0);
  }
  Time adding_up(0);
  if (layer.kind == LayerKind::exchange) {
    if (execution_.tensor_par == 1 || pass == Pass::optimizer) {
      return Time(0);
    }
    adding_up = system_.kernel(system_.vector.time(flops(layer, pass)),
                               system_.memory.time(moved(layer, pass)));
  }
  if (!communicates(layer, pass, place)) {
    return pass == Pass::weight ? Time(0) : adding_up;
  }
  const double elements = sent_elements(layer);
  const auto members = static_cast<double>(execution_.tensor_par);
  const bool adds = operation(layer, pass, place) != Operation::all_gather;
  if (layer.kind == LayerKind::overlapped && pass != Pass::weight && adds) {
    adding_up = system_.vector.time(Flops(elements * (members - 1) / members));
  }
  return adding_up +
         network_.time(operation(layer, pass, place), bytes(elements), execution_.tensor_par);
}

LayerTime LayerCost::time(const Layer& layer, Pass pass) const {
  const bool product = layer.kind == LayerKind::product || layer.kind == LayerKind::overlapped;
  const Processor& processor = product && pass != Pass::optimizer ? system_.matrix : system_.vector;
  LayerTime time{.compute = processor.time(flops(layer, pass)),
                 .memory = system_.memory.time(moved(layer, pass))};
  if (layer.kind == LayerKind::exchange) {
    return time;
  }
  time.taken = system_.kernel(time.compute, time.memory);
  if (layer.kind == LayerKind::overlapped) {
    const Time network = link(layer, pass, Place::base);
    return network == Time(0) ? time : tiled(time, network);
  }
  return time;
}

LayerTime LayerCost::tiled(LayerTime alone, Time network) const {
  const auto tiles = static_cast<double>(execution_.tensor_par);
  const double usage = network_.processor_usage;
  const Time slowed = alone.compute / (1 - usage);
  const Time excess = network / tiles - slowed / tiles;
  if (excess > Time(0)) {
    alone.taken = alone.taken / tiles + system_.kernel(slowed, alone.memory) / tiles * (tiles - 1);
    alone.exposed = excess * (tiles - 1);
  } else {
    alone.taken += network / tiles * (tiles - 1) * usage;
  }
  if (execution_.tensor_par_overlap == TensorOverlap::pipe) {
    alone.taken += network / tiles;
    alone.exposed += network / tiles;
  }
  return alone;
}

}  // namespace orrery::calculon
