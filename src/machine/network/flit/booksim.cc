// SPDX-License-Identifier: Apache-2.0
/// Configuration files of BookSim 2.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/reader.h"
#include "machine/network/flit/booksim_file.h"
#include "machine/network/flit/booksim_keys.h"
#include "machine/network/flit/booksim_traffic.h"
#include "machine/network/flit/experiment.h"

namespace orrery::flit {
namespace {

class BookSimReader : BookSimFile {
 public:
  BookSimReader(std::string_view text, const std::string& file) : BookSimFile(text, file) {}

  Result<Experiment> read() {
    set_defaults();
    read_router();
    read_load();
    read_topology();
    constexpr std::size_t kMostKept = 10'000;  // of a flood, which no message shows
    for (const auto& [key, entry] : entries()) {
      if (const auto only = only_values.find(key);
          only != only_values.end() &&
          std::find(only->second.begin(), only->second.end(), entry.value) == only->second.end()) {
        add(entry.line, key, entry.value, enumerated(only->second) + ": there is no other here");
      } else if (std::ranges::find(without_effect, key) != without_effect.end()) {
        note(fmt::format("{}:{}: {} changes nothing here", file(), entry.line, key));
      } else if (only == only_values.end() && !known().contains(key) &&
                 mistakes().mistakes.size() < kMostKept) {
        add(entry.line, key, "", "no setting of that name" + meant(key));
      }
    }
    if (!mistakes().empty()) {
      return fail(mistakes());
    }
    result_.notes = notes();
    for (const auto& [key, entry] : entries()) {
      const auto* const ours =
          std::ranges::find(kOurNames, key, &std::pair<std::string_view, std::string_view>::first);
      result_.stated_at[ours == kOurNames.end() ? key : std::string(ours->second)] = {
          fmt::format("{}:{}", file(), entry.line), key};
    }
    return std::move(result_);
  }

 private:
  /// Returns what a setting may mean; nothing of a flood's later ones, which no message shows.
  std::string meant(const std::string& key) const {
    constexpr std::size_t kMostMeant = 100;
    return mistakes().mistakes.size() < kMostMeant ? did_you_mean(key, names()) : "";
  }

  std::vector<std::string> names() const {
    std::vector<std::string> list(known().begin(), known().end());
    list.insert(list.end(), without_effect.begin(), without_effect.end());
    return list;
  }

  /// "islip", or with a parameter "islip(2)", "separable_input_first(matrix)", which alone says the
  /// iterations and the arbiters: alloc_iters and arb_type are not looked at there.
  void take_allocator(const std::string& key, Allocator& into, Arbiter& arbiter) {
    const Entry* entry = find(key);
    int iterations = 1;
    if (entry != nullptr) {
      take_stated_allocator(key, *entry, into, arbiter, iterations);
    }
    if (key == "vc_allocator") {
      result_.router.alloc_iters = iterations;
    } else if (iterations != result_.router.alloc_iters) {
      const bool here = entry != nullptr && iterations != 1;
      const Entry* of = here ? entry : find("vc_allocator");
      add(of->line, here ? key : "vc_allocator", of->value,
          "as many iterations in all allocators: one here");
    }
  }
  void take_stated_allocator(const std::string& key, const Entry& entry, Allocator& into,
                             Arbiter& arbiter, int& iterations) {
    const std::size_t open = std::min(entry.value.find('('), entry.value.size());
    const auto value = parse_value<Allocator>(trimmed(entry.value.substr(0, open)));
    if (!value) {
      add(entry.line, key, entry.value, value.error());
      return;
    }
    into = *value;
    const std::size_t close = entry.value.rfind(')');
    if (open == entry.value.size() || close == std::string::npos || close <= open + 1) {
      return;
    }
    const std::string parameter = entry.value.substr(open + 1, close - open - 1);
    if (into == Allocator::separable_input_first || into == Allocator::separable_output_first) {
      const auto kind = parse_value<Arbiter>(parameter);
      if (!kind) {
        add(entry.line, key, entry.value, kind.error());
      } else {
        arbiter = *kind;
      }
    } else {
      take_text(key, entry, parameter, iterations);
    }
  }

  /// "speculative = 1" and what goes with it; "spec_sw_allocator = prio" there is by priority.
  void read_speculation() {
    RouterSettings& router = result_.router;
    bool speculates = false;
    take_value("speculative", speculates);
    const Entry* allocator = find("spec_sw_allocator");
    if (speculates) {
      router.speculation = Speculation::priority;
    }
    if (allocator != nullptr && allocator->value != "prio") {
      Arbiter arbiter = router.sw_arbiter;
      take_allocator("spec_sw_allocator", router.spec_allocator, arbiter);
      if (speculates) {
        router.speculation = Speculation::separate;
      }
      if (arbiter != router.sw_arbiter) {
        add(allocator->line, "spec_sw_allocator", allocator->value, "the arbiters of sw_allocator");
      }
    }
    take_value("spec_check_elig", router.spec_check_vc);
    take_value("spec_check_cred", router.spec_check_credit);
    take_value("spec_mask_by_reqs", router.spec_mask_by_requests);
  }

  /// Sets what holds where a file is silent: BookSim's own defaults.
  void set_defaults() {
    result_.rules = Rules::booksim;
    RouterSettings& router = result_.router;
    router.vcs = 16;
    router.buffer = 8;
    router.routing_delay = 1;
    router.credit_delay = 0;
    router.vc_allocator = router.sw_allocator = Allocator::islip;
    result_.load.seed = 0;
    result_.load.throughput_threshold = 0.05;
  }

  void read_router() {
    RouterSettings& router = result_.router;
    take_value("num_vcs", router.vcs);
    take_value("vc_buf_size", router.buffer);
    take_value("routing_delay", router.routing_delay);
    take_value("vc_alloc_delay", router.vc_alloc_delay);
    take_value("sw_alloc_delay", router.sw_alloc_delay);
    take_value("st_final_delay", router.st_final_delay);
    take_value("credit_delay", router.credit_delay);
    take_allocator("vc_allocator", router.vc_allocator, router.vc_arbiter);
    take_allocator("sw_allocator", router.sw_allocator, router.sw_arbiter);
    read_speculation();
    take_value("vc_busy_when_full", router.vc_busy_when_full);
    take_value("vc_prioritize_empty", router.vc_prioritize_empty);
    take_value("priority", router.priority);
    take_value("input_speedup", router.input_speedup);
    take_value("output_speedup", router.output_speedup);
    take_value("internal_speedup", router.internal_speedup);
    int waiting = -1;  // flits at an output; without a speed-up there is one at most
    if (take_value("output_buffer_size", waiting) && waiting >= 0 &&
        (router.output_speedup > 1 || router.internal_speedup > 1)) {
      add(find("output_buffer_size")->line, "output_buffer_size", std::to_string(waiting),
          "-1, no limit, with a speed-up");
    }
    take_value("hold_switch_for_packet", router.hold_switch_for_packet);
    take_value("wait_for_tail_credit", router.wait_for_tail_credit);
  }

  /// "sim_type = batch": every node sends batch_size packets, at most so many outstanding.
  void read_batch() {
    int size = 1000;  // BookSim's default
    int outstanding = 0;
    const bool states_size = take_value("batch_size", size);
    take_value("max_outstanding_requests", outstanding);
    if (text("sim_type", "latency") == "batch") {
      result_.batch = size;
      result_.outstanding = outstanding;
    } else if (states_size) {
      note(fmt::format("{}: batch_size changes nothing here", file()));
    }
  }

  void read_load() {
    read_batch();
    OpenLoopSettings& load = result_.load;
    result_.states_periods |= take_value("sample_period", load.sample_period);
    result_.states_periods |= take_value("warmup_periods", load.warmup_periods);
    result_.states_periods |= take_value("max_samples", load.max_samples);
    result_.states_periods |= take_common("latency_thres", load.latency_limit);
    result_.states_periods |= take_common("stopping_thres", load.stopping_threshold);
    take_common("acc_stopping_thres", load.throughput_threshold);
    take_value("seed", load.seed);
    if (auto read = read_booksim_classes(*this, result_.router.vcs)) {
      check_ages(read->classes);
      take_classes(std::move(*read));
    }
  }

  /// A value by class, which is one here: those of all classes are equal.
  bool take_common(const std::string& key, double& into) {
    const Entry* entry = find(key);
    if (entry == nullptr) {
      return false;
    }
    int classes = 1;
    take_value("classes", classes);
    const auto each =
        values(key, into, static_cast<std::size_t>(std::clamp(classes, 1, kMostClasses)));
    if (std::ranges::count(each, each.front()) != std::ssize(each)) {
      add(entry->line, key, entry->value, "one value for all classes");
    }
    into = each.front();
    return true;
  }

  /// Ages are those of a packet's head here, of every flit there.
  void check_ages(const std::vector<TrafficClass>& classes) {
    const Priority priority = result_.router.priority;
    const bool alone = std::ranges::all_of(classes, [](const TrafficClass& of) {
      return !of.transacts && of.sizes == std::vector<int>{1};
    });
    if (!alone && (priority == Priority::local_age || priority == Priority::network_age)) {
      add(find("priority")->line, "priority", std::string(name_of(priority)),
          "one of packets, where these have more than a flit: age, sequence, hop_count ...");
    }
  }

  /// One that is like those of flags and YAML is stated as those.
  void take_classes(BookSimClasses read) {
    OpenLoopSettings& load = result_.load;
    load.rate = read.rate;
    const TrafficClass& first = read.classes.front();
    result_.pattern = first.pattern;
    load.packet = first.sizes.front();
    if (read.classes.size() == 1 && first.sizes.size() == 1 && !first.transacts) {
      load.burst_alpha = first.burst_alpha;
      load.burst_beta = first.burst_beta;
      return;
    }
    result_.classes = std::move(read.classes);
    result_.purpose_vcs = read.purpose_vcs;
  }

  int whole(const std::string& key, int fallback) {
    constexpr int kMost = 1 << 20;
    int value = fallback;
    take_value(key, value);
    if (value < 1 || value > kMost) {
      add(find(key)->line, key, find(key)->value, fmt::format("a whole number, 1 to {}", kMost));
      value = 1;
    }
    return value;
  }

  void read_topology() {
    const Entry* topology = find("topology");
    const int k = whole("k", 8);
    const int n = whole("n", 2);
    const int c = whole("c", 1);
    Distances& distances = result_.distances;
    distances.columns = whole("x", 8);
    whole("y", 8);
    distances.across = whole("xr", 1);
    distances.along = whole("yr", 1);
    const Entry* network = find("network_file");
    const Entry* routing = find("routing_function");
    std::string extents;
    for (int i = 0; i < std::min(n, 32); ++i) {
      extents += (i > 0 ? "x" : "") + std::to_string(k);
    }
    const std::string name = topology == nullptr ? "torus" : topology->value;
    if (name == "mesh" || name == "torus") {
      result_.topology = name + ":" + extents;
      if (c > 1) {
        add(find("c")->line, "c", std::to_string(c), "1: meshes and tori have one node per router");
      }
    } else if (name == "cmesh") {
      // As there, routing decides whether express channels are used.
      const bool express = routing == nullptr || !routing->value.ends_with("_no_express");
      result_.topology = fmt::format("cmesh:{},c={}{}", extents, c, express ? ",express=1" : "");
    } else if (name == "fattree" || name == "fly") {
      result_.topology = fmt::format("{}:k={},n={}", name, k, n);
    } else if (name == "qtree" || name == "tree4") {
      result_.topology = name == "qtree" ? fmt::format("qtree:k={},n={}", k, n) : "tree4:k=4";
      if (k != 4 || n != 3) {
        add(topology->line, "topology", name, "k = 4 and n = 3, as there");
      }
    } else if (name == "flatfly") {
      result_.topology = fmt::format("flatfly:{},c={}", extents, c);
    } else if (name == "dragonflynew" || name == "dragonfly") {
      result_.topology = fmt::format("dragonfly:p={0},a={1},h={0}", k, 2 * k);
    } else if (name == "anynet" && network != nullptr) {
      const std::filesystem::path folder = std::filesystem::path(file()).parent_path();
      const std::filesystem::path path(network->value);
      result_.topology = "graph:" + (path.is_absolute() ? path : folder / path).string();
    } else if (name == "anynet") {
      add(topology->line, "network_file", {}, "missing; expected the list of links");
    } else {
      add(topology->line, "topology", name,
          "one of mesh, torus, cmesh, fattree, fly, flatfly, dragonflynew, qtree, tree4, anynet");
    }
    read_wires(name, k);
    if (routing != nullptr) {
      read_routing(*routing, name);
    }
  }

  /// "use_noc_latency = 1", which holds unless stated: links as long as on a chip. A dragonfly's
  /// are as long as between cabinets whatever it says.
  void read_wires(const std::string& topology, int k) {
    bool on_chip = true;
    take_value("use_noc_latency", on_chip);
    if (topology == "dragonflynew" || topology == "dragonfly") {
      result_.distances.local = 10;
      result_.distances.global = 100;
    } else if (on_chip && (topology == "torus" || topology == "cmesh")) {
      result_.link_latency = 2;
      result_.distances.express = topology == "cmesh" ? k : 0;
    }
    if (!on_chip || topology != "flatfly") {
      result_.distances.columns = 0;
    }
  }

  void read_routing(const Entry& entry, const std::string& topology) {
    constexpr std::string_view kNoExpress = "_no_express";
    result_.routing = entry.value;
    if (topology == "cmesh" && entry.value.ends_with(kNoExpress)) {
      result_.routing.resize(entry.value.size() - kNoExpress.size());
    }
    const auto known = algorithm_named(result_.routing);
    if (!known) {
      add(entry.line, "routing_function", entry.value, known.error().mistakes.front().expected);
    } else if (*known == Algorithm::valiant && topology == "torus") {
      note(fmt::format(
          "{}:{}: valiant: BookSim's takes the VCs of a packet that goes straight on by "
          "a number that nothing sets, so that its cycles may differ",
          file(), entry.line));
    }
  }

  Experiment result_;
};

}  // namespace

Result<Experiment> parse_booksim(std::string_view text, const std::string& file) {
  return BookSimReader(text, file).read();
}

}  // namespace orrery::flit
