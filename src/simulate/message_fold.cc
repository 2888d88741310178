// SPDX-License-Identifier: Apache-2.0
#include "simulate/message_fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulate/laid_phases.h"
#include "simulate/message_plans.h"
#include "simulate/wiring.h"

namespace orrery::simulate {
namespace {

using topology::LinkId;

constexpr LinkId kNoLink = UINT32_MAX;

/// A phase whose members do not send alike may take this much of any link, its messages one after
/// the other: so much may it miss of what folded ranks send, and that of it.
constexpr Time kMostApart = 10_ns;

bool may_run_apart(const PhasePlan& phase) {
  constexpr Bytes kMost{4096};  // more is not looked at: no link is that fast
  if (phase.size > kMost) {
    return false;
  }
  std::map<LinkId, Time> taken;
  const auto rounds =
      static_cast<std::int64_t>(phase.list->left_out()) + 2;  // of which two are seen
  const auto take = [&](std::uint32_t message, std::span<const topology::Hop> route) {
    return std::ranges::all_of(route, [&](const topology::Hop& hop) {
      taken[hop.link] += phase.bytes(message) / hop.bandwidth;
      return taken[hop.link] * rounds <= kMostApart * 2;
    });
  };
  for (std::uint32_t group = 0; group < phase.groups; ++group) {
    for (std::uint32_t message = 0; message < phase.list->size(); ++message) {
      if (!take(message, phase.route(group, message))) {
        return false;
      }
    }
  }
  return true;
}

/// The images of links, one to one, as messages show them.
class LinkImages {
 public:
  explicit LinkImages(std::size_t links) : image_(links, kNoLink), origin_(links, kNoLink) {}

  /// False where the routes contradict what is known, or differ.
  bool add(std::span<const topology::Hop> route, std::span<const topology::Hop> image) {
    return std::ranges::equal(route, image,
                              [&](const topology::Hop& from, const topology::Hop& to) {
                                return from.bandwidth == to.bandwidth &&
                                       from.latency == to.latency && pair(from.link, to.link);
                              });
  }
  const std::vector<LinkId>& get() const { return image_; }

 private:
  bool pair(LinkId from, LinkId to) {
    if (image_[from] == kNoLink && origin_[to] == kNoLink) {
      image_[from] = to;
      origin_[to] = from;
    }
    return image_[from] == to;
  }

  std::vector<LinkId> image_;
  std::vector<LinkId> origin_;
};

/// Looks at all messages of the unfolded run.
class Symmetry {
 public:
  Symmetry(const graph::Workload& workload, const machine::Machine& machine, Binding& bound)
      : workload_(workload),
        bound_(bound),
        wiring_(workload, bound, fold_by({}, {}, workload.ranks)),
        plans_(wiring_, bound, machine, MessagePlans::Rounds::two),
        map_(laid_links(machine)) {}

  bool has_messages() { return plans_.check_algorithms(workload_, "").has_value(); }

  /// Returns the images of the links under the shift of the digit; nothing where a message has
  /// none.
  std::optional<std::vector<LinkId>> images(const graph::Digit& digit) {
    LinkImages links(map_.links());
    seen_.clear();
    apart_.clear();
    for (std::size_t c = 0; c < wiring_.communicator_count(); ++c) {
      if (!maps_communicator(static_cast<CommunicatorIndex>(c), digit, links)) {
        return std::nullopt;
      }
    }
    for (const FlowRoute& route : wiring_.routes()) {
      if (!maps_message(route, digit, links)) {
        return std::nullopt;
      }
    }
    return links.get();
  }

  /// Collectives that the digit last looked at leaves apart (message_fold.h).
  const std::set<int>& apart() const { return apart_; }

  /// Returns whether the mirrors of every sender are in the groups that it sends in, and those that
  /// stand for others at the same places of all groups: else a schedule cannot be that of one
  /// group.
  bool keeps_groups(const Fold& fold) {
    for (std::size_t c = 0; c < wiring_.communicator_count(); ++c) {
      if (!keeps_groups(static_cast<CommunicatorIndex>(c), fold)) {
        return false;
      }
    }
    return true;
  }

 private:
  bool keeps_groups(CommunicatorIndex number, const Fold& fold) {
    const Communicator& communicator = wiring_.communicator(number);
    for (std::size_t i = 0; i < bound_.collectives().size(); ++i) {
      const BoundCollective& collective = bound_.collectives()[i];
      const bool is_run = !collective.is_copy && collective.group == communicator.group &&
                          !fold.mirrors.apart.contains(static_cast<int>(i));
      if (is_run &&
          !std::ranges::all_of(plans_.of(number, static_cast<int>(i)),
                               [&](const PhasePlan& phase) { return keeps_groups(phase, fold); })) {
        return false;
      }
    }
    return true;
  }

  static bool keeps_groups(const PhasePlan& phase, const Fold& fold) {
    const std::vector<collective::MessageList::Pair>& pairs = phase.list->pairs();
    std::set<std::uint32_t> kept;  // places of the first group that keeps any
    for (std::uint32_t group = 0; group < phase.groups; ++group) {
      std::set<std::int64_t> senders;
      std::set<std::uint32_t> here;
      for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
        const std::int64_t sender = phase.routes->ends(group * pairs.size() + pair).source;
        senders.insert(sender);
        if (fold.representative(sender) == sender) {
          here.insert(pairs[pair].sender);
        }
      }
      if (here.empty()) {
        continue;
      }
      kept = kept.empty() ? here : kept;
      if (kept != here || !std::ranges::all_of(senders, [&](std::int64_t sender) {
            return senders.contains(fold.representative(sender));
          })) {
        return false;
      }
    }
    return true;
  }

  struct Where {
    std::uint32_t group = 0;
    std::uint32_t pair = 0;
  };
  using Ends = std::map<std::pair<std::int64_t, std::int64_t>, Where>;

  bool maps_communicator(CommunicatorIndex number, const graph::Digit& digit, LinkImages& links) {
    const Communicator& communicator = wiring_.communicator(number);
    const std::int64_t first = wiring_.ranks()[communicator.members.front()];
    const CommunicatorIndex image =
        wiring_.communicator_of(static_cast<RankIndex>(shifted(digit, first)), communicator.group);
    if (image == Wiring::kNone) {
      return false;
    }
    for (std::size_t i = 0; i < bound_.collectives().size(); ++i) {
      const BoundCollective& collective = bound_.collectives()[i];
      if (collective.is_copy || collective.group != communicator.group) {
        continue;
      }
      const std::vector<PhasePlan>& from = plans_.of(number, static_cast<int>(i));
      const std::vector<PhasePlan>& to = plans_.of(image, static_cast<int>(i));
      if (from.size() != to.size()) {
        return false;
      }
      const bool faint = std::ranges::all_of(from, may_run_apart);
      for (std::size_t p = 0; p < from.size(); ++p) {
        if (from[p].size != to[p].size || from[p].setup != to[p].setup) {
          return false;
        }
        if (faint && !maps_phase(from[p], to[p], digit, nullptr)) {
          apart_.insert(static_cast<int>(i));
          continue;
        }
        const bool fresh = seen_.emplace(from[p].routes, from[p].list).second;
        if (fresh && !maps_phase(from[p], to[p], digit, &links)) {
          return false;
        }
      }
    }
    return true;
  }

  /// `links`: whose images to keep; null: only who sends what to whom is looked at.
  bool maps_phase(const PhasePlan& from, const PhasePlan& to, const graph::Digit& digit,
                  LinkImages* links) {
    const auto pairs = static_cast<std::uint32_t>(from.list->pairs().size());
    if (from.list != to.list || from.groups != to.groups) {
      return false;
    }
    Ends ends;
    for (std::uint32_t route = 0; route < to.groups * pairs; ++route) {
      const RankPair pair = to.routes->ends(route);
      ends[{pair.source, pair.target}] = {route / pairs, route % pairs};
    }
    std::vector<std::uint32_t> images(pairs);
    for (std::uint32_t group = 0; group < from.groups; ++group) {
      std::optional<std::uint32_t> image_group;
      for (std::uint32_t pair = 0; pair < pairs; ++pair) {
        const std::uint32_t route = group * pairs + pair;
        const RankPair at = from.routes->ends(route);
        const auto found = ends.find({shifted(digit, at.source), shifted(digit, at.target)});
        if (found == ends.end() ||
            image_group.value_or(found->second.group) != found->second.group) {
          return false;
        }
        image_group = found->second.group;
        images[pair] = found->second.pair;
        if (links != nullptr &&
            !links->add((*from.routes)[route], (*to.routes)[*image_group * pairs + images[pair]])) {
          return false;
        }
      }
      if (!maps_schedule(*from.list, images)) {
        return false;
      }
    }
    return true;
  }

  bool maps_schedule(const collective::MessageList& list, const std::vector<std::uint32_t>& pairs) {
    const auto [known, fresh] = schedules_.try_emplace({&list, pairs}, false);
    if (fresh) {
      const std::vector<std::uint32_t> images = list.images(pairs);
      known->second = images.size() == list.size() && list.is_symmetric(images);
    }
    return known->second;
  }

  bool maps_message(const FlowRoute& route, const graph::Digit& digit, LinkImages& links) {
    const std::int64_t from = shifted(digit, route.from);
    const std::int64_t to = shifted(digit, route.to);
    if (from + route.to - route.from != to ||
        map_.outermost(route.from, route.to) != map_.outermost(from, to)) {
      return false;
    }
    hops_.clear();
    image_hops_.clear();
    map_.route(route.from, route.to, hops_);
    map_.route(from, to, image_hops_);
    return links.add(hops_, image_hops_);
  }

  const graph::Workload& workload_;
  Binding& bound_;
  Wiring wiring_;
  MessagePlans plans_;
  topology::LinkMap map_;
  std::set<std::pair<const RouteTable*, const collective::MessageList*>> seen_;
  std::map<std::pair<const collective::MessageList*, std::vector<std::uint32_t>>, bool> schedules_;
  std::set<int> apart_;
  std::vector<topology::Hop> hops_;
  std::vector<topology::Hop> image_hops_;
};

/// Returns the least of a number's divisors above 1.
std::int64_t least_factor(std::int64_t number) {
  for (std::int64_t factor = 2; factor * factor <= number; ++factor) {
    if (number % factor == 0) {
      return factor;
    }
  }
  return number;
}

/// The parts of the digits that fold, and the images of links under each.
struct Found {
  std::vector<graph::Digit> digits;
  std::vector<std::vector<LinkId>> images;
  std::set<int> apart;
  std::vector<std::string> reasons;
};

/// Folds, from the top of the digit down, the largest parts that fold.
void fold_digit(Symmetry& symmetry, const graph::Digit& whole, Found& found) {
  std::int64_t folded = 1;
  for (std::int64_t top = whole.size; top > 1;) {
    std::int64_t bottom = 1;
    for (; bottom < top; ++bottom) {
      if (top % bottom != 0) {
        continue;
      }
      const graph::Digit part{top / bottom, whole.stride * bottom};
      if (auto images = symmetry.images(part)) {
        found.digits.push_back(part);
        found.images.push_back(std::move(*images));
        found.apart.insert(symmetry.apart().begin(), symmetry.apart().end());
        folded *= part.size;
        break;
      }
    }
    top = bottom < top ? bottom : top / least_factor(top);
  }
  if (folded < whole.size) {
    found.reasons.push_back(
        fmt::format("{} ranks of stride {} send alike in {} classes: ways or schedules differ",
                    whole.size, whole.stride, whole.size / folded));
  }
}

LinkMirrors mirrors_of(const Found& found, std::size_t links) {
  LinkMirrors mirrors;
  mirrors.stands_for.resize(links);
  std::iota(mirrors.stands_for.begin(), mirrors.stands_for.end(), LinkId{0});
  const auto root = [&](LinkId link) {
    while (mirrors.stands_for[link] != link) {
      link = mirrors.stands_for[link] = mirrors.stands_for[mirrors.stands_for[link]];
    }
    return link;
  };
  for (const std::vector<LinkId>& images : found.images) {
    for (LinkId link = 0; link < links; ++link) {
      if (images[link] != kNoLink) {
        const auto [least, most] = std::minmax({root(link), root(images[link])});
        mirrors.stands_for[most] = least;
      }
    }
  }
  std::vector<double> orbit(links);
  for (LinkId link = 0; link < links; ++link) {
    mirrors.stands_for[link] = root(link);
    ++orbit[mirrors.stands_for[link]];
  }
  const auto all = static_cast<double>(graph::product_of(found.digits));
  for (const LinkId link : mirrors.stands_for) {
    mirrors.multiplicity.push_back(all / orbit[link]);
  }
  return mirrors;
}

}  // namespace

Fold fold_messages(const graph::Workload& workload, const machine::Machine& machine, Binding& bound,
                   const std::optional<std::string>& refusal) {
  if (refusal) {
    return fold_by({}, {*refusal}, workload.ranks);
  }
  const auto digits = graph::atoms(workload);
  if (!digits) {
    return fold_by({}, {"the degrees of the communicators do not divide one another"},
                   workload.ranks);
  }
  Symmetry symmetry(workload, machine, bound);
  if (!symmetry.has_messages()) {
    return fold_by({}, {"a collective has no messages"}, workload.ranks);
  }
  Found found;
  for (const graph::Digit& digit : *digits) {
    fold_digit(symmetry, digit, found);
  }
  Fold fold = fold_by(found.digits, std::move(found.reasons), workload.ranks);
  fold.mirrors.apart = found.apart;
  if (!symmetry.keeps_groups(fold)) {
    return fold_by({}, {"ranks alike are in different groups of a phase"}, workload.ranks);
  }
  if (!found.digits.empty()) {
    fold.mirrors = mirrors_of(found, found.images.front().size());
    fold.mirrors.apart = std::move(found.apart);
  }
  return fold;
}

}  // namespace orrery::simulate
