// SPDX-License-Identifier: Apache-2.0
/// One description of a network, its routers and its load, from YAML, flags or a BookSim file.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"
#include "machine/network/flit/open_loop.h"
#include "machine/network/flit/router_graph.h"
#include "machine/network/flit/routing.h"
#include "machine/network/flit/settings.h"

namespace orrery::flit {

/// Lengths of links that are not alike, in cycles. 0: none of this kind.
struct Distances {
  Cycle local = 0;    ///< of a dragonfly, inside groups
  Cycle global = 0;   ///< between groups
  Cycle express = 0;  ///< express channels of a concentrated mesh
  /// Routers of a flattened butterfly lie in rows of so many, `across` apart in a row and `along`
  /// apart in a column; nodes are as far as their place in the router's tile of across x along.
  std::int32_t columns = 0;
  Cycle across = 1;
  Cycle along = 1;
};

/// StatedAt is where a field is stated, and its name there.
struct StatedAt {
  std::string where;  ///< "run.yaml:3", "--vcs"
  std::string name;   ///< empty: `where` says it
};

struct Experiment {
  std::string topology = "mesh:8x8";
  std::string routing;  ///< empty: default_algorithm()
  std::string pattern = "uniform";
  Cycle link_latency = 0;   ///< of all links between routers; 0: as the topology says (1)
  Cycle node_latency = 0;   ///< of all links to and from nodes
  Distances distances;      ///< of files of BookSim; link_latency and node_latency hold before
  int batch = 0;            ///< packets that every node sends as fast as it can; 0: a constant load
  int outstanding = 0;      ///< of a batch, packets of a node in flight at once; 0: any number
  Bytes flit_bytes{50};     ///< payload of a flit, where messages have bytes
  Bytes packet_bytes{256};  ///< of a packet, behind a head flit
  RouterSettings router;
  Rules rules = Rules::ours;  ///< of files of BookSim its own
  OpenLoopSettings load;
  std::vector<TrafficClass> classes;  ///< empty: one, of load
  /// First and last VC of the packets of requests and replies, by Purpose; used if a class
  /// transacts.
  std::array<std::pair<int, int>, kPurposes> purpose_vcs{};
  std::map<std::string, StatedAt, std::less<>> stated_at;  ///< by field
  bool states_periods = false;     ///< a field of the measurement itself is given
  std::vector<std::string> notes;  ///< what a file asks for that changes nothing here

  template <class V>
  static void fields(V&& visit) {
    using E = Experiment;
    visit("topology", &E::topology, "such as mesh:8x8, torus:4x4x4, fat_tree:k=4,n=3, graph:FILE");
    visit("routing", &E::routing, "dor, o1turn, valiant ...; the topology's own if not given");
    visit("pattern", &E::pattern, "who sends to whom: uniform, transpose, tornado ...");
    visit("link_latency", &E::link_latency,
          "cycles of every link between routers; 0: the topology's");
    visit("node_latency", &E::node_latency, "cycles of every link of a node; 0: the topology's");
    visit("batch", &E::batch, "packets that every node sends at once, instead of a constant load");
    visit("outstanding", &E::outstanding,
          "of a batch, packets of a node that are under way at once; 0: any number");
    visit("flit_bytes", &E::flit_bytes, "of --messages: payload of a flit");
    visit("packet_bytes", &E::packet_bytes, "of --messages: of a packet, behind a head flit");
  }
};

/// Parses a map of the fields of Experiment, RouterSettings and OpenLoopSettings, all optional.
Result<Experiment> parse_experiment(const ConfigNode& node);

/// Parses a configuration file of BookSim 2, unchanged: "key = value;" with // comments. What it
/// does not state has BookSim's default (28f4329). `folder`: of the file, for network_file.
/// Mistakes, by line: unknown keys, settings that there are no such routers for; notes: settings
/// that change nothing here.
Result<Experiment> parse_booksim(std::string_view text, const std::string& file);

/// Mistakes of fields that are out of range, all at once, where they are stated.
Result<void> check(const Experiment& experiment);

/// Ready to run. `graph` stays where it is.
struct Prepared {
  std::unique_ptr<RouterGraph> graph;
  Routing routing;
  Traffic traffic;                            ///< of the first class
  std::vector<Traffic> more_traffic = {};     ///< of the others
  std::vector<Routing> purpose_routing = {};  ///< by Purpose, where a class transacts

  /// Returns the network that runs. `experiment` must outlive it.
  Network network(const Experiment& experiment) const;
};
/// Checks and builds.
Result<Prepared> prepare(const Experiment& experiment);

/// Returns the algorithm of that name, also under BookSim's names (xy_yx, dim_order, min_adapt
/// ...).
Result<Algorithm> algorithm_named(std::string_view name);

/// Offered load in steps of 2^-6: the highest at which run_open_loop is stable, found by bisection
/// of [0, 1], and every run on the way there.
struct Saturation {
  double offered = 0;   ///< flits per node and cycle; 0: not even the lowest is stable
  double accepted = 0;  ///< there
  std::vector<OpenLoopResult> runs;
};
/// Finds saturation, measured with periods of 500 cycles, 2 of warm-up, 8 at most, a limit of 200
/// cycles and a threshold of 10 % unless the experiment states its own.
Saturation find_saturation(const Experiment& experiment, const Prepared& prepared,
                           const RunOptions& options);

}  // namespace orrery::flit
