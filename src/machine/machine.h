// SPDX-License-Identifier: Apache-2.0
/// The assembled machine and its YAML (configs/machines/).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"
#include "machine/compute/device.h"
#include "machine/memory/remote_memory.h"
#include "machine/network/flit/fabric.h"
#include "machine/network/packet_options.h"
#include "machine/topology/dimension.h"
#include "machine/topology/wires.h"

namespace orrery::machine {

/// Consecutive ranks with devices of one sort, in a cluster of several sorts.
struct DeviceGroup {
  std::string name;
  std::int64_t devices = 0;
  compute::Device device;

  friend bool operator==(const DeviceGroup&, const DeviceGroup&) = default;
};

struct Machine {
  std::string name;
  std::string description;
  compute::Device device;          ///< with device groups: mean_device() of them (device_groups.h)
  std::vector<DeviceGroup> parts;  ///< in the order of ranks; empty: every device is `device`
  std::vector<topology::NetworkDimension> network;  ///< innermost first
  topology::Wires wires;                            ///< under the dimensions: fifo and flow use it
  memory::RemoteMemory remote_memory;  ///< beyond devices and hosts; kind none: there is none
  flit::FabricSettings flit;           ///< of `--network flit`
  network::PacketOptions packet;       ///< of `--network packet`
  std::map<std::string, std::string> origins;  ///< dotted field, or a prefix of it -> origin

  friend bool operator==(const Machine&, const Machine&) = default;
};

/// More devices than this are a mistake in a file, not a machine.
inline constexpr std::int64_t kMostDevices = std::int64_t{1} << 24;

/// Reads a machine file; every mistake at once.
///
///   name, description
///   device: {name, units, peak: {bf16: 312 TFLOP/s, ...}, memory: [{name, capacity, bandwidth,
///            latency, energy_per_byte}, ...], power, idle_power, price_per_hour, overlap_units,
///            overlap_memory, overlap_send_units, framework_memory, communicator_memory, kernels,
///            tracker: {contention, rereads, read_saving}, model, systolic: {rows, cols, dataflow,
///            arrays, input_sram, filter_sram, output_sram, mac_energy, sram_energy}}
///   parts: [{name, devices, device: {as device}, or the name of a machine whose device it is},
///            ...] instead of device: that many devices each, in the order of ranks; the network
///            is one for all
///   network: [{name, kind, size or shape, granule, bandwidth, latency, message_overhead,
///            send_efficiency, background_share, energy_per_byte, nic, through, node_bandwidth,
///            bandwidth_by_peers: [{peers, share}, ...], protocols: [{name, launch, step_latency,
///            efficiency, local_copy}, ...], in_switch: [as protocols], exchange: [as
///            protocols]}, ...]
///   topology: a network of links (`fat_tree:k=8`) or a file of one, or {links, routing, seed}:
///            what messages pass under the network models fifo and flow; device d is its host d,
///            and it has as many hosts as the dimensions have devices, or more
///   remote_memory: {kind, capacity, bandwidth, latency, of per_node and hierarchical node_devices,
///            of hierarchical groups, switches, switch_bandwidth, fabric_bandwidth, in_switch,
///            chunk}
///   flit: {flit, packet, cycle, ports, vcs, buffer, routing_delay, credit_delay, vc_allocator,
///            sw_allocator, flow_control}
///   packet: {protocol, wire, header, queue, window, paths, pause, resume, switch_delay}
///   origins: {dotted field or a prefix of it: where the number comes from}
///
/// A mesh of one extent, a line, may give its `size` instead of a shape.
/// Lists are named in dotted fields by their entries' names: "device.memory.hbm.bandwidth",
/// "network.nvlink.protocols.Simple". Required: name; device's name, units, peak and memory; of
/// memory all but latency; of a dimension name, kind, size or shape, bandwidth and latency; of a
/// protocol name, step_latency and efficiency; of remote memory all that its kind has but in_switch
/// and chunk. Others keep the defaults of device.h and dimension.h.
Result<Machine> parse_machine(const ConfigNode& node);
/// A shipped name ("dgx-a100-80g") or a path.
Result<Machine> load_machine(const std::string& name_or_path);
/// Returns the machine's file again, every field written out; parse_machine reads it back equal.
std::string to_yaml(const Machine& machine);

/// Returns the network as collectives find it that run beside whole training steps, such as the
/// averages of workers that do not wait for them: bandwidth x background_share in every dimension.
///
/// Ignores: networks that move messages one by one (simulate/networks.cc) know no such share.
Machine beside_steps(Machine machine);

/// Returns the machine with exactly `devices` devices: expand_shapes, then whole inner dimensions
/// and as much of the next one as is needed (4 GPUs are half of an 8-GPU node; 64 are 8 nodes);
/// unused outer dimensions go. Part of a ring is a line; part of a fully-connected dimension keeps
/// only the links, and so the bandwidth, between its members; part of a switch keeps everything. A
/// dimension with a granule gives the largest multiple of it that divides what is asked for (256
/// devices on racks of 72 in trays of 4: 64 of each of four racks). A machine of parts keeps the
/// first so many devices; one part, or parts of equal devices, become none. Mistakes (field
/// "devices"): more devices than there are; a number that does not fill whole inner dimensions (12
/// where nodes have 8).
Result<Machine> with_devices(Machine machine, std::int64_t devices);

/// A torus of shape a x b becomes rings of a and b devices, a mesh becomes lines, named ici_0,
/// ici_1; each has an equal part of the device's bandwidth (extents of 1 have no links).
Machine expand_shapes(Machine machine);

/// Returns "nvlink 8, infiniband any".
std::string dimension_sizes(const Machine& machine);

}  // namespace orrery::machine
