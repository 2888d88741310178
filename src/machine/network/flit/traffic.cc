// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/traffic.h"

#include <fmt/format.h>

#include <bit>
#include <functional>
#include <numeric>

#include "base/collect.h"
#include "base/file.h"
#include "base/one_of.h"
#include "base/reader.h"
#include "base/words.h"

namespace orrery::flit {
namespace {

Error wrong_pattern(std::string_view found, std::string expected) {
  return Error(Mistake{"pattern", {}, std::string(found), std::move(expected)});
}

/// Numbers of nodes, all mistakes at once.
std::vector<std::uint32_t> node_list(std::string_view what,
                                     const std::vector<std::string_view>& words,
                                     std::uint32_t nodes, Error& mistakes) {
  std::vector<std::uint32_t> list;
  for (const std::string_view word : words) {
    const auto node = parse_value<std::uint32_t>(word);
    if (!node || *node >= nodes) {
      mistakes.add({std::string(what),
                    {},
                    std::string(word),
                    fmt::format("a node from 0 to {}", nodes - 1)});
    } else {
      list.push_back(*node);
    }
  }
  return list;
}

std::uint32_t by_bits(Pattern pattern, std::uint32_t source, unsigned bits) {
  const std::uint32_t mask = (1U << bits) - 1;
  switch (pattern) {
    case Pattern::transpose:
      return ((source >> (bits / 2)) | (source << (bits / 2))) & mask;
    case Pattern::bit_complement:
      return ~source & mask;
    case Pattern::shuffle:
      return bits == 0 ? 0 : ((source << 1U) | (source >> (bits - 1))) & mask;
    default: {
      std::uint32_t reversed = 0;
      for (unsigned i = 0; i < bits; ++i) {
        reversed |= ((source >> i) & 1U) << (bits - 1 - i);
      }
      return reversed;
    }
  }
}

/// Returns the targets of all sources.
Result<std::vector<std::uint32_t>> targets_by_bits(Pattern pattern, std::string_view name,
                                                   std::uint32_t nodes) {
  const auto bits = static_cast<unsigned>(std::bit_width(nodes) - 1);
  if (!std::has_single_bit(nodes) || (pattern == Pattern::transpose && bits % 2 != 0)) {
    return fail(
        wrong_pattern(name, fmt::format("a pattern without bits: {} nodes are no {}power of two",
                                        nodes, pattern == Pattern::transpose ? "even " : "")));
  }
  std::vector<std::uint32_t> targets;
  for (std::uint32_t source = 0; source < nodes; ++source) {
    targets.push_back(by_bits(pattern, source, bits));
  }
  return targets;
}

/// Moves every digit on by what `ahead` says of its extent.
std::uint32_t by_digits(std::uint32_t source, const std::vector<std::int32_t>& extents,
                        const std::function<std::int32_t(std::int32_t)>& ahead) {
  std::uint32_t target = 0;
  std::uint32_t weight = 1;
  for (const std::int32_t extent : extents) {
    const auto k = static_cast<std::uint32_t>(extent);
    target += (source % k + static_cast<std::uint32_t>(ahead(extent))) % k * weight;
    source /= k;
    weight *= k;
  }
  return target;
}

/// Every node in turn becomes the target of one of the nodes that have none, as BookSim draws it.
std::vector<std::uint32_t> shuffled(std::uint32_t nodes, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::uint32_t> targets(nodes);
  std::vector<std::uint32_t> without(nodes);
  std::iota(without.begin(), without.end(), 0U);
  for (std::uint32_t target = 0; target < nodes; ++target) {
    const auto source = without.begin() + random.below(nodes - target);
    targets[*source] = target;
    without.erase(source);
  }
  return targets;
}

/// "NAME" or, of patterns that need more, "NAME:REST".
struct NamedPattern {
  Pattern pattern;
  std::string_view name;
  std::string_view rest;
};

Result<NamedPattern> named_pattern(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  const std::string_view rest = text.substr(std::min(colon + 1, text.size()));
  const auto pattern = value_of<Pattern>(name);
  if (!pattern) {
    return fail(wrong_pattern(name, one_of<Pattern>(name)));
  }
  const bool has_more = *pattern == Pattern::hotspot || *pattern == Pattern::permutation;
  if (rest.empty() == has_more && *pattern != Pattern::random_permutation) {
    return fail(wrong_pattern(
        text, has_more ? "hotspot:3,7@0.2 or permutation:FILE" : fmt::format("'{}' alone", name)));
  }
  return NamedPattern{*pattern, name, rest};
}

}  // namespace

std::vector<std::int32_t> node_extents(const RouterGraph& graph) {
  std::vector<std::int32_t> extents = graph.extents;
  const auto nodes = static_cast<std::int64_t>(graph.nodes.size());
  const auto total = [&] {
    return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  };
  if ((graph.shape == Shape::flattened_butterfly || graph.shape == Shape::cmesh) &&
      extents.size() == 2 && total() != nodes) {
    std::int32_t side = 1;
    while (total() * side * side < nodes) {
      ++side;
    }
    extents[0] *= side;
    extents[1] *= side;
  }
  if (graph.shape == Shape::dragonfly || graph.shape == Shape::switch_clusters || extents.empty() ||
      total() != nodes) {
    extents = {static_cast<std::int32_t>(nodes)};
  }
  return extents;
}

/// Checks that the pattern draws on this network, and takes what it needs to know of it.
Result<void> Traffic::fits(Pattern pattern, const RouterGraph& graph) {
  std::string expected;
  if (pattern == Pattern::taper64 && nodes_ != 64) {
    expected = fmt::format("a pattern for {} nodes: taper64 is for 64", nodes_);
  } else if (pattern == Pattern::asymmetric && nodes_ % 2 != 0) {
    expected = fmt::format("a pattern without halves: {} nodes are odd", nodes_);
  } else if (pattern == Pattern::bad_dragon && graph.shape != Shape::dragonfly) {
    expected = "a pattern without groups: bad_dragon is for dragonflies";
  } else if (pattern == Pattern::bad_dragon) {
    const auto routers = static_cast<std::uint32_t>(graph.routers);
    group_ = nodes_ / routers * static_cast<std::uint32_t>(graph.extents.front());
  }
  if (!expected.empty()) {
    return fail(wrong_pattern(name_, expected));
  }
  pattern_ = pattern;
  return {};
}

std::uint32_t Traffic::drawn(std::uint32_t source, Random& random) const {
  switch (pattern_) {
    case Pattern::diagonal:
      return random.below(3) == 0 ? (source + 1) % nodes_ : source;
    case Pattern::asymmetric:
      return source % (nodes_ / 2) + random.below(2) * (nodes_ / 2);
    case Pattern::taper64:
      if (random.below(2) == 0) {
        return random.below(nodes_);
      }
      // 8 (-1 to 1) + (-1 to 1) on.
      return (source + nodes_ + 8 * random.below(3) - 8 + random.below(3) - 1) % nodes_;
    default:
      return (random.below(group_) + (source / group_ + 1) * group_) % nodes_;
  }
}

/// "3,7@0.2" or "3*2,7": nodes with weights, and the share of packets that go to them.
void Traffic::read_hotspot(std::string_view text, Error& mistakes) {
  constexpr std::string_view kAny = "any:";
  if (text.starts_with(kAny)) {
    const auto seed = parse_value<std::uint64_t>(text.substr(kAny.size()));
    if (!seed) {
      mistakes.add(wrong_pattern(text, "hotspot:any:SEED"));
      return;
    }
    hot_ = {Random(*seed).below(nodes_)};
    share_ = 1;
    return;
  }
  const std::size_t at = std::min(text.find('@'), text.size());
  for (const std::string_view word : words_of(text.substr(0, at), ",")) {
    const std::size_t star = std::min(word.find('*'), word.size());
    const auto node = node_list("pattern", {word.substr(0, star)}, nodes_, mistakes);
    const auto weight = star < word.size() ? parse_value<std::uint32_t>(word.substr(star + 1))
                                           : tl::expected<std::uint32_t, std::string>(1);
    if (!weight || *weight > kMostHotspotWeight) {
      mistakes.add(
          wrong_pattern(word, fmt::format("NODE*WEIGHT, a weight up to {}", kMostHotspotWeight)));
    } else if (!node.empty()) {
      hot_.insert(hot_.end(), *weight, node.front());
    }
  }
  const auto share =
      at < text.size() ? parse_number(text.substr(at + 1)) : tl::expected<double, std::string>(1);
  if (std::adjacent_find(hot_.begin(), hot_.end(), std::not_equal_to<>()) == hot_.end()) {
    hot_.resize(std::min<std::size_t>(hot_.size(), 1));  // one node: nothing to draw
  }
  share_ = share.value_or(0);
  if (!share || *share <= 0 || *share > 1 || (hot_.empty() && mistakes.empty())) {
    mistakes.add(wrong_pattern(name_, "hotspot:NODES@SHARE with a share above 0, at most 1"));
  }
}

/// A file of the target of every node.
void Traffic::read_permutation(std::string_view path, Error& mistakes) {
  const auto file = read_file(std::string(path), std::size_t{1} << 24U);
  if (!file) {
    mistakes.add(file.error());
    return;
  }
  targets_ = node_list(path, words_of(*file, " \t\r\n,"), nodes_, mistakes);
  if (mistakes.empty() && targets_.size() != nodes_) {
    mistakes.add({std::string(path),
                  {},
                  fmt::format("{} targets", targets_.size()),
                  fmt::format("one for each of {} nodes", nodes_)});
  }
}

Result<Traffic> Traffic::make(std::string_view text, const RouterGraph& graph) {
  const auto named = named_pattern(text);
  if (!named) {
    return fail(named.error());
  }
  const auto& [pattern, name, rest] = *named;
  Traffic traffic;
  traffic.name_ = text;
  const auto nodes = static_cast<std::uint32_t>(graph.nodes.size());
  traffic.nodes_ = nodes;
  const std::vector<std::int32_t> extents = node_extents(graph);
  Error mistakes;
  switch (pattern) {
    case Pattern::uniform:
      break;
    case Pattern::diagonal:
    case Pattern::asymmetric:
    case Pattern::taper64:
    case Pattern::bad_dragon:
      if (auto known = traffic.fits(pattern, graph); !known) {
        return fail(std::move(known.error()));
      }
      break;
    case Pattern::transpose:
    case Pattern::bit_complement:
    case Pattern::bit_reverse:
    case Pattern::shuffle:
      collect_into(traffic.targets_, targets_by_bits(pattern, name, nodes), mistakes);
      break;
    case Pattern::tornado:
    case Pattern::neighbor:
      for (std::uint32_t source = 0; source < nodes; ++source) {
        traffic.targets_.push_back(by_digits(source, extents, [&](std::int32_t k) {
          return pattern == Pattern::neighbor ? 1 : (k + 1) / 2 - 1;
        }));
      }
      break;
    case Pattern::random_permutation:
      if (const auto drawn = parse_value<std::uint32_t>(rest.empty() ? "0" : rest); drawn) {
        traffic.targets_ = shuffled(nodes, *drawn);
      } else {
        mistakes.add(wrong_pattern(name, "random_permutation or random_permutation:SEED"));
      }
      break;
    case Pattern::hotspot:
      traffic.read_hotspot(rest, mistakes);
      break;
    case Pattern::permutation:
      traffic.read_permutation(rest, mistakes);
      break;
  }
  return or_mistakes(std::move(traffic), std::move(mistakes));
}

}  // namespace orrery::flit
