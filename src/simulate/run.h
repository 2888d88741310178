// SPDX-License-Identifier: Apache-2.0
/// A run on a network, for networks.cc.
#pragma once

#include <memory>
#include <type_traits>

#include "simulate/message_alone.h"
#include "simulate/network_model.h"
#include "simulate/simulate.h"
#include "simulate/transport.h"

namespace orrery::simulate {

using MakeTransport = std::unique_ptr<Transport> (*)(const Wiring&, Binding&,
                                                     const machine::Machine&, engine::EventQueue&,
                                                     bool shortcuts);
/// Returns what a workload does on a transport.
Result<Timeline> run_on(const Transport::Traits& traits, MakeTransport make,
                        const graph::Workload& workload, const machine::Machine& machine,
                        const SimulateOptions& options);

template <class T>
Result<Timeline> run(const graph::Workload& workload, const machine::Machine& machine,
                     const SimulateOptions& options) {
  const auto make = [](const Wiring& wiring, Binding& bound, const machine::Machine& on,
                       engine::EventQueue& queue, bool shortcuts) -> std::unique_ptr<Transport> {
    if constexpr (std::is_same_v<T, PortTransport>) {
      return std::make_unique<T>(wiring, bound, on, queue);
    } else {
      return std::make_unique<T>(wiring, bound, on, queue, shortcuts);
    }
  };
  return run_on(T::kTraits, make, workload, machine, options);
}

/// Returns a network in which Links carry every message; value, names and sentence are the row's.
template <class Links>
NetworkRow message_network(NetworkRow row) {
  row.links_change = Links::kTraits.links_change;
  row.by_byte = Links::kTraits.by_byte;
  row.run = run<MessageTransport<Links>>;
  return row;
}

}  // namespace orrery::simulate
