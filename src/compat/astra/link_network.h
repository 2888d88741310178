// SPDX-License-Identifier: Apache-2.0
/// The network files of ASTRA-sim's back-ends that simulate single links, ns-3 and htsim.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "compat/astra/config.h"

namespace orrery::astra {

struct LinkNetwork {
  std::vector<Dimension> dimensions;  ///< that collectives run over, innermost first
  std::string topology;               ///< file that states the links (topology/read.h)
};

/// Loads a network of links. `logical`: {"logical-dims": ["8", "2"]}, the sizes of the dimensions.
/// `physical`: a topology of ns-3's or htsim's, or ns-3's configuration, whose line TOPOLOGY_FILE
/// names one, seen from its folder.
///
/// The dimensions are switches on the hosts' cables, for algorithms and closed forms: each with the
/// bandwidth of the slowest NPU, all its cables together, and the latency of the farthest of the
/// routes over the fewest links from NPU 0.
///
/// Ignores: ns-3's other keys (congestion control, buffers), which are told as a warning.
///
/// Source: ASTRA-sim 2's ns-3 front-end and its examples.
Result<LinkNetwork> load_link_network(const std::string& logical, const std::string& physical,
                                      std::vector<std::string>& warnings);

}  // namespace orrery::astra
