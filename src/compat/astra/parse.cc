// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/parse.h"

#include <fmt/format.h>

#include <cmath>

#include "base/reader.h"

namespace orrery::astra {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
constexpr double kPicosecondsPerNanosecond = 1e3;
constexpr double kLongestLatency = 1e12;  // ns; 1000 s, far from the range of Time
constexpr double kMostBandwidth = 1e9;    // GB/s; far from where sizes / bandwidth vanish

Time nanoseconds(double count) {
  return Time(std::llround(count * kPicosecondsPerNanosecond));
}

/// All lists have the length of the first, which is not empty.
void check_lengths(Reader& read, const std::vector<std::pair<const char*, std::size_t>>& lengths) {
  read.require(lengths.front().second > 0, lengths.front().first, "an entry per dimension");
  for (const auto& [name, length] : lengths) {
    if (length != lengths.front().second) {
      read.reject(name, fmt::format("{} entries, as many as {} has", lengths.front().second,
                                    lengths.front().first));
    }
  }
}

void check_entries(Reader& read, const std::vector<std::int64_t>& sizes,
                   const std::vector<double>& bandwidths, const std::vector<double>& latencies) {
  std::int64_t npus = 1;
  for (const std::int64_t size : sizes) {
    if (size < 2) {
      read.reject("npus_count", fmt::format("at least 2 NPUs per dimension, not {}", size));
      return;
    }
    if (npus > kMostNpus / size) {
      read.reject("npus_count", fmt::format("at most {} NPUs in all", kMostNpus));
      return;
    }
    npus *= size;
  }
  for (const double bandwidth : bandwidths) {
    read.require(bandwidth > 0 && bandwidth <= kMostBandwidth, "bandwidth",
                 fmt::format("GB/s above 0 and at most 1e9, not {}", bandwidth));
  }
  for (const double latency : latencies) {
    read.require(latency >= 0 && latency <= kLongestLatency, "latency",
                 fmt::format("0 to 1e12 ns, not {}", latency));
  }
}

void parse_transfer(Reader& read, RemoteMemory& memory) {
  const auto latency = read.required<double>("remote-mem-latency");
  const auto bandwidth = read.required<double>("remote-mem-bw");
  read.require(latency >= 0 && latency <= kLongestLatency, "remote-mem-latency", "0 to 1e12 ns");
  read.require(bandwidth > 0 && bandwidth <= kMostBandwidth, "remote-mem-bw",
               "B/ns above 0 and at most 1e9");
  memory.latency = nanoseconds(latency);
  memory.bandwidth = Bandwidth(bandwidth * kGb);  // B/ns
}

}  // namespace

Result<std::vector<Dimension>> parse_network(const ConfigNode& node, const Quirks& quirks,
                                             std::vector<std::string>* unknown) {
  if (const ConfigNode* const logical = node.find("logical-dims")) {
    Error error;
    error.add({logical->where(), "logical-dims", "a file of ASTRA-sim's ns-3 back-end",
               std::string(kWhatIsRead)});
    return fail(std::move(error));
  }
  Reader read(node);
  const auto buildings = read.list<Building>("topology", true);
  const auto sizes = read.list<std::int64_t>("npus_count", true);
  const auto bandwidths = read.list<double>("bandwidth", true);
  const auto latencies = read.list<double>("latency", true);
  if (read.ok()) {
    check_lengths(read, {{"topology", buildings.size()},
                         {"npus_count", sizes.size()},
                         {"bandwidth", bandwidths.size()},
                         {"latency", latencies.size()}});
    check_entries(read, sizes, bandwidths, latencies);
  }
  std::vector<Dimension> dimensions;
  const double unit = quirks[Quirk::gib_bandwidth] ? kGib : kGb;
  for (std::size_t i = 0; read.ok() && i < buildings.size(); ++i) {
    dimensions.push_back({.building = buildings[i],
                          .size = sizes[i],
                          .bandwidth = Bandwidth(bandwidths[i] * unit),
                          .latency = nanoseconds(latencies[i])});
  }
  if (unknown != nullptr) {
    read.warn_of_unknown(*unknown);
  }
  return read.finish(std::move(dimensions));
}

Result<RemoteMemory> parse_memory(const ConfigNode& node, std::vector<std::string>* unknown) {
  Reader read(node);
  RemoteMemory memory{.kind = read.required<RemoteMemoryKind>("memory-type")};
  if (memory.kind != RemoteMemoryKind::none) {
    parse_transfer(read, memory);
  }
  if (memory.kind == RemoteMemoryKind::per_node) {
    memory.nodes = read.required<std::int64_t>("num-nodes");
    memory.npus_per_node = read.required<std::int64_t>("num-npus-per-node");
    read.require(memory.nodes >= 1 && memory.nodes <= kMostNpus, "num-nodes", "at least 1");
    read.require(memory.npus_per_node >= 1 && memory.npus_per_node <= kMostNpus,
                 "num-npus-per-node", "at least 1");
  }
  for (const char* const other :
       {"remote-mem-latency", "remote-mem-bw", "num-nodes", "num-npus-per-node"}) {
    read.ignore(other);  // files keep them, as 0, for kinds that do not need them
  }
  if (unknown != nullptr) {
    read.warn_of_unknown(*unknown);
  }
  return read.finish(memory);
}

}  // namespace orrery::astra
