// SPDX-License-Identifier: Apache-2.0
/// Every wire of the network on its own, for models that run single messages.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "base/units.h"
#include "machine/topology/dimension.h"
#include "machine/topology/topology.h"

namespace orrery {

/// One link on the way of a message.
struct Hop {
  LinkId link = 0;
  Bandwidth bandwidth{0};
  Time latency{0};  ///< first byte in to first byte out
  friend bool operator==(const Hop&, const Hop&) = default;
};

/// How far the switch of a dimension reaches.
enum class SwitchReach : std::uint8_t { everywhere, own_dimension };
template <>
inline constexpr auto kNames<SwitchReach> = std::to_array<Named<SwitchReach>>({
    {SwitchReach::everywhere, "everywhere",
     "a device's port of an outer switch reaches every device, as a NIC does"},
    {SwitchReach::own_dimension, "own_dimension",
     "one switch per line of devices that differ in this dimension only; others cross each "
     "dimension in which they differ"},
});

/// Directed links of dimensions that may differ in kind, size, bandwidth and latency:
///
///   switch           a link up to the switch and one down from it, each with the device's
///                    bandwidth and half of the dimension's latency
///   fully_connected  a link to each of the size-1 others, 1/(size-1) of the device's bandwidth
///   ring             a link to the next and one to the previous, half the bandwidth each; two
///                    devices have one each way with all of it
///   mesh             the same without the closing links
///
/// Messages cross the dimensions in which source and destination differ, innermost first. Rings go
/// the shorter way (ties: forward). Bandwidth is NetworkDimension::bandwidth times send_efficiency.
///
/// Dimensions of the same nic share their up and down link when they are switches; other kinds have
/// links of their own. A dimension of kind torus, or a mesh of several extents, must have been
/// expanded (machine.h: expand_shapes). Links are numbered by arithmetic: no memory per device.
class LinkMap {
 public:
  explicit LinkMap(std::vector<NetworkDimension> dimensions,
                   SwitchReach reach = SwitchReach::everywhere);

  std::int64_t devices() const { return devices_; }
  std::size_t links() const { return links_; }
  const std::vector<NetworkDimension>& dimensions() const { return dimensions_; }
  std::int64_t coordinate(std::int64_t device, int dimension) const;
  /// The dimension that a link belongs to (the innermost of those that share it).
  int dimension_of(LinkId link) const;
  /// Links of equal dimension and port have one class, whatever their device; below classes().
  LinkId class_of(LinkId link) const;
  std::size_t classes() const { return classes_; }
  /// The class's dimension.
  int dimension_of_class(LinkId link_class) const;
  /// Links of one device in a dimension: what it can send on at once.
  std::int64_t links_out(int dimension) const;

  /// The outermost dimension in which two devices differ; -1 for one device.
  int outermost(std::int64_t source, std::int64_t destination) const;
  /// Appends the way to `hops`; nothing when source = destination.
  void route(std::int64_t source, std::int64_t destination, std::vector<Hop>& hops) const;
  /// Appends the links up to the switch of a dimension and back down to the same device.
  void switch_route(std::int64_t device, int dimension, std::vector<Hop>& hops) const;

 private:
  struct Lines {
    std::int64_t stride = 1;  ///< devices between neighbours
    std::size_t first = 0;    ///< link of device 0
    std::size_t first_class = 0;
    std::size_t ports = 0;   ///< links per device
    Bandwidth bandwidth{0};  ///< of one link
  };
  const Lines& lines(int dimension) const { return lines_[static_cast<std::size_t>(dimension)]; }
  LinkId link(std::int64_t device, int dimension, std::int64_t port) const;
  void cross_switch(std::int64_t from, std::int64_t to, int dimension,
                    std::vector<Hop>& hops) const;
  void cross(std::int64_t from, std::int64_t to, int dimension, std::vector<Hop>& hops) const;
  void cross_line(std::int64_t from, std::int64_t to, int dimension, std::vector<Hop>& hops) const;

  std::vector<NetworkDimension> dimensions_;
  SwitchReach reach_;
  std::vector<Lines> lines_;
  std::int64_t devices_ = 1;
  std::size_t links_ = 0;
  std::size_t classes_ = 0;
};

}  // namespace orrery
