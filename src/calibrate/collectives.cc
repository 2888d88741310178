// SPDX-License-Identifier: Apache-2.0
#include "calibrate/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/lists.h"
#include "base/names.h"
#include "calibrate/impossible_times.h"
#include "calibrate/minimize.h"

namespace orrery::calibrate {
namespace {

constexpr std::size_t kLeastPointsToHoldOut = 50;
constexpr std::uint64_t kFolds = 5;
constexpr int kGenerations = 400;

struct Point {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  Bytes bytes{0};
  double seconds = 0;
  std::vector<collective::Extent> extents;

  int outermost() const { return extents.back().dimension; }
  bool exchanges() const {
    return kind == graph::CollectiveKind::all_to_all || kind == graph::CollectiveKind::send_recv;
  }
};

double predicted(const Point& point, const machine::Machine& machine) {
  return to_seconds(collective::collective_time(
      point.kind, point.bytes, point.extents, collective::CollectiveAlgorithm::automatic, machine));
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Returns one point per kind, group and half octave: at the median size and its median time.
std::vector<Point> thinned(const std::vector<CollectiveMeasurement>& measurements,
                           const machine::Machine& machine) {
  using Key = std::tuple<graph::CollectiveKind, std::int64_t, std::int64_t, int>;
  std::map<Key, std::vector<const CollectiveMeasurement*>> bins;
  for (const CollectiveMeasurement& measured : measurements) {
    const double octave = std::log2(static_cast<double>(measured.bytes.value()));
    bins[{measured.kind, measured.members, measured.per_node,
          static_cast<int>(std::lround(2 * octave))}]
        .push_back(&measured);
  }
  std::vector<Point> points;
  for (const auto& [key, bin] : bins) {
    std::vector<double> sizes;
    std::vector<double> times;
    for (const CollectiveMeasurement* measured : bin) {
      sizes.push_back(static_cast<double>(measured->bytes.value()));
      times.push_back(to_seconds(measured->time));
    }
    points.push_back({.kind = bin.front()->kind,
                      .bytes = Bytes(std::llround(median_of(sizes))),
                      .seconds = median_of(times),
                      .extents = group_of(*bin.front(), machine)});
  }
  return points;
}

/// A coefficient of a protocol as the fit sees it: a logarithm in a box around the machine's value.
/// Protocols differ in kind; a wider box lets them change places and get stuck there.
struct ProtocolCoefficient {
  double (*get)(const topology::Protocol& protocol);
  void (*set)(topology::Protocol& protocol, double value);
  double range;  ///< the greatest factor up and down
};
constexpr std::array kCoefficients{
    ProtocolCoefficient{[](const topology::Protocol& p) { return to_seconds(p.launch); },
                        [](topology::Protocol& p, double value) { p.launch = from_seconds(value); },
                        8},
    ProtocolCoefficient{
        [](const topology::Protocol& p) { return to_seconds(p.step_latency); },
        [](topology::Protocol& p, double value) { p.step_latency = from_seconds(value); }, 8},
    ProtocolCoefficient{
        [](const topology::Protocol& p) { return p.efficiency; },
        [](topology::Protocol& p, double value) { p.efficiency = std::min(value, 1.5); }, 4},
    ProtocolCoefficient{[](const topology::Protocol& p) { return p.local_copy; },
                        [](topology::Protocol& p, double value) { p.local_copy = value; }, 5},
};

constexpr int kProtocolDigits = 3;

using List = topology::ProtocolList;

/// Protocols with a local copy are alike to the search, and those without one: it may have changed
/// them about. Names go by efficiency, in the order of before.
void keep_order(const std::vector<topology::Protocol>& before, bool copies,
                std::vector<topology::Protocol>& after) {
  std::vector<std::size_t> places;
  std::vector<topology::Protocol> found;
  for (std::size_t i = 0; i < after.size(); ++i) {
    if ((after[i].local_copy > 0) == copies) {
      places.push_back(i);
      found.push_back(after[i]);
    }
  }
  const auto by_efficiency = [](const topology::Protocol& a, const topology::Protocol& b) {
    return a.efficiency < b.efficiency;
  };
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    return by_efficiency(before[a], before[b]);
  });
  std::stable_sort(found.begin(), found.end(), by_efficiency);
  for (std::size_t i = 0; i < places.size(); ++i) {
    found[i].name = before[places[i]].name;
    after[places[i]] = found[i];
  }
}

/// A search over the coefficients that are not 0 in some lists of one dimension.
class Search {
 public:
  Search(machine::Machine machine, int dimension, std::vector<List> lists,
         std::vector<Point> points)
      : machine_(std::move(machine)),
        dimension_(static_cast<std::size_t>(dimension)),
        lists_(std::move(lists)),
        points_(std::move(points)) {
    each_free([&](const ProtocolCoefficient& coefficient, topology::Protocol& protocol) {
      const double middle = std::log(coefficient.get(protocol));
      box_.push_back({middle - std::log(coefficient.range), middle + std::log(coefficient.range)});
      start_.push_back(middle);
    });
  }

  machine::Machine run() {
    const machine::Machine before = machine_;
    if (!points_.empty() && !box_.empty()) {
      const Loss loss = [&](std::span<const double> logs) { return loss_of(logs); };
      std::vector<double> best = minimize(loss, box_, start_, kGenerations).at;
      std::transform(best.begin(), best.end(), best.begin(),
                     [](double log) { return std::log(rounded(std::exp(log), kProtocolDigits)); });
      assign(best);
      for (const List list : lists_) {
        for (const bool copies : {false, true}) {
          keep_order(before.network[dimension_].*list, copies, machine_.network[dimension_].*list);
        }
      }
    }
    return machine_;
  }

 private:
  template <class Visit>
  static void each_free(topology::Protocol& protocol, Visit visit) {
    for (const ProtocolCoefficient& coefficient : kCoefficients) {
      if (coefficient.get(protocol) > 0) {
        visit(coefficient, protocol);
      }
    }
  }

  template <class Visit>
  void each_free(Visit visit) {
    for (const List list : lists_) {
      for (topology::Protocol& protocol : machine_.network[dimension_].*list) {
        each_free(protocol, visit);
      }
    }
  }

  void assign(std::span<const double> logs) {
    std::size_t i = 0;
    each_free([&](const ProtocolCoefficient& coefficient, topology::Protocol& protocol) {
      coefficient.set(protocol, std::exp(logs[i++]));
    });
  }

  double loss_of(std::span<const double> logs) {
    assign(logs);
    double sum = 0;
    for (const Point& point : points_) {
      const double error = std::abs(std::log(predicted(point, machine_) / point.seconds));
      sum += std::min(kLargestError, error);
    }
    return sum / static_cast<double>(points_.size());
  }

  machine::Machine machine_;
  std::size_t dimension_;
  std::vector<List> lists_;
  std::vector<Point> points_;
  std::vector<Bounds> box_;
  std::vector<double> start_;
};

/// Returns where a fit of a dimension without protocols starts.
std::vector<topology::Protocol> usual_protocols() {
  return {{.name = "LL", .launch = 8_us, .step_latency = 1_us, .efficiency = 0.03},
          {.name = "LL128",
           .launch = 10_us,
           .step_latency = 1_us,
           .efficiency = 0.4,
           .local_copy = 0.8},
          {.name = "Simple",
           .launch = 30_us,
           .step_latency = 2_us,
           .efficiency = 0.75,
           .local_copy = 0.5}};
}

/// Every dimension after those inside it, each from the points that go no further.
machine::Machine fit_all(machine::Machine machine, const std::vector<Point>& points) {
  for (int d = 0; d < static_cast<int>(machine.network.size()); ++d) {
    for (const bool exchange : {false, true}) {
      topology::NetworkDimension& dimension = machine.network[static_cast<std::size_t>(d)];
      const bool own = exchange && !dimension.exchange.empty();
      std::vector<Point> here;
      std::copy_if(points.begin(), points.end(), std::back_inserter(here), [&](const Point& p) {
        return p.outermost() == d &&
               (exchange ? own && p.exchanges() : !p.exchanges() || dimension.exchange.empty());
      });
      if (here.empty()) {
        continue;
      }
      if (!exchange && dimension.protocols.empty()) {
        dimension.protocols = usual_protocols();
      }
      const std::vector<List> lists =
          exchange ? std::vector<List>{&topology::NetworkDimension::exchange}
                   : std::vector<List>{&topology::NetworkDimension::protocols,
                                       &topology::NetworkDimension::in_switch};
      machine = Search(std::move(machine), d, lists, std::move(here)).run();
    }
  }
  return machine;
}

/// FNV-1a over kind, group and size.
std::uint64_t hash_of(const Point& point) {
  std::uint64_t hash = 14695981039346656037U;
  const auto mix = [&](std::int64_t number) {
    hash = (hash ^ static_cast<std::uint64_t>(number)) * 1099511628211U;
  };
  mix(static_cast<std::int64_t>(point.kind));
  mix(point.bytes.value());
  for (const collective::Extent& extent : point.extents) {
    mix(extent.dimension);
    mix(extent.count);
  }
  return hash ^ (hash >> 29U);
}

CollectiveError error_of(const std::vector<Point>& points, const machine::Machine& machine) {
  CollectiveError error{.points = points.size()};
  if (points.empty()) {
    return error;
  }
  std::vector<double> errors = mapped(points, [&](const Point& point) {
    return std::abs(predicted(point, machine) / point.seconds - 1);
  });
  error.median = median_of(errors);
  error.mean =
      std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
  error.largest = *std::max_element(errors.begin(), errors.end());
  return error;
}

CollectiveError held_out_error(const machine::Machine& machine, const std::vector<Point>& points) {
  std::vector<Point> kept;
  std::vector<Point> held;
  for (const Point& point : points) {
    (hash_of(point) % kFolds == 0 ? held : kept).push_back(point);
  }
  return points.size() < kLeastPointsToHoldOut ? CollectiveError()
                                               : error_of(held, fit_all(machine, kept));
}

std::vector<ProtocolFit> changes(const machine::Machine& before, machine::Machine& after,
                                 const std::string& source) {
  std::vector<ProtocolFit> fits;
  for (std::size_t d = 0; d < before.network.size(); ++d) {
    for (const auto& [name, list] : topology::kProtocolLists) {
      if (before.network[d].*list == after.network[d].*list) {
        continue;
      }
      const std::string path = fmt::format("network.{}.{}", before.network[d].name, name);
      std::erase_if(after.origins,
                    [&](const auto& entry) { return entry.first.starts_with(path + "."); });
      after.origins[path] = "measured: " + source;
      fits.push_back({path, before.network[d].*list, after.network[d].*list});
    }
  }
  return fits;
}

void check_groups(const std::vector<CollectiveMeasurement>& measurements,
                  const machine::Machine& machine, Error& mistakes) {
  std::set<std::pair<std::int64_t, std::int64_t>> groups;
  for (const CollectiveMeasurement& measured : measurements) {
    const bool fresh = groups.emplace(measured.members, measured.per_node).second;
    if (fresh && group_of(measured, machine).empty()) {
      mistakes.add(
          {{},
           "n_gpus",
           measured.per_node == 0
               ? std::to_string(measured.members)
               : fmt::format("{}, {} in a node", measured.members, measured.per_node),
           fmt::format("a group of {} ({})", machine.name, machine::dimension_sizes(machine))});
    }
  }
  if (measurements.empty()) {
    mistakes.add(Mistake{{}, {}, {}, "no measurements: expected at least one"});
  }
}

std::size_t coefficients_of(const std::vector<ProtocolFit>& fits) {
  constexpr std::size_t kOfAProtocol = 4;  // launch, step latency, efficiency, local copy
  std::size_t count = 0;
  for (const ProtocolFit& fit : fits) {
    count += kOfAProtocol * fit.after.size();
  }
  return count;
}

}  // namespace

std::vector<collective::Extent> group_of(const CollectiveMeasurement& measured,
                                         const machine::Machine& machine) {
  if (measured.per_node == 0 || measured.per_node == measured.members) {
    const auto cut =
        machine::with_devices(machine, measured.members);  // part of a rack stays inside it
    return cut ? collective::extents_of(1, measured.members, *cut)
               : std::vector<collective::Extent>{};
  }
  if (machine.network.size() < 2 || measured.members % measured.per_node != 0) {
    return {};
  }
  const std::int64_t nodes = measured.members / measured.per_node;
  const topology::NetworkDimension& outer = machine.network.back();
  if (outer.size > 0 && nodes > outer.size) {
    return {};
  }
  std::vector<collective::Extent> extents = collective::extents_of(1, measured.per_node, machine);
  if (!extents.empty() &&
      extents.back().dimension + 1 >= static_cast<int>(machine.network.size())) {
    return {};
  }
  extents.push_back({static_cast<int>(machine.network.size()) - 1, nodes, 1});
  return extents;
}

CollectiveError collective_error(const std::vector<CollectiveMeasurement>& measurements,
                                 const machine::Machine& machine) {
  std::vector<Point> points;
  points.reserve(measurements.size());
  for (const CollectiveMeasurement& measured : measurements) {
    points.push_back(
        {measured.kind, measured.bytes, to_seconds(measured.time), group_of(measured, machine)});
  }
  return error_of(points, machine);
}

Result<CollectiveFit> calibrate_collectives(const machine::Machine& machine,
                                            const std::vector<CollectiveMeasurement>& measurements,
                                            const std::string& source) {
  Error mistakes;
  check_groups(measurements, machine, mistakes);
  if (mistakes.empty()) {
    mistakes.add(impossible_times(measurements, machine, source));
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  const std::vector<Point> points = thinned(measurements, machine);
  CollectiveFit fit;
  fit.machine = fit_all(machine, points);
  fit.before = collective_error(measurements, machine);
  fit.after = collective_error(measurements, fit.machine);
  fit.held_out = held_out_error(machine, points);
  fit.fits = changes(machine, fit.machine, source);
  if (points.size() < coefficients_of(fit.fits)) {
    fit.warnings.push_back(
        fmt::format("{} points do not determine {} coefficients; what they leave open is of no "
                    "meaning",
                    points.size(), coefficients_of(fit.fits)));
  }
  return fit;
}

}  // namespace orrery::calibrate
