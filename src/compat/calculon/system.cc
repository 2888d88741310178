// SPDX-License-Identifier: Apache-2.0
#include "compat/calculon/system.h"

#include "base/reader.h"

namespace orrery::calculon {
namespace {

constexpr double kGiga = 1e9;
constexpr double kMega = 1e6;
constexpr double kTera = 1e12;

/// Two numbers of a list, the second one may be null. Mistakes go to the reader's field.
std::pair<double, std::optional<double>> pair_of(Reader& read, std::string_view field,
                                                 const ConfigNode& node) {
  const auto number = [&](const ConfigNode& item) -> std::optional<double> {
    const auto value = item.kind == ConfigNode::Kind::scalar && !item.quoted
                           ? parse_number(item.text)
                           : tl::expected<double, std::string>();
    if (!value || item.kind != ConfigNode::Kind::scalar || item.quoted) {
      read.reject(field, "numbers at " + item.where());
      return 0.0;
    }
    return *value;
  };
  if (node.kind != ConfigNode::Kind::sequence || node.items.size() != 2) {
    read.reject(field, "lists of two at " + node.where());
    return {1, 0};
  }
  const bool null = node.items[1].kind == ConfigNode::Kind::null;
  return {*number(node.items[0]), null ? std::nullopt : number(node.items[1])};
}

template <class Amount>
Efficiency<Amount> read_steps(Reader& read, std::string_view field, double unit) {
  Efficiency<Amount> efficiency;
  for (const ConfigNode* item : read.take_items(field, true)) {
    const auto [from, share] = pair_of(read, field, *item);
    efficiency.steps.push_back({Amount::from_double(from * unit), share.value_or(0)});
    read.require(share && *share > 0 && *share <= 1, field, "shares above 0, at most 1");
  }
  const auto& steps = efficiency.steps;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    read.require(steps[i].from < steps[i - 1].from, field, "steps from the largest size down");
  }
  read.require(!steps.empty() && steps.back().from == Amount(0), field, "a last step from 0");
  return efficiency;
}

Result<Processor> read_processor(const ConfigNode& types, NumberType type) {
  const ConfigNode* node = types.find(name_of(type));
  if (node == nullptr) {
    return fail(Error(Mistake{
        types.where(), types.path, {}, "no rates of " + std::string(name_of(type)) + " here"}));
  }
  Reader read(*node);
  Processor processor{
      .peak = FlopRate(read.required<double>("tflops") * kTera),
      .efficiency = read_steps<Flops>(read, "gflops_efficiency", kGiga),
  };
  read.require(processor.peak > FlopRate(0), "tflops", "more than 0");
  return read.finish(std::move(processor));
}

Result<Memory> read_memory(const ConfigNode& node, NumberType /*type*/) {
  Reader read(node);
  Memory memory{
      .capacity =
          Bytes::from_double(read.required<double>("GiB") * static_cast<double>((1_GiB).value())),
      .bandwidth = Bandwidth(read.required<double>("GBps") * kGiga),
      .efficiency = read_steps<Bytes>(read, "MB_efficiency", kMega),
  };
  read.require(memory.capacity >= Bytes(0), "GiB", "0 or more");
  read.require(memory.bandwidth > Bandwidth(0), "GBps", "more than 0");
  return read.finish(std::move(memory));
}

Result<std::array<Network::Volume, kNames<Operation>.size()>> read_volumes(const ConfigNode& node) {
  Reader read(node);
  std::array<Network::Volume, kNames<Operation>.size()> volumes;
  for (const auto& operation : kNames<Operation>) {
    if (const ConfigNode* item = read.child(operation.name, true)) {
      const auto [scale, offset] = pair_of(read, operation.name, *item);
      volumes[static_cast<std::size_t>(operation.value)] = {scale, offset.value_or(0)};
      read.require(scale > 0, operation.name, "a scale above 0");
      read.require(offset.has_value() == (operation.value != Operation::p2p), operation.name,
                   "an offset of a collective, null of p2p");
    }
  }
  return read.finish(volumes);
}

Result<Network> read_network(const ConfigNode& node) {
  Reader read(node);
  Network network{
      .bandwidth = Bandwidth(read.required<double>("bandwidth") * kGiga),
      .efficiency = read.required<double>("efficiency"),
      .size = read.required<std::int64_t>("size"),
      .latency = from_seconds(read.required<double>("latency")),
      .must_be_filled = read.required<bool>("must_be_filled"),
      .processor_usage = read.required<double>("processor_usage"),
  };
  if (const ConfigNode* operations = read.child("ops", true)) {
    network.volumes = read.absorb(read_volumes(*operations));
  }
  read.require(network.bandwidth > Bandwidth(0), "bandwidth", "more than 0");
  read.require(network.efficiency > 0 && network.efficiency <= 1, "efficiency",
               "above 0, at most 1");
  read.require(network.size >= 0, "size", "0 or more");
  read.require(network.latency >= Time(0), "latency", "0 or more");
  read.require(network.processor_usage >= 0 && network.processor_usage < 1, "processor_usage",
               "from 0 to below 1");
  return read.finish(network);
}

}  // namespace

Bytes size_of(NumberType type) {
  return type == NumberType::float32 ? Bytes(4) : type == NumberType::float8 ? Bytes(1) : Bytes(2);
}

Time Network::time(Operation operation, Bytes bytes, std::int64_t members) const {
  const Volume& volume = volumes[static_cast<std::size_t>(operation)];
  const double moved = volume.scale * (1 + volume.offset / static_cast<double>(members));
  return latency + bytes * moved / (bandwidth * efficiency);
}

Result<System> load_system(const std::string& file, NumberType type) {
  return load_config(file).and_then([&](const ConfigNode& node) {
    Reader read(node);
    const auto part = [&]<class T>(std::string_view name,
                                   Result<T> (*reader)(const ConfigNode&, NumberType)) {
      const ConfigNode* child = read.child(name, true);
      return child == nullptr ? T() : read.absorb(reader(*child, type));
    };
    System system{
        .matrix = part("matrix", read_processor),
        .vector = part("vector", read_processor),
        .memory = part("mem1", read_memory),
        .lower_memory = part("mem2", read_memory),
        .mode = read.required<ProcessingMode>("processing_mode"),
        .networks = {},
        .type = type,
    };
    for (const ConfigNode* item : read.take_items("networks", true)) {
      system.networks.push_back(read.absorb(read_network(*item)));
    }
    read.require(!system.networks.empty(), "networks", "at least one network");
    return read.finish(std::move(system));
  });
}

}  // namespace orrery::calculon
