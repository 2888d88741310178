// SPDX-License-Identifier: Apache-2.0
/// Topology files of lines of words: htsim's and ns-3's.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <sstream>

#include "base/letters.h"
#include "base/names.h"
#include "base/words.h"
#include "machine/topology/maker_fields.h"
#include "machine/topology/read.h"

namespace orrery::topology {
namespace {

struct Line {
  int number = 0;
  std::vector<std::string> words;
};

/// Lines with words on them, without comments.
std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  std::istringstream stream{std::string(text)};
  int number = 0;
  for (std::string row; std::getline(stream, row);) {
    ++number;
    Line line{number, words_of<std::string>(std::string_view(row).substr(0, row.find('#')))};
    if (!line.words.empty()) {
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

class HtsimFile {
 public:
  HtsimFile(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  Result<LinkGraph> read() {
    for (const Line& line : lines_of(text_)) {
      take(line);
    }
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    const std::string spec = describe();
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    return parse_topology(spec, file_).map([&](LinkGraph graph) {
      set_wires(graph);
      return graph;
    });
  }

 private:
  static constexpr std::array<std::string_view, 13> kFields{
      "nodes",      "tiers",      "podsize", "downlink_speed_gbps", "downlink_latency_ns",
      "radix_down", "radix_up",   "bundle",  "switch_latency_ns",   "oversubscribed",
      "queue_up",   "queue_down", "tier"};

  void mistake(int line, std::string field, std::string found, std::string expected) {
    error_.add({file_ + ":" + std::to_string(line), std::move(field), std::move(found),
                std::move(expected)});
  }

  void take(const Line& line) {
    const std::string field = lower_case(line.words[0]);
    const std::string found = line.words.size() > 1 ? line.words[1] : "";
    const auto value = parse_number(found);
    if (std::ranges::find(kFields, field) == kFields.end()) {
      const std::vector<std::string> names(kFields.begin(), kFields.end());
      mistake(line.number, line.words[0], "", "unknown field" + did_you_mean(field, names));
    } else if (line.words.size() != 2 || !value || *value < 0 || *value > 1e9) {
      mistake(line.number, line.words[0], found, "one number of 0 or more");
    } else if (field == "tier") {
      tier_ = static_cast<int>(*value);
      if (tier_ > 2) {
        mistake(line.number, line.words[0], found, "0, 1 or 2");
      }
    } else {
      const bool of_file = field == "nodes" || field == "tiers" || field == "podsize";
      values_[{of_file ? -1 : tier_, field}] = {*value, line.number};
    }
  }

  double get(int tier, const std::string& field, double fallback) {
    const auto found = values_.find({tier, field});
    if (found != values_.end()) {
      return found->second.first;
    }
    if (fallback < 0) {
      error_.add({file_,
                  (tier < 0 ? "" : "Tier " + std::to_string(tier) + " ") + field,
                  {},
                  "missing; expected a number"});
      return 1;
    }
    return fallback;
  }
  std::int64_t count(int tier, const std::string& field, double fallback = -1) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(get(tier, field, fallback)));
  }

  std::string describe() {
    const std::int64_t nodes = count(-1, "nodes");
    const std::int64_t tiers = count(-1, "tiers");
    const std::int64_t pod = count(-1, "podsize", static_cast<double>(nodes));
    const std::int64_t hosts = count(0, "radix_down");
    const std::int64_t ups = count(0, "radix_up");
    const std::int64_t bundle = count(1, "bundle", 1);
    const auto text = [](auto... numbers) {
      std::string joined;
      ((joined += (joined.empty() ? "" : "x") + std::to_string(numbers)), ...);
      return joined;
    };
    if (tiers != 2 && tiers != 3) {
      error_.add({file_, "Tiers", std::to_string(tiers), "2 or 3"});
    }
    if (nodes % pod != 0 || pod % hosts != 0 || ups % bundle != 0) {
      error_.add({file_, "Podsize", std::to_string(pod),
                  "a number that divides Nodes and that Radix_Down of tier 0 divides; Bundle "
                  "divides Radix_Up"});
    }
    if (!error_.empty()) {
      return "";
    }
    if (tiers == 2) {
      return "clos:down=" + text(hosts, nodes / hosts) + ",up=" + text(1, ups / bundle) +
             ",parallel=" + text(1, bundle);
    }
    const std::int64_t cores = count(1, "radix_up");
    const std::int64_t core_bundle = count(2, "bundle", 1);
    if (cores % core_bundle != 0) {
      error_.add({file_, "Bundle", std::to_string(core_bundle), "a divisor of Radix_Up of tier 1"});
    }
    return "clos:down=" + text(hosts, pod / hosts, nodes / pod) +
           ",up=" + text(1, ups / bundle, cores / core_bundle) +
           ",parallel=" + text(1, bundle, core_bundle);
  }

  /// The delay of a switch counts with the link that enters it.
  void set_wires(LinkGraph& graph) {
    for (GraphLink& link : graph.links) {
      const std::int32_t from = graph.vertices[static_cast<std::size_t>(link.source)].level;
      const std::int32_t to = graph.vertices[static_cast<std::size_t>(link.target)].level;
      const int tier = std::min(from, to);
      link.bandwidth = Bandwidth(std::max(get(tier, "downlink_speed_gbps", 100), 1e-3) * 125e6);
      link.latency = from_seconds(get(tier, "downlink_latency_ns", 1000) * 1e-9);
      if (to > 0) {
        link.latency += from_seconds(get(to - 1, "switch_latency_ns", 0) * 1e-9);
      }
    }
  }

  std::string_view text_;
  std::string file_;
  Error error_;
  int tier_ = 0;
  std::map<std::pair<int, std::string>, std::pair<double, int>> values_;
};

/// ns-3's and SimAI's: "nodes switches links" or "nodes gpus-per-server nvswitches switches links
/// gpu-type", then the numbers of switches, NVSwitches first, then a line for each link. Links of
/// NVSwitches are nearer than all others.
class Ns3File {
 public:
  Ns3File(std::string_view text, std::string file)
      : lines_(lines_of(text)), file_(std::move(file)) {}

  Result<LinkGraph> read() {
    const Line& head = lines_.front();
    const bool simai = head.words.size() == 6;
    if (!simai && head.words.size() != 3) {
      mistake(head, "", "expected the numbers of nodes, switches and links");
      return fail(std::move(error_));
    }
    const std::int64_t nodes = number(head, 0, kMostVertices);
    nvswitches_ = static_cast<std::size_t>(simai ? number(head, 2, kMostVertices) : 0);
    const auto switches =
        nvswitches_ + static_cast<std::size_t>(number(head, simai ? 3 : 1, kMostVertices));
    const auto links = static_cast<std::size_t>(number(head, simai ? 4 : 2, kMostLinks / 2));
    if (error_.empty() && lines_.size() < 2 + links) {
      mistake(lines_.back(), "",
              "expected a line of switches and " + std::to_string(links) + " links");
    }
    if (error_.empty()) {
      read_vertices(lines_[1], static_cast<std::size_t>(nodes), switches);
      for (std::size_t l = 2; l < 2 + links && error_.empty(); ++l) {
        read_link(lines_[l]);
      }
    }
    if (graph_.hosts == 0 && error_.empty()) {
      mistake(lines_[1], "", "expected nodes that are no switches");
    }
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    return std::move(graph_);
  }

 private:
  void mistake(const Line& line, const std::string& found, const std::string& expected) {
    error_.add({file_ + ":" + std::to_string(line.number), {}, found, expected});
  }
  std::int64_t number(const Line& line, std::size_t word, std::int64_t most) {
    const std::string found = word < line.words.size() ? line.words[word] : "";
    const auto value = parse_integer(found);
    if (!value || *value < 0 || *value > most) {
      mistake(line, found, "a whole number from 0 to " + std::to_string(most));
      return 0;
    }
    return *value;
  }

  void read_vertices(const Line& list, std::size_t nodes, std::size_t switches) {
    std::vector<bool> is_switch(nodes);
    scale_up_.resize(nodes);
    if (list.words.size() != switches) {
      mistake(list, "", "expected the numbers of " + std::to_string(switches) + " switches");
    }
    for (std::size_t w = 0; w < list.words.size() && nodes > 0; ++w) {
      const std::int64_t at = number(list, w, static_cast<std::int64_t>(nodes) - 1);
      is_switch[static_cast<std::size_t>(at)] = true;
      scale_up_[static_cast<std::size_t>(at)] = w < nvswitches_;
    }
    vertex_.resize(nodes);
    for (std::size_t n = 0; n < nodes; ++n) {
      if (!is_switch[n]) {
        vertex_[n] = graph_.add(VertexKind::host, "host" + std::to_string(n), 0);
      }
    }
    for (std::size_t n = 0; n < nodes; ++n) {
      if (is_switch[n]) {
        vertex_[n] = graph_.add(VertexKind::switch_, "switch" + std::to_string(n), 1);
      }
    }
  }

  void read_link(const Line& line) {
    const auto last = static_cast<std::int64_t>(vertex_.size()) - 1;
    const auto from = static_cast<std::size_t>(number(line, 0, last));
    const auto to = static_cast<std::size_t>(number(line, 1, last));
    const std::string rate = line.words.size() > 2 ? line.words[2] : "";
    const std::string delay = line.words.size() > 3 ? line.words[3] : "";
    const auto bandwidth =
        parse_bandwidth(rate.ends_with("bps") ? rate.substr(0, rate.size() - 3) + "bit/s" : rate);
    const auto latency = parse_time(delay);
    if (!bandwidth || *bandwidth <= Bandwidth(0)) {
      mistake(line, rate, "a rate such as 100Gbps");
    }
    if (!latency || *latency < Time(0)) {
      mistake(line, delay, "a delay such as 0.0005ms");
    }
    if (error_.empty() && bandwidth && latency) {
      graph_.connect(vertex_[from], vertex_[to], *bandwidth, *latency);
      const bool near = nvswitches_ == 0 || scale_up_[from] || scale_up_[to];
      graph_.links[graph_.links.size() - 2].length = graph_.links.back().length =
          near ? std::int16_t{1} : kScaleOut;
    }
  }

  std::vector<Line> lines_;
  std::string file_;
  Error error_;
  LinkGraph graph_;
  static constexpr std::int16_t kScaleOut = 16;  ///< more than a route over NVSwitches has links
  std::vector<std::int32_t> vertex_;             ///< by node
  std::vector<bool> scale_up_;                   ///< nodes that are NVSwitches
  std::size_t nvswitches_ = 0;
};

}  // namespace

Result<LinkGraph> read_htsim(std::string_view text, const std::string& file) {
  return HtsimFile(text, file).read();
}

/// Hosts get the numbers of the file in their order: node 5 is host 5 where switches come last.
Result<LinkGraph> read_ns3(std::string_view text, const std::string& file) {
  return Ns3File(text, file).read();
}

}  // namespace orrery::topology
