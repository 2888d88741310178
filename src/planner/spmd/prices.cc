// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/prices.h"

#include <cassert>

namespace orrery::spmd {

Time PublishedPrices::compute(const OperatorGraph& graph, int node,
                              const Signature& signature) const {
  const Flops flops = graph.nodes[static_cast<std::size_t>(node)].flops;
  const auto devices = static_cast<double>(signature.divides_work() ? setting_.devices : 1);
  return flops / (setting_.profile.device_flops * devices);
}

StageWork PublishedPrices::convert(const OperatorGraph& graph, int tensor, Form from,
                                   Form to) const {
  assert(conversion(from, to) && "a legal conversion");
  const Conversion kinds = conversion(from, to).value_or(Conversion{});
  const Bytes bytes = graph.tensors[static_cast<std::size_t>(tensor)].bytes;
  const Time forward = collective(kinds.forward, bytes);
  const Time backward = collective(kinds.published, bytes);
  return {
      .forward_1 = forward, .forward_2 = forward, .backward_1 = backward, .backward_2 = backward};
}

Time PublishedPrices::collective(Operation kind, Bytes bytes) const {
  return kind == Operation::slice
             ? Time(0)
             : bytes / setting_.profile.bandwidth(kind) + setting_.collective_latency;
}

}  // namespace orrery::spmd
