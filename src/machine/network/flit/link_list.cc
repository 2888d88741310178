// SPDX-License-Identifier: Apache-2.0
/// BookSim's list of links.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/collect.h"
#include "base/reader.h"
#include "base/words.h"
#include "machine/network/flit/router_graph.h"

namespace orrery::flit {
namespace {

constexpr Cycle kLongestLatency = 1'000'000;

/// A line's words, read one after the other.
class LinkListReader {
 public:
  explicit LinkListReader(std::string file) : file_(std::move(file)) {}

  void read_line(std::string_view line, int number) {
    line_ = number;
    const std::vector<std::string_view> words = words_of(line, " \t\r");
    if (words.empty() || words[0].starts_with('#') || words[0].starts_with("//")) {
      return;
    }
    const auto head = end_of(words, 0);
    if (!head) {
      return;
    }
    if (words.size() < 4) {
      add("", "a link: 'router NUMBER' or 'node NUMBER' after the first one");
    }
    for (std::size_t i = 2; i < words.size();) {
      const auto end = end_of(words, i);
      if (!end) {
        return;
      }
      i += 2;
      Cycle latency = 1;
      const bool has_latency = i < words.size() && words[i] != "router" && words[i] != "node";
      if (has_latency) {
        const auto value = parse_value<std::int64_t>(words[i]);
        if (!value || *value < 1 || *value > kLongestLatency) {
          add(words[i], fmt::format("a latency of 1 to {} cycles", kLongestLatency));
        }
        latency = value.value_or(1);
        ++i;
      }
      link(*head, *end, latency);
    }
  }

  Result<RouterGraph> finish() {
    RouterGraph graph;
    graph.name = "graph:" + file_;
    std::map<std::int32_t, std::int32_t> places;  // of routers by their number
    for (const std::int32_t router : routers_) {
      places.emplace(router, graph.routers++);
      graph.router_names.push_back(std::to_string(router));
    }
    for (const auto& [ends, latency] : links_) {
      graph.channels.push_back({places.at(ends.first), places.at(ends.second), latency});
    }
    std::int32_t next = 0;
    line_ = 0;
    for (const auto& [node, place] : nodes_) {
      if (node != next++) {
        add(std::to_string(node), fmt::format("nodes numbered from 0 on; {} is missing", next - 1));
        break;
      }
      graph.nodes.push_back({places.at(place.first), places.at(place.first), place.second});
    }
    if (graph.nodes.empty() && mistakes_.empty()) {
      add("", "at least one node");
    }
    return or_mistakes(std::move(graph), std::move(mistakes_));
  }

 private:
  struct End {
    bool is_router = false;
    std::int32_t number = 0;
  };

  void add(std::string_view found, std::string expected) {
    mistakes_.add({line_ > 0 ? fmt::format("{}:{}", file_, line_) : file_,
                   {},
                   std::string(found),
                   std::move(expected)});
  }

  std::optional<End> end_of(const std::vector<std::string_view>& words, std::size_t at) {
    const bool is_router = words[at] == "router";
    if (!is_router && words[at] != "node") {
      add(words[at], "'router' or 'node', then its number");
      return std::nullopt;
    }
    const auto number = at + 1 < words.size() ? parse_value<std::int32_t>(words[at + 1])
                                              : tl::make_unexpected(std::string());
    if (!number || *number < 0 || *number >= kMostRouters) {
      add(at + 1 < words.size() ? words[at + 1] : "",
          fmt::format("a number from 0 to {}", kMostRouters - 1));
      return std::nullopt;
    }
    if (is_router) {
      routers_.insert(*number);
    }
    return End{is_router, *number};
  }

  void link(const End& a, const End& b, Cycle latency) {
    if (!a.is_router && !b.is_router) {
      add("", "a router at one end: nodes are not linked to each other");
    } else if (a.is_router && b.is_router) {
      if (a.number == b.number) {
        add(std::to_string(a.number), "another router: a link does not lead back");
        return;
      }
      links_[{a.number, b.number}] = latency;
      links_.try_emplace({b.number, a.number}, 1);
    } else {
      const End& node = a.is_router ? b : a;
      const End& router = a.is_router ? a : b;
      const auto [place, is_new] = nodes_.try_emplace(node.number, router.number, latency);
      if (!is_new && place->second.first != router.number) {
        add(std::to_string(node.number), "a node at one router");
      }
    }
  }

  std::string file_;
  int line_ = 0;
  Error mistakes_;
  std::set<std::int32_t> routers_;
  std::map<std::pair<std::int32_t, std::int32_t>, Cycle> links_;  ///< by source and target
  std::map<std::int32_t, std::pair<std::int32_t, Cycle>> nodes_;
};

}  // namespace

Result<RouterGraph> parse_link_list(std::string_view text, const std::string& file) {
  LinkListReader reader(file);
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.read_line(text.substr(0, end), ++number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish();
}

}  // namespace orrery::flit
