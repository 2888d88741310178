// SPDX-License-Identifier: Apache-2.0
/// A faults file says what breaks when: slow ranks, links with less bandwidth or none, nodes that
/// are gone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "base/units.h"

namespace orrery::faults {

enum class FaultKind : std::uint8_t { straggler, link, node };
constexpr auto named_values(FaultKind) {
  return std::to_array<Named<FaultKind>>({
      {FaultKind::straggler, "straggler", "kernels of `ranks` take `factor` times as long"},
      {FaultKind::link, "link", "`links` have `bandwidth_share` of their bandwidth; 0: lost"},
      {FaultKind::node, "node", "the ranks of `nodes` do nothing, and their links carry nothing"},
  });
}

/// One entry of a file: at a time, or at random times.
struct Fault {
  FaultKind kind = FaultKind::straggler;
  /// Ranks ("3", "8-15", "all"), links (what Places knows) or nodes, by kind.
  std::vector<std::string> places;
  double value = 1;          ///< straggler: >= 1; link: bandwidth that is left, 0 to below 1
  Time at{0};                ///< without an mtbf
  Time lasts = Time::max();  ///< for ever
  /// Mean time between failures of each place, above 0 where given: gaps are exponential, the next
  /// begins when the fault is over. Hours, since Time ends at 106 days.
  double mtbf_hours = 0;
  std::string where;  ///< in the file
};

/// A faults file.
struct FaultPlan {
  std::vector<Fault> faults;
  std::uint64_t seed = 0;
  Time until{0};  ///< random faults begin before
  /// The time from a link's loss or return until messages take other ways. Assumed: detection by
  /// three missed hellos of 30 ms.
  Time reroute_after = 100_ms;
  /// Says whether all flows are planned anew then, not only those that have lost their routes; it
  /// concerns bare flows under colour.
  bool recolour = false;
  /// Times that telemetry has of messages carry this noise: sigma of the logarithm of a factor.
  double measurement_noise = 0;

  bool empty() const { return faults.empty(); }
};

/// Mistakes: fields missing, unknown or out of range, all at once.
Result<FaultPlan> load_faults(const std::string& file);
Result<FaultPlan> parse_faults(const std::string& text, const std::string& file);

/// Places are what there is that may break.
struct Places {
  std::int64_t ranks = 0;
  std::int64_t ranks_of_node = 1;  ///< node n holds ranks n * ranks_of_node and on
  bool compute = true;             ///< whether ranks compute: bare flows do not
  std::string no_links;            ///< why links cannot change, if so
  std::size_t links = 0;
  std::function<std::vector<std::size_t>(const std::string& name)> links_named;
  std::function<std::vector<std::size_t>(std::int64_t rank)> links_of_rank;
  std::string link_example;  ///< a name, for messages
};

/// A change of the speed of a rank or link, from `at` on.
struct Change {
  Time at{0};
  bool link = false;       ///< else a rank
  std::int64_t place = 0;  ///< number of the link or rank
  /// A rank's kernels take so many times as long; infinity: it does nothing. A link has this share
  /// of its bandwidth.
  double value = 1;
};

struct Schedule {
  std::vector<Change> changes;  ///< by (at, link, place)
  Time reroute_after{0};
  bool recolour = false;
  /// Losses are lost for good; in the order of time: "rank 3 is lost at 1 ms".
  std::vector<std::string> losses;
};

/// Faults of one place at once multiply. Equal plans, places and seeds give equal schedules.
/// Mistakes: places that there are not; faults of links where they cannot change.
Result<Schedule> schedule_of(const FaultPlan& plan, const Places& places);

}  // namespace orrery::faults
