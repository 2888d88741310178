// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/deadlock.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <type_traits>
#include <utility>

namespace orrery::flit {
namespace {

constexpr std::size_t kShownOfCircle = 12;
constexpr std::uint64_t kMostHopsChecked = 40'000'000;  // a few seconds

/// Something that packets hold: a channel and a class of its VCs.
using Resource = std::pair<std::uint32_t, VcMask>;

/// Depth first over what may be wanted next; a circle or nothing.
class CircleSearch {
 public:
  explicit CircleSearch(const std::vector<std::vector<std::uint32_t>>& next)
      : next_(next), state_(next.size(), State::unseen) {}

  std::vector<std::uint32_t> find() {
    for (std::uint32_t root = 0; root < next_.size(); ++root) {
      if (state_[root] == State::unseen && visit(root)) {
        return circle_;
      }
    }
    return {};
  }

 private:
  enum class State : std::uint8_t { unseen, open, closed };

  bool visit(std::uint32_t root) {
    std::vector<std::pair<std::uint32_t, std::size_t>> path{{root, 0}};
    state_[root] = State::open;
    while (!path.empty()) {
      auto& [at, tried] = path.back();
      if (tried == next_[at].size()) {
        state_[at] = State::closed;
        path.pop_back();
        continue;
      }
      const std::uint32_t to = next_[at][tried++];
      if (state_[to] == State::open) {
        auto begin =
            std::find_if(path.begin(), path.end(), [&](const auto& p) { return p.first == to; });
        for (; begin != path.end(); ++begin) {
          circle_.push_back(begin->first);
        }
        return true;
      }
      if (state_[to] == State::unseen) {
        state_[to] = State::open;
        path.emplace_back(to, 0);
      }
    }
    return false;
  }

  const std::vector<std::vector<std::uint32_t>>& next_;
  std::vector<State> state_;
  std::vector<std::uint32_t> circle_;
};

std::string vcs_text(VcMask vcs) {
  const int first = std::countr_zero(vcs);
  const int last = 63 - std::countl_zero(vcs);
  return first == last ? fmt::format("VC {}", first) : fmt::format("VCs {}-{}", first, last);
}

/// Dependencies walks what packets may hold and want. Packets for one node that are alike where
/// they meet go on alike, so each target has one walk from all sources: a place is come to once.
class Dependencies {
 public:
  explicit Dependencies(const Routing& routing)
      : routing_(routing),
        graph_(routing.graph()),
        numbers_(graph_.channels.size()),
        seen_(static_cast<std::size_t>(graph_.routers)) {}

  DependencyCheck check() {
    const auto nodes = static_cast<std::uint32_t>(graph_.nodes.size());
    for (std::uint32_t target = 0; target < nodes && hops_ <= kMostHopsChecked; ++target) {
      walk_to(target);
    }
    if (hops_ > kMostHopsChecked) {
      return {Freedom::not_checked, "too many ways to walk them all"};
    }
    const std::vector<std::uint32_t> circle = CircleSearch(next_).find();
    DependencyCheck result;
    for (std::size_t i = 0; i < circle.size(); ++i) {
      result.freedom = Freedom::circular;
      if (i < kShownOfCircle) {
        const auto& [channel, vcs] = resources_[circle[i]];
        result.circle +=
            fmt::format("{}router {} to router {} ({})", i > 0 ? ", " : "",
                        graph_.router_name(graph_.channels[channel].source),
                        graph_.router_name(graph_.channels[channel].target), vcs_text(vcs));
      }
    }
    if (circle.size() > kShownOfCircle) {
      result.circle += fmt::format(" and {} more", circle.size() - kShownOfCircle);
    }
    return result;
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Place {
    RouteState state;
    std::uint32_t router;
    std::uint32_t held;  ///< number of a resource
  };
  static_assert(std::has_unique_object_representations_v<Place>);
  using Words = std::array<std::uint32_t, sizeof(Place) / 4>;  ///< of a place, to compare it

  std::uint32_t number(const Resource& resource) {
    auto& of_channel = numbers_[resource.first];
    for (const std::uint32_t number : of_channel) {
      if (resources_[number].second == resource.second) {
        return number;
      }
    }
    of_channel.push_back(static_cast<std::uint32_t>(resources_.size()));
    resources_.push_back(resource);
    next_.emplace_back();
    seen_.emplace_back();
    return of_channel.back();
  }

  void depend(std::uint32_t held, std::uint32_t wanted) {
    std::vector<std::uint32_t>& list = next_[held];
    if (std::find(list.begin(), list.end(), wanted) == list.end()) {
      list.push_back(wanted);
    }
  }

  /// Returns whether the walk to this target has not been here.
  bool is_new(const Place& place) {
    std::vector<Words>& here = place.held == kNone
                                   ? seen_[place.router]
                                   : seen_[static_cast<std::size_t>(graph_.routers) + place.held];
    const bool found = std::ranges::find(here, std::bit_cast<Words>(place)) != here.end();
    if (!found) {
      here.push_back(std::bit_cast<Words>(place));
    }
    return !found;
  }

  void walk_to(std::uint32_t target) {
    for (std::vector<Words>& places : seen_) {
      places.clear();
    }
    for (std::uint32_t source = 0; source < graph_.nodes.size(); ++source) {
      const auto router = static_cast<std::uint32_t>(graph_.nodes[source].inject);
      for (const RouteState& start : routing_.all_starts(source, target)) {
        walk({start, router, kNone});
      }
    }
  }

  /// All routes from a place on. Adaptive hops hold nothing that counts: what counts is the escape
  /// that was held last.
  void walk(const Place& first) {
    std::vector<Place> open{first};
    std::vector<Routing::Choice> choices;
    while (!open.empty() && hops_ <= kMostHopsChecked) {
      const Place at = open.back();
      open.pop_back();
      routing_.all_choices(at.state, at.router, choices);
      for (const auto& [state, output, holds] : choices) {
        if (output.port >= graph_.channels.size()) {
          continue;
        }
        ++hops_;
        const std::uint32_t wanted = holds ? number({output.port, output.vcs}) : at.held;
        if (holds && at.held != kNone) {
          depend(at.held, wanted);
        }
        const Place next{state, static_cast<std::uint32_t>(graph_.channels[output.port].target),
                         wanted};
        if (is_new(next)) {
          open.push_back(next);
        }
      }
    }
  }

  const Routing& routing_;
  const RouterGraph& graph_;
  std::uint64_t hops_ = 0;
  std::vector<std::vector<std::uint32_t>> numbers_;  ///< of resources, by channel
  std::vector<std::vector<Words>> seen_;  ///< of the present target, by router, then by resource
  std::vector<Resource> resources_;
  std::vector<std::vector<std::uint32_t>> next_;
};

}  // namespace

/// Takes away, again and again, what waits for something that can go on; a circle is in the rest.
std::vector<std::uint32_t> circle_of(const std::vector<Waiting>& waiting) {
  std::map<std::uint32_t, std::size_t> place;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    place[waiting[i].in_vc] = i;
  }
  std::vector<std::vector<std::size_t>> waits_for_it(waiting.size());
  std::vector<std::size_t> going;
  std::vector<bool> goes(waiting.size());
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    bool can = waiting[i].for_.empty();
    for (const std::uint32_t other : waiting[i].for_) {
      const auto found = place.find(other);
      can |= found == place.end();
      if (found != place.end()) {
        waits_for_it[found->second].push_back(i);
      }
    }
    if (can) {
      goes[i] = true;
      going.push_back(i);
    }
  }
  while (!going.empty()) {
    const std::size_t at = going.back();
    going.pop_back();
    for (const std::size_t i : waits_for_it[at]) {
      if (!goes[i]) {
        goes[i] = true;
        going.push_back(i);
      }
    }
  }
  std::vector<std::uint32_t> circle;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (goes[i]) {
      continue;
    }
    std::uint32_t at = waiting[i].in_vc;  // all that it waits for stands still too
    while (std::find(circle.begin(), circle.end(), at) == circle.end()) {
      circle.push_back(at);
      at = waiting[place[at]].for_.front();
    }
    circle.erase(circle.begin(), std::find(circle.begin(), circle.end(), at));
    break;
  }
  return circle;
}

std::string explain_waiting(const Engine& engine) {
  const std::vector<Waiting> waiting = engine.waiting();
  const std::vector<std::uint32_t> circle = circle_of(waiting);
  if (!circle.empty()) {
    std::string text = "deadlock: ";
    for (std::size_t i = 0; i < std::min(kShownOfCircle, circle.size()); ++i) {
      text += fmt::format("{}({})", i > 0 ? " waits for " : "", engine.name_of_vc(circle[i]));
    }
    return text +
           (circle.size() > kShownOfCircle
                ? fmt::format(" and so on through {} buffers, then the first again", circle.size())
                : " waits for the first again");
  }
  std::map<std::uint32_t, std::size_t> wanted;  // by buffer: how many wait for it
  for (const Waiting& one : waiting) {
    for (const std::uint32_t other : one.for_) {
      ++wanted[other];
    }
  }
  const auto most =
      std::max_element(wanted.begin(), wanted.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == wanted.end()) {
    return "saturated: packets wait at their sources";
  }
  return fmt::format("saturated: {} buffers wait for others, most ({}) for ({})", waiting.size(),
                     most->second, engine.name_of_vc(most->first));
}

DependencyCheck check_dependencies(const Routing& routing) {
  return routing.traits().is_ordered() ? DependencyCheck{} : Dependencies(routing).check();
}

}  // namespace orrery::flit
