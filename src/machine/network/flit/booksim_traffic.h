// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "machine/network/flit/booksim_file.h"
#include "machine/network/flit/traffic_class.h"

namespace orrery::flit {

/// Returns a pattern of traffic.h for a value of BookSim 2's `traffic`.
///
///   hotspot({{3,7},{2,1}})    nodes, then their weights; fewer weights: the last one again
///   hotspot({3,7})            node 3 with weight 7, as there
///   hotspot(3), hotspot({{3,7}})  equal weights
///
/// Else: what would be right.
tl::expected<std::string, std::string> pattern_of_booksim(const std::string& traffic);

/// The classes that a file states: `classes`, and of each, as a value or as {one, another}, its
/// traffic, injection, sizes of packets and of requests and replies.
struct BookSimClasses {
  double rate = 0.1;  ///< of all, flits per node and cycle
  std::vector<TrafficClass> classes;
  std::array<std::pair<int, int>, kPurposes> purpose_vcs{};  ///< of `vcs` VCs
};
/// Returns the classes of traffic; nothing if there are mistakes, which are added to the file's.
std::optional<BookSimClasses> read_booksim_classes(BookSimFile& file, int vcs);

}  // namespace orrery::flit
