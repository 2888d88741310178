// SPDX-License-Identifier: Apache-2.0
/// Links of a multi-dimensional network and the ways through it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "machine/topology/dimension.h"

namespace orrery {

/// Number of a directed link or port. A device has two ports per dimension (or per shared nic):
///   switch, fully_connected: `out` to the fabric, `in` from it
///   ring, mesh:              `out` is the link to the next device, `in` the link to the previous
///   one
/// (each link belongs to the device that sends on it).
using LinkId = std::uint32_t;

/// The way of a point-to-point message.
struct Route {
  std::vector<LinkId> links;
  Time latency{0};              ///< of all hops, without software overhead
  Time overhead{0};             ///< software overhead of the outermost dimension crossed
  double seconds_per_byte = 0;  ///< of its slowest link, send_efficiency included
  int dimension = -1;           ///< the outermost dimension crossed; -1 when source = destination
};

/// Network dimensions as links. A dimension of kind torus or mesh with several extents must have
/// been expanded into one ring or one-extent mesh per extent (machine.h: with_devices).
class Topology {
 public:
  explicit Topology(std::vector<NetworkDimension> dimensions);

  std::int64_t devices() const { return devices_; }
  std::size_t links() const { return static_cast<std::size_t>(devices_) * ports_ * 2; }
  const std::vector<NetworkDimension>& dimensions() const { return dimensions_; }
  std::int64_t coordinate(std::int64_t device, int dimension) const;

  LinkId out_link(std::int64_t device, int dimension) const;
  LinkId in_link(std::int64_t device, int dimension) const;

  /// A message from one device to another. Crosses the dimensions in which they differ, innermost
  /// first, except that a switch reaches every device: the outermost differing dimension alone is
  /// crossed when it is a switch. Rings go the shorter way (ties: forward). A direct link of a
  /// fully-connected dimension carries 1/(size-1) of the device's bandwidth, a link of a ring or
  /// mesh one half (all of it between two devices).
  Route route(std::int64_t source, std::int64_t destination) const;

  /// Links that member `device` contributes to a collective over `count` members, `stride` apart in
  /// `dimension` (collective/cost.h, Extent). On switches and fully-connected dimensions its two
  /// ports; on a whole ring its two links; on part of a ring or on a mesh the links to the next
  /// member and back (none for the last member).
  std::vector<LinkId> collective_links(std::int64_t device, int dimension, std::int64_t count,
                                       std::int64_t stride) const;

 private:
  std::int64_t stride_of(int dimension) const {
    return strides_[static_cast<std::size_t>(dimension)];
  }
  std::int64_t moved(std::int64_t device, int dimension, std::int64_t coordinate) const;
  void append_route(Route& route, std::int64_t from, std::int64_t to, int dimension) const;

  std::vector<NetworkDimension> dimensions_;
  std::vector<std::int64_t> strides_;
  std::vector<std::uint32_t> port_of_dimension_;
  std::uint32_t ports_ = 0;
  std::int64_t devices_ = 1;
};

}  // namespace orrery
