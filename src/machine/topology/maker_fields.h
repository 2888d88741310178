// SPDX-License-Identifier: Apache-2.0
/// Makers of topologies read these fields alike. Private to the folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/reader.h"
#include "machine/topology/link_graph.h"
#include "machine/topology/makers.h"

namespace orrery::topology {

/// A Wire has the fields of a cable.
struct Wire {
  Bandwidth bandwidth{12.5e9};  // 100 Gbit/s
  Time latency = 1_us;
};

/// Reads the fields `prefix`bandwidth and `prefix`latency, or those of `otherwise`.
Wire read_wire(Reader& read, const std::string& prefix = "", const Wire& otherwise = {});

/// Reads a field such as 4x4x2 with `least` to `most` numbers of at least 1.
std::vector<std::int32_t> read_extents(Reader& read, const std::string& name, std::size_t least,
                                       std::size_t most);

/// Reads a whole number from `least` to `most`; a required one when `fallback` is below `least`.
std::int32_t read_count(Reader& read, const std::string& name, std::int32_t fallback,
                        std::int32_t least = 1, std::int32_t most = 1'000'000);

/// A mistake at `name` when the network would be larger than kMostVertices or kMostLinks.
void check_size(Reader& read, const std::string& name, double vertices, double links);

/// Adds host0, host1 ...
void add_hosts(LinkGraph& graph, std::int64_t count);
/// `name`0, `name`1 ...; returns the first.
std::int32_t add_switches(LinkGraph& graph, std::int64_t count, const std::string& name,
                          std::int32_t level);

/// `network` from the read fields, unless there were mistakes.
template <class Make>
Result<LinkGraph> finished(Reader& read, Make make) {
  Result<LinkGraph> nothing = read.finish(LinkGraph{});
  return nothing ? Result<LinkGraph>(make()) : nothing;
}

}  // namespace orrery::topology
