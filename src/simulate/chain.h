// SPDX-License-Identifier: Apache-2.0
/// Nodes that nothing outside touches, taken as one event.
///
/// A chain is a run of nodes of a template, one after the other in its list, of which each starts
/// at the moment when the one before ends:
///
///   * kernels, waits, and collectives of communicators of which one member is simulated, on links
///     that nothing else uses (Transport::undisturbed);
///   * each is on the stream of the one before, or depends on it; on nothing outside, but the
///   first;
///   * nothing outside depends on it, but on the last; the last is on the compute stream, so that
///   no
///     node of that stream could have started earlier;
///   * on every other stream of the chain, nodes only run after a node of the compute stream of
///   their
///     own instance, so that none can overtake the chain.
///
/// So its nodes need no events: the loop walks over them when it has to know (when communication of
/// the rank begins or ends, which changes the speed of kernels and what time counts as) and when
/// the chain ends. Every step is what the loop would have done, in the same arithmetic: results are
/// equal to the picosecond.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "simulate/bind.h"

namespace orrery {

struct Chain {
  std::uint32_t first = 0;  ///< node of the template
  std::uint32_t count = 0;
  /// Time of collectives alone on their links, by place in the chain; 0 of other nodes.
  std::vector<Time> alone;
  /// By what runs beside: time from the beginning of a place to the end of the chain, the host
  /// never in the way; one more at the end.
  std::array<std::vector<Time>, kBesideCount> rest;
  /// The host is not in the way if it is free this long after the chain begins, or earlier.
  Time slack{0};
  /// Streams other than compute, and how many nodes of the chain are on each.
  struct Use {
    StreamIndex stream;
    std::uint32_t first = 0;  ///< node
    std::uint32_t count = 0;
  };
  std::vector<Use> streams;

  std::uint32_t last() const { return first + count - 1; }
};

/// The chains of one template.
struct ChainTable {
  std::vector<Chain> chains;
  std::vector<std::int32_t> at;  ///< by node: the chain that begins there; -1
};

/// A chain under way.
struct ChainRun {
  const Chain* chain = nullptr;
  std::int64_t instance = 0;
  std::uint32_t place = 0;  ///< of the node that runs
  Time node_begin{0};       ///< of a collective: when the host has issued it
  Time node_end{0};         ///< when the node ends at the present speed
  Time end{0};              ///< when the chain does, as announced
  std::uint32_t generation = 0;
  bool host_in_time = false;  ///< the host is nowhere in the way
};

/// `undisturbed`: whether a collective runs alone, whatever else happens, and then its time.
using Undisturbed = std::function<std::optional<Time>(const BoundNode&)>;

/// `serial`: by stream, whether its nodes only run after a compute node of their instance.
ChainTable find_chains(const BoundTemplate& shape, const std::vector<bool>& serial,
                       const Undisturbed& undisturbed);

/// Streams of a program on which every node depends on a node of the compute stream of its
/// template, or follows such a node in the list.
std::vector<bool> serial_streams(const std::vector<Template>& templates, std::size_t streams);

}  // namespace orrery
