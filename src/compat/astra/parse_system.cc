// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/collect.h"
#include "base/lists.h"
#include "base/one_of.h"
#include "base/reader.h"
#include "compat/astra/parse.h"

namespace orrery::astra {
namespace {

constexpr double kTera = 1e12;
constexpr double kMostNanoseconds = 1e12;
constexpr double kMostRate = 1e9;
constexpr std::int64_t kMostChunks = std::int64_t{1} << 20;  // each is simulated on its own
constexpr std::int64_t kLongestDelay = 1'000'000'000;        // ns
constexpr std::int64_t kWidestWindow = 99'999;               // ASTRA-sim reads five digits

/// The keys of one system file, and what to tell about them.
class SystemReader {
 public:
  SystemReader(const ConfigNode& node, std::vector<std::string>& warnings)
      : read_(node), warnings_(warnings) {}

  Result<System> parse(std::vector<std::string>* unknown);

 private:
  void parse_chunks(System& system);
  void parse_endpoint(System& system);
  void parse_compute(System& system);
  void parse_scheduling(System& system);
  void parse_custom(System& system);
  void parse_unread();

  std::vector<Implementation> implementations(const std::string& key);
  Implementation implementation(const std::string& key, const std::string& text);
  std::vector<std::string> texts(const std::string& key);
  std::optional<double> number(const std::string& key, double least, double most);
  std::int64_t whole(const std::string& key, std::int64_t fallback, std::int64_t least,
                     std::int64_t most);
  bool flag(const std::string& key);
  void warn(const std::string& key, const std::string& sentence);
  bool has(const std::string& key) const { return read_.node().find(key) != nullptr; }

  Reader read_;
  std::vector<std::string>& warnings_;
};

void SystemReader::warn(const std::string& key, const std::string& sentence) {
  const ConfigNode* const node = read_.node().find(key);
  warnings_.push_back(
      fmt::format("{}: {}: {}", (node == nullptr ? read_.node() : *node).where(), key, sentence));
}

std::optional<double> SystemReader::number(const std::string& key, double least, double most) {
  const auto value = read_.maybe<double>(key);
  if (value && !(*value >= least && *value <= most)) {
    read_.reject(key, fmt::format("a number from {} to {}", least, most));
    return least;
  }
  return value;
}

/// ASTRA-sim converts 4.0 to 4; 4.5 would silently become 4.
std::int64_t SystemReader::whole(const std::string& key, std::int64_t fallback, std::int64_t least,
                                 std::int64_t most) {
  const auto value = read_.maybe<double>(key);
  if (!value) {
    return fallback;
  }
  const bool fits = *value >= static_cast<double>(least) && *value <= static_cast<double>(most);
  if (!fits || *value != std::floor(*value)) {
    read_.reject(key, fmt::format("a whole number from {} to {}", least, most));
    return fallback;
  }
  return static_cast<std::int64_t>(*value);
}

bool SystemReader::flag(const std::string& key) {
  const auto text = read_.maybe<std::string>(key);
  const bool on = text == "1" || text == "true";
  read_.require(!text || on || text == "0" || text == "false", key, "0 or 1");
  return on;
}

/// Returns a list of texts; a single one counts as a list of one.
std::vector<std::string> SystemReader::texts(const std::string& key) {
  const ConfigNode* const node = read_.node().find(key);
  if (node != nullptr && node->kind == ConfigNode::Kind::scalar) {
    return {read_.optional<std::string>(key, "")};
  }
  return read_.list<std::string>(key);
}

Implementation SystemReader::implementation(const std::string& key, const std::string& text) {
  if (const auto algorithm = value_of<Algorithm>(text)) {
    return {.algorithm = *algorithm};
  }
  const std::size_t digits = text.find_first_of("0123456789");
  const auto base = value_of<Algorithm>(std::string_view(text).substr(0, digits));
  if (digits != std::string::npos && (base == Algorithm::direct || base == Algorithm::one_direct)) {
    const auto window = parse_integer(std::string_view(text).substr(digits));
    read_.require(window && *window >= 1 && *window <= kWidestWindow, key,
                  fmt::format("a window from 1 to {} in '{}'", kWidestWindow, text));
    return {.algorithm = *base, .window = window.value_or(1)};
  }
  read_.reject(
      key, fmt::format("one of {}, direct<W> or oneDirect<W> in place of '{}'{}",
                       all_names<Algorithm>(), text, did_you_mean(text, names_of<Algorithm>())));
  return {};
}

std::vector<Implementation> SystemReader::implementations(const std::string& key) {
  std::vector<Implementation> list =
      mapped(texts(key), [&](const std::string& text) { return implementation(key, text); });
  if (has(key) && list.empty()) {
    read_.reject(key, "at least one implementation");
  }
  return list;
}

void SystemReader::parse_chunks(System& system) {
  system.policy = read_.optional("scheduling-policy", system.policy);
  system.splits = whole("preferred-dataset-splits", system.splits, 1, kMostChunks);
  if (!has("preferred-dataset-splits")) {
    warn("preferred-dataset-splits", "missing; 1 chunk per collective (ASTRA-sim divides by zero)");
  }
  system.active_chunks = whole("active-chunks-per-dimension", system.active_chunks, 1, kMostChunks);
  const auto optimization = read_.optional<std::string>("collective-optimization", "localBWAware");
  system.local_bandwidth_aware = optimization == "localBWAware";
  const std::vector<std::string> known{"localBWAware", "baseline"};
  read_.require(std::count(known.begin(), known.end(), optimization) == 1,
                "collective-optimization",
                "one of localBWAware, baseline" + did_you_mean(optimization, known));
  for (const auto& operation : kNames<Operation>) {
    system.implementation[static_cast<std::size_t>(operation.value)] =
        implementations(std::string(operation.name) + "-implementation");
  }
}

void SystemReader::parse_endpoint(System& system) {
  const auto nanoseconds = [this](const char* key, std::int64_t fallback) {
    return Time(whole(key, fallback, 0, kLongestDelay) * std::int64_t{1000});
  };
  system.endpoint_delay = nanoseconds("endpoint-delay", 10);
  Bus bus{.latency = nanoseconds("L", 0),
          .overhead = nanoseconds("o", 0),
          .gap = nanoseconds("g", 0),
          .gap_per_byte_ns = number("G", 0, kMostNanoseconds).value_or(0),
          .shared = flag("model-shared-bus"),
          .reduction = nanoseconds("local-reduction-delay", 1)};
  if (bus.shared) {
    system.bus = bus;
    return;
  }
  for (const char* const key : {"L", "o", "g", "G", "local-reduction-delay"}) {
    if (has(key)) {
      warn(key, "no effect without model-shared-bus; endpoint-delay applies");
    }
  }
}

void SystemReader::parse_compute(System& system) {
  if (const auto bandwidth = number("local-mem-bw", 0, kMostRate)) {
    read_.require(*bandwidth > 0, "local-mem-bw", "GB/s above 0");
    system.local_memory_bandwidth = Bandwidth(*bandwidth * kGb);
  } else {
    warn("local-mem-bw", "missing; reductions cost nothing (ASTRA-sim divides by zero)");
  }
  if (const auto peak = number("peak-perf", 0, kMostRate)) {
    system.peak = FlopRate(*peak * kTera);
  }
  system.roofline = flag("roofline-enabled");
  system.replay_only = flag("replay-only");
  system.track_local_memory = flag("track-local-mem");
  system.local_memory_trace = read_.maybe<std::string>("local-mem-trace-filename");
  if (system.roofline) {
    read_.require(system.peak && system.peak->value() > 0, "peak-perf",
                  "TFLOPS above 0, as roofline-enabled is on");
    read_.require(system.local_memory_bandwidth.has_value(), "local-mem-bw",
                  "GB/s above 0, as roofline-enabled is on");
  }
}

/// Names that ASTRA-sim's documents and its older parsers know.
template <class E>
struct SchedulingName {
  std::string_view name;
  std::optional<E> meaning;  ///< none: known, but not modelled
};
constexpr std::array kInterDimension{
    SchedulingName<InterDimension>{"baseline", InterDimension::ascending},
    SchedulingName<InterDimension>{"ascending", InterDimension::ascending},
    SchedulingName<InterDimension>{"FIFO", InterDimension::ascending},
    SchedulingName<InterDimension>{"themis", InterDimension::themis},
    SchedulingName<InterDimension>{"offlineGreedy", InterDimension::themis},
    SchedulingName<InterDimension>{"roundRobin", InterDimension::round_robin},
    SchedulingName<InterDimension>{"offlineGreedyFlex", std::nullopt},
};
constexpr std::array kIntraDimension{
    SchedulingName<IntraDimension>{"FIFO", IntraDimension::fifo},
    SchedulingName<IntraDimension>{"baseline", IntraDimension::fifo},
    SchedulingName<IntraDimension>{"SCF", IntraDimension::smallest_chunk_first},
    SchedulingName<IntraDimension>{"smallestFirst", IntraDimension::smallest_chunk_first},
    SchedulingName<IntraDimension>{"RG", std::nullopt},
    SchedulingName<IntraDimension>{"lessRemainingPhaseFirst", std::nullopt},
};

template <class Table>
std::vector<std::string> names_in(const Table& table) {
  return mapped<std::string>(table, [&](const auto& entry) { return entry.name; });
}

void SystemReader::parse_scheduling(System& system) {
  const auto choose = [this](const std::string& key, const auto& table, auto& into) {
    const auto text = read_.maybe<std::string>(key);
    if (!text) {
      return;
    }
    const auto entry = std::find_if(table.begin(), table.end(),
                                    [&](const auto& known) { return known.name == *text; });
    if (entry == table.end()) {
      const std::vector<std::string> names = names_in(table);
      read_.reject(key, one_of(*text, names));
    } else if (entry->meaning) {
      into = *entry->meaning;
    } else {
      warn(key, fmt::format("'{}' is not modelled and ASTRA-sim does not read it; ignored", *text));
    }
  };
  choose("inter-dimension-scheduling", kInterDimension, system.inter_dimension);
  choose("intra-dimension-scheduling", kIntraDimension, system.intra_dimension);
}

void SystemReader::parse_custom(System& system) {
  for (const auto& operation : kNames<Operation>) {
    const std::string key = std::string(operation.name) + "-implementation-custom";
    const std::vector<std::string> prefixes = texts(key);
    if (!has(key)) {
      continue;
    }
    if (prefixes.size() != 1 || prefixes.front().empty()) {
      read_.reject(key, "one prefix of trace files, which covers all dimensions");
      continue;
    }
    system.custom[static_cast<std::size_t>(operation.value)] = prefixes.front();
  }
  system.custom_by_node = read_.maybe<std::string>("per-node-custom-implementation");
}

/// Reads what ASTRA-sim documents but does not read, and what has no effect on times.
void SystemReader::parse_unread() {
  const auto boost = read_.maybe<std::string>("boost-mode");
  if (boost) {
    warn("boost-mode", "ignored, as ASTRA-sim does not read it");
  }
  if (flag("trace-enabled")) {
    warn("trace-enabled", "ignored: no trace of the run is written");
  }
}

Result<System> SystemReader::parse(std::vector<std::string>* unknown) {
  System system;
  parse_chunks(system);
  parse_endpoint(system);
  parse_compute(system);
  parse_scheduling(system);
  parse_custom(system);
  parse_unread();
  if (unknown != nullptr) {
    read_.warn_of_unknown(*unknown);
  }
  return read_.finish(std::move(system));
}

bool spans_all(const Implementation& implementation) {
  return implementation.algorithm == Algorithm::one_ring ||
         implementation.algorithm == Algorithm::one_direct ||
         implementation.algorithm == Algorithm::one_halving_doubling;
}

}  // namespace

Result<System> parse_system(const ConfigNode& node, std::vector<std::string>& warnings,
                            std::vector<std::string>* unknown) {
  return SystemReader(node, warnings).parse(unknown);
}

Result<void> check_lists(const ConfigNode& node, const System& system, std::size_t dimensions) {
  Error error;
  for (const auto& operation : kNames<Operation>) {
    const auto& list = system.implementation[static_cast<std::size_t>(operation.value)];
    const std::string key = std::string(operation.name) + "-implementation";
    const ConfigNode* const field = node.find(key);
    if (list.empty() || field == nullptr || (list.size() == 1 && spans_all(list.front()))) {
      continue;
    }
    if (list.size() != dimensions) {
      error.add({field->where(), key, fmt::format("{} entries", list.size()),
                 fmt::format("one for each of the network's {} dimensions, or a single one*",
                             dimensions)});
    } else if (std::any_of(list.begin() + 1, list.end(), spans_all) && !spans_all(list.front())) {
      error.add({field->where(), key, "one* after others", "one* alone: it spans all dimensions"});
    }
  }
  return or_mistakes(std::move(error));
}

}  // namespace orrery::astra
