// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace orrery::flit {

/// A pattern of traffic.h for a value of BookSim 2's `traffic`.
///
///   hotspot({{3,7},{2,1}})    nodes, then their weights; fewer weights: the last one again
///   hotspot({3,7})            node 3 with weight 7, as there
///   hotspot(3), hotspot({{3,7}})  equal weights
///
/// Else: what would be right.
tl::expected<std::string, std::string> pattern_of_booksim(const std::string& traffic);

}  // namespace orrery::flit
