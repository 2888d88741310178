// SPDX-License-Identifier: Apache-2.0
/// The one numbering of a network's links, and the routes through it. Collectives, messages and
/// folding all ask here, so that what shares a wire in the hardware shares its number.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/units.h"
#include "machine/topology/dimension.h"
#include "machine/topology/wires.h"

namespace orrery::topology {

/// Number of a directed link.
using LinkId = std::uint32_t;

/// Weights count in units of 2^-24: sums of them are exact, hence the same in any order.
inline double counted(double weight) {
  constexpr double kUnits = 1 << 24;
  return std::round(weight * kUnits) / kUnits;
}

/// One link of the route of a message.
struct Hop {
  LinkId link = 0;
  Bandwidth bandwidth{0};
  Time latency{0};  ///< first byte in to first byte out
  friend bool operator==(const Hop&, const Hop&) = default;
};

/// A link that a transfer occupies. `weight` above 0: busy time of this link over the busy time of
/// the transfer's busiest link, both unshared. More than 1 only where the transfer stands for
/// others like it (folding) that use the same link.
struct LinkUse {
  LinkId link = 0;
  double weight = 1;
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

/// The route of a message as one transfer.
struct Route {
  std::vector<LinkUse> links;   ///< each once
  Time latency{0};              ///< of all hops, without software overhead
  Time overhead{0};             ///< software overhead of the outermost dimension crossed
  double seconds_per_byte = 0;  ///< of its busiest link, send_efficiency included
  int dimension = -1;           ///< the outermost dimension crossed; -1 when source = destination
};

/// Directed links of dimensions that may differ in kind, size, bandwidth and latency:
///
///   switch           a link up to the switch and one down from it, each with the device's
///                    bandwidth and half of the dimension's latency
///   fully_connected  a link to each of the size-1 others, 1/(size-1) of the device's bandwidth
///   ring             a link to the next and one to the previous, half the bandwidth each; two
///                    devices have one each way with all of it
///   mesh             the same without the closing links
///
/// and, in addition to these, what several of them share:
///
///   nic       dimensions of one nic have one port per device, up and down, with the bandwidth of
///             the dimension in use; of switches it is their link, others pass it on every hop
///   through   what a device sends or receives over a switch passes its port of the switch inside
///             that `through` names as well
///   node_bandwidth  what the devices of one inner block send or receive over a switch passes one
///             link up or down of this bandwidth
///
/// Messages cross the dimensions in which source and destination differ, innermost first, except
/// that a switch is crossed alone when it is the outermost of them: it reaches every device, as a
/// NIC does. Rings take the shorter route (ties: forward). Bandwidths are those of NetworkDimension
/// times send_efficiency.
///
/// A dimension of kind torus, or a mesh of several extents, must have been expanded (machine.h:
/// expand_shapes). Links are numbered by arithmetic: no memory per device.
class LinkMap {
 public:
  explicit LinkMap(std::vector<NetworkDimension> dimensions);

  /// Messages go over a network of links instead, device d being its host d: route() and links()
  /// are then its own, at its wires' bandwidths (GraphLink::reached) times the send_efficiency of
  /// the outermost dimension crossed. Everything else remains the dimensions'. Nothing when `wires`
  /// has no graph.
  void lay(const Wires& wires);
  /// Returns what lay() laid; null: nothing.
  const LinkGraph* graph() const;
  bool sprays() const;  ///< on it: messages take several routes at once
  /// Returns the routing on what lay() laid, which must be something.
  Routing routing() const;

  std::int64_t devices() const { return devices_; }
  std::size_t links() const { return graph_links_ > 0 ? graph_links_ : links_; }
  const std::vector<NetworkDimension>& dimensions() const { return dimensions_; }
  std::int64_t coordinate(std::int64_t device, int dimension) const;
  /// Returns the number of devices from one coordinate of a dimension to the next: the size of the
  /// block inside it.
  std::int64_t stride(int dimension) const { return lines(dimension).stride; }

  /// Return the number of devices that send or receive over a link, which are a block, and the
  /// first of them.
  std::int64_t owners(LinkId link) const { return bank_of(link).owner; }
  std::int64_t first_owner(LinkId link) const;
  /// Returns the link of the same dimension and port that belongs to `device`.
  LinkId same_of(LinkId link, std::int64_t device) const;
  /// Returns the dimension that a link belongs to (the innermost of those that share it).
  int dimension_of(LinkId link) const;
  /// Links of equal dimension and port have one class, whatever their device; below classes().
  LinkId class_of(LinkId link) const;
  std::size_t classes() const { return classes_; }

  /// Returns the links of a switch.
  LinkId up(std::int64_t device, int dimension) const;
  LinkId down(std::int64_t device, int dimension) const;
  /// Returns the link of a fully connected dimension to the device `ahead` coordinates on, 0 <
  /// ahead < size.
  LinkId direct(std::int64_t device, int dimension, std::int64_t ahead) const;
  /// Says whether the dimension shares something with others beside its own links; its links
  /// follow.
  bool has_port(int dimension) const { return lines(dimension).port >= 0; }
  LinkId port_out(std::int64_t device, int dimension) const;
  LinkId port_in(std::int64_t device, int dimension) const;
  int through(int dimension) const { return lines(dimension).through; }  ///< -1: nothing
  bool has_node(int dimension) const { return lines(dimension).node >= 0; }
  LinkId node_up(std::int64_t device, int dimension) const;
  LinkId node_down(std::int64_t device, int dimension) const;

  /// Returns the outermost dimension in which two devices differ; -1 for one device.
  int outermost(std::int64_t source, std::int64_t destination) const;
  /// Appends the route to `hops`; nothing when source = destination.
  void route(std::int64_t source, std::int64_t destination, std::vector<Hop>& hops) const;
  /// Returns the same as one transfer.
  Route message(std::int64_t source, std::int64_t destination) const;

 private:
  std::shared_ptr<Router> router_;
  std::size_t graph_links_ = 0;

  /// Links numbered together: `ports` for each device, or for each block of `owner` devices.
  struct Bank {
    std::size_t first = 0;
    std::size_t ports = 0;
    std::size_t count = 0;
    std::int64_t owner = 1;
    std::size_t first_class = 0;
    int dimension = 0;
  };
  struct Lines {
    std::int64_t stride = 1;  ///< devices between neighbours
    int own = 0;              ///< banks
    int port = -1;
    int node = -1;
    int through = -1;     ///< dimension
    Bandwidth link{0};    ///< of one link
    Bandwidth device{0};  ///< of all links of a device
    Bandwidth node_rate{0};
  };
  const Lines& lines(int dimension) const { return lines_[static_cast<std::size_t>(dimension)]; }
  const NetworkDimension& shape(int dimension) const {
    return dimensions_[static_cast<std::size_t>(dimension)];
  }
  int add_bank(std::size_t ports, std::int64_t owner, int dimension);
  int shared_port(int dimension);
  const Bank& bank_of(LinkId link) const;
  LinkId link(int bank, std::int64_t device, std::int64_t port) const;

  void cross(std::int64_t from, std::int64_t to, int dimension, std::vector<Hop>& hops) const;
  void cross_switch(std::int64_t from, std::int64_t to, int dimension,
                    std::vector<Hop>& hops) const;
  void cross_line(std::int64_t from, std::int64_t to, int dimension, std::vector<Hop>& hops) const;
  /// Appends one link of its own, between the ports of its ends.
  void pass(std::int64_t from, std::int64_t to, int dimension, LinkId own,
            std::vector<Hop>& hops) const;

  std::vector<NetworkDimension> dimensions_;
  std::vector<Lines> lines_;
  std::vector<Bank> banks_;
  std::int64_t devices_ = 1;
  std::size_t links_ = 0;
  std::size_t classes_ = 0;
};

}  // namespace orrery::topology
