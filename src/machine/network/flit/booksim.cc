// SPDX-License-Identifier: Apache-2.0
/// Configuration files of BookSim 2.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/reader.h"
#include "machine/network/flit/booksim_keys.h"
#include "machine/network/flit/booksim_traffic.h"
#include "machine/network/flit/experiment.h"

namespace orrery::flit {
namespace {

struct Entry {
  std::string value;
  int line = 0;
};

class BookSimReader {
 public:
  BookSimReader(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  Result<Experiment> read() {
    tokenize();
    read_router();
    read_load();
    read_topology();
    for (const auto& [key, entry] : entries_) {
      if (const auto only = only_values.find(key);
          only != only_values.end() &&
          std::find(only->second.begin(), only->second.end(), entry.value) == only->second.end()) {
        add(entry.line, key, entry.value, enumerated(only->second) + ": there is no other here");
      } else if (without_effect.contains(key)) {
        result_.notes.push_back(
            fmt::format("{}:{}: {} changes nothing here", file_, entry.line, key));
      } else if (only == only_values.end() && !known_.contains(key)) {
        add(entry.line, key, "", "no setting of that name" + did_you_mean(key, names()));
      }
    }
    if (!mistakes_.empty()) {
      return fail(std::move(mistakes_));
    }
    return std::move(result_);
  }

 private:
  void add(int line, std::string field, std::string found, std::string expected) {
    mistakes_.add({fmt::format("{}:{}", file_, line), std::move(field), std::move(found),
                   std::move(expected)});
  }

  std::vector<std::string> names() const {
    std::vector<std::string> list(known_.begin(), known_.end());
    list.insert(list.end(), without_effect.begin(), without_effect.end());
    return list;
  }

  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

  static std::string trimmed(std::string_view text) {
    while (!text.empty() && is_space(text.front())) {
      text.remove_prefix(1);
    }
    while (!text.empty() && is_space(text.back())) {
      text.remove_suffix(1);
    }
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
      text = text.substr(1, text.size() - 2);
    }
    return std::string(text);
  }

  /// Statements "key = value;" without comments, each with the line of its first character.
  void tokenize() {
    std::string statement;
    int line = 1;
    int begin = 0;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '/' && i + 1 < text_.size() && text_[i + 1] == '/') {
        i = std::min(text_.find('\n', i), text_.size()) - 1;
      } else if (c == '/' && i + 1 < text_.size() && text_[i + 1] == '*') {
        const std::size_t end = text_.find("*/", i + 2);
        if (end == std::string_view::npos) {
          add(line, {}, {}, "the comment does not end");
          return;
        }
        line +=
            static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(i),
                                        text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
        i = end + 1;
      } else if (c == ';') {
        take(statement, begin > 0 ? begin : line);
        statement.clear();
        begin = 0;
      } else {
        begin = begin == 0 && !is_space(c) ? line : begin;
        statement += begin > 0 ? std::string(1, c) : std::string();
        line += c == '\n' ? 1 : 0;
      }
    }
    if (begin > 0) {
      add(begin, {}, trimmed(statement), "a semicolon at its end");
    }
  }

  void take(const std::string& statement, int line) {
    if (statement.empty()) {
      return;
    }
    const std::size_t equals = statement.find('=');
    if (equals == std::string::npos) {
      add(line, {}, trimmed(statement), "key = value;");
      return;
    }
    const std::string key = trimmed(statement.substr(0, equals));
    if (const auto again = entries_.find(key); again != entries_.end()) {
      result_.notes.push_back(
          fmt::format("{}:{}: {} is stated again; the last one holds", file_, line, key));
    }
    entries_[key] = {trimmed(statement.substr(equals + 1)), line};  // the last one holds, as there
  }

  const Entry* find(const std::string& key) {
    known_.insert(key);
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
  }

  /// True where the file states it. Whole numbers may be written as 200.0 or 2e2.
  template <class T>
  bool take_value(const std::string& key, T& into) {
    const Entry* entry = find(key);
    if (entry == nullptr) {
      return false;
    }
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const auto number = parse_number(entry->value);
      if (!number || *number != std::floor(*number) || std::abs(*number) > 9e15 ||
          !std::in_range<T>(static_cast<std::int64_t>(*number))) {
        add(entry->line, key, entry->value, "a whole number");
      } else {
        into = static_cast<T>(*number);
      }
    } else if constexpr (std::is_same_v<T, bool>) {
      if (entry->value != "0" && entry->value != "1") {
        add(entry->line, key, entry->value, "0 or 1");
      }
      into = entry->value == "1";
    } else {
      const auto value = parse_value<T>(entry->value);
      if (!value) {
        add(entry->line, key, entry->value, value.error());
      } else {
        into = *value;
      }
    }
    return true;
  }

  void take_allocator(const std::string& key, Allocator& into) {
    if (const Entry* entry = find(key);
        entry != nullptr && entry->value == "separable_input_first()") {
      into = Allocator::separable_input_first;
    } else {
      take_value(key, into);
    }
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
    take_allocator("vc_allocator", router.vc_allocator);
    take_allocator("sw_allocator", router.sw_allocator);
    take_value("alloc_iters", router.alloc_iters);
    take_value("input_speedup", router.input_speedup);
    take_value("internal_speedup", router.internal_speedup);
    take_value("hold_switch_for_packet", router.hold_switch_for_packet);
    take_value("wait_for_tail_credit", router.wait_for_tail_credit);
  }

  /// "sim_type = batch": every node sends batch_size packets, at most so many outstanding.
  void read_batch() {
    int size = 1000;  // BookSim's default
    int outstanding = 0;
    const bool states_size = take_value("batch_size", size);
    take_value("max_outstanding_requests", outstanding);
    const auto type = entries_.find("sim_type");
    if (type != entries_.end() && type->second.value == "batch") {
      result_.batch = size;
      result_.outstanding = outstanding;
    } else if (states_size) {
      result_.notes.push_back(fmt::format("{}: batch_size changes nothing here", file_));
    }
  }

  void read_load() {
    read_batch();
    OpenLoopSettings& load = result_.load;
    take_value("packet_size", load.packet);
    take_value("const_flits_per_packet", load.packet);
    result_.states_periods |= take_value("sample_period", load.sample_period);
    result_.states_periods |= take_value("warmup_periods", load.warmup_periods);
    result_.states_periods |= take_value("max_samples", load.max_samples);
    result_.states_periods |= take_value("latency_thres", load.latency_limit);
    result_.states_periods |= take_value("stopping_thres", load.stopping_threshold);
    take_value("seed", load.seed);
    bool by_flits = false;
    take_value("injection_rate_uses_flits", by_flits);
    if (take_value("injection_rate", load.rate)) {
      load.rate *= by_flits ? 1 : load.packet;  // BookSim counts packets unless told otherwise
    }
    read_bursts();
    const Entry* perm_seed = find("perm_seed");
    if (const Entry* entry = find("traffic")) {
      if (auto pattern = pattern_of_booksim(entry->value)) {
        result_.pattern = std::move(*pattern);
        if (entry->value == "randperm" && perm_seed != nullptr) {
          result_.pattern += ":" + perm_seed->value;
        }
      } else {
        add(entry->line, "traffic", entry->value, pattern.error());
      }
    }
  }

  /// "injection_process = on_off": burst_alpha and burst_beta, 0.5 as there.
  void read_bursts() {
    double alpha = 0.5;
    double beta = 0.5;
    take_value("burst_alpha", alpha);
    take_value("burst_beta", beta);
    const auto process = entries_.find("injection_process");
    if (process != entries_.end() && process->second.value == "on_off") {
      result_.load.burst_alpha = alpha;
      result_.load.burst_beta = beta;
    }
  }

  int whole(const std::string& key, int fallback) {
    int value = fallback;
    take_value(key, value);
    if (value < 1 || value > 1 << 20) {
      add(find(key)->line, key, find(key)->value, "a whole number above 0");
      value = 1;
    }
    return value;
  }

  void read_topology() {
    const Entry* topology = find("topology");
    find("use_noc_latency");
    const int k = whole("k", 8);
    const int n = whole("n", 2);
    const int c = whole("c", 1);
    for (const char* grid : {"x", "y", "xr", "yr"}) {
      whole(grid, 1);
    }
    const Entry* file = find("network_file");
    const Entry* routing = find("routing_function");
    if (topology == nullptr) {
      add(1, "topology", {}, "missing; expected one such as mesh, torus, fly or anynet");
      return;
    }
    std::string extents;
    for (int i = 0; i < std::min(n, 32); ++i) {
      extents += (i > 0 ? "x" : "") + std::to_string(k);
    }
    const std::string& name = topology->value;
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
    } else if (name == "anynet" && file != nullptr) {
      const std::filesystem::path folder = std::filesystem::path(file_).parent_path();
      const std::filesystem::path path(file->value);
      result_.topology = "graph:" + (path.is_absolute() ? path : folder / path).string();
    } else if (name == "anynet") {
      add(topology->line, "network_file", {}, "missing; expected the list of links");
    } else {
      add(topology->line, "topology", name,
          "one of mesh, torus, cmesh, fattree, fly, flatfly, dragonflynew, qtree, tree4, anynet");
    }
    read_wires(name);
    if (routing != nullptr) {
      read_routing(*routing, name);
    }
  }

  /// "use_noc_latency = 1": longer links on a chip. Not stated: one cycle, as the reference cases.
  void read_wires(const std::string& topology) {
    bool long_links = false;
    if (!take_value("use_noc_latency", long_links) || !long_links) {
      return;
    }
    if (topology == "torus" || topology == "cmesh") {
      result_.link_latency = 2;
    } else if (topology == "flatfly") {
      add(find("use_noc_latency")->line, "use_noc_latency", "1",
          "0: there are no links by distance on a chip");
    }
  }

  void read_routing(const Entry& entry, const std::string& topology) {
    constexpr std::string_view kNoExpress = "_no_express";
    result_.routing = entry.value;
    if (topology == "cmesh" && entry.value.ends_with(kNoExpress)) {
      result_.routing.resize(entry.value.size() - kNoExpress.size());
    }
    if (const auto known = algorithm_named(result_.routing); !known) {
      add(entry.line, "routing_function", entry.value, known.error().mistakes.front().expected);
    }
  }

  std::string_view text_;
  std::string file_;
  std::map<std::string, Entry> entries_;
  std::set<std::string> known_;
  Experiment result_;
  Error mistakes_;
};

}  // namespace

Result<Experiment> parse_booksim(std::string_view text, const std::string& file) {
  return BookSimReader(text, file).read();
}

}  // namespace orrery::flit
