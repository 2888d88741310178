// SPDX-License-Identifier: Apache-2.0
/// Routes by rule through fat trees and SimGrid's dragonfly (routing.h).
#include "machine/topology/routing.h"

namespace orrery::topology {
namespace {

/// A router of SimGrid's dragonfly.
struct Place {
  std::int32_t group;
  std::int32_t chassis;
  std::int32_t blade;
  friend bool operator==(const Place&, const Place&) = default;
};

}  // namespace

/// Goes up by the target's number modulo the ports to parents, level by level, until the target is
/// below; then down, over the parallel cable that the source's number modulo their count says; but
/// SimGrid 3.32 goes on scanning at the next switch behind the child that it has taken, and so may
/// meet a later cable first.
bool Router::d_mod_k(std::int32_t source, std::int32_t target, std::vector<Hop>& hops) const {
  const Layout& tree = graph_.layout;
  std::size_t level = 0;
  std::int32_t here = source;   // its number on its level
  std::int32_t above = target;  // digits of the target from the level on
  std::int32_t mine = source;
  std::int32_t low = 0;  // value of the digits below the level
  std::int32_t below = 1;
  std::int32_t number = target;
  do {
    const std::int32_t parents = tree.up[level];
    const std::int32_t port = number % (parents * tree.parallel[level]);
    const std::int32_t parent = port % parents;
    number /= parents;
    mine /= tree.shape[level];
    above /= tree.shape[level];
    low += parent * below;
    below *= parents;
    const std::int32_t there = low + below * mine;
    if (!pass(first_of_level_[level] + here, first_of_level_[level + 1] + there, port / parents,
              hops)) {
      return false;
    }
    here = there;
    ++level;
  } while (mine != above);
  std::int32_t scanned = -1;  // child and cable last taken: child + cable * children
  while (level > 0) {
    --level;
    std::int32_t high = target;
    for (std::size_t l = 0; l < level; ++l) {
      high /= tree.shape[l];
    }
    const std::int32_t children = tree.shape[level];
    const std::int32_t child = high % children;
    const std::int32_t next = scanned < child ? 0 : (scanned - child) / children + 1;
    const std::int32_t cable =
        scanned >= 0 && next < tree.parallel[level] ? next : source % tree.parallel[level];
    scanned = child + cable * children;
    below /= tree.up[level];
    const std::int32_t there = here % below + below * high;
    if (!pass(first_of_level_[level + 1] + here, first_of_level_[level] + there, cable, hops)) {
      return false;
    }
    here = there;
  }
  return here == target;
}

bool Router::climb(std::int32_t source, std::int32_t target, std::span<const std::int32_t> choice,
                   std::vector<Hop>& hops) const {
  const Layout& tree = graph_.layout;
  std::size_t level = 0;
  std::int32_t low = 0;
  std::int32_t below = 1;
  std::int32_t from = source;
  std::int32_t to = target;
  std::int32_t here = source;
  while (from != to) {
    const std::int32_t parents = tree.up[level];
    low += choice[level] % parents * below;
    below *= parents;
    from /= tree.shape[level];
    to /= tree.shape[level];
    const std::int32_t there = first_of_level_[level + 1] + low + below * from;
    if (!pass(here, there, choice[level] / parents, hops)) {
      return false;
    }
    here = there;
    ++level;
  }
  while (level > 0) {
    --level;
    below /= tree.up[level];
    std::int32_t high = target;
    for (std::size_t l = 0; l < level; ++l) {
      high /= tree.shape[l];
    }
    const std::int32_t there = first_of_level_[level] + low % below + below * high;
    if (!pass(here, there, choice[level] / tree.up[level], hops)) {
      return false;
    }
    here = there;
  }
  return here == target;
}

/// Goes as SimGrid 3.32 does: to the blade that has the link to the group, to chassis 0, to the
/// group, then to the blade and the chassis. After a step between blades SimGrid believes to be in
/// chassis 0.
bool Router::minimal(std::int32_t source, std::int32_t target, std::vector<Hop>& hops) const {
  const std::vector<std::int32_t>& shape = graph_.layout.shape;
  const auto place_of = [&](std::int32_t host) {
    const std::int32_t router = host / shape[0];
    return Place{router / shape[1] / shape[2], router / shape[1] % shape[2], router % shape[1]};
  };
  const auto vertex = [&](const Place& place) {
    return graph_.layout.first_router + (place.group * shape[2] + place.chassis) * shape[1] +
           place.blade;
  };
  Place here = place_of(source);
  const Place there = place_of(target);
  bool found = pass(source, vertex(here), 0, hops);
  const auto go = [&](const Place& to) {
    found = found && pass(vertex(here), vertex(to), 0, hops);
    here = to;
  };
  if (here != there) {
    if (here.group != there.group) {
      if (here.blade != there.group) {
        go({here.group, here.chassis, there.group});
      }
      if (here.chassis != 0) {
        go({here.group, 0, here.blade});
      }
      go({there.group, 0, here.group});
    }
    if (here.blade != there.blade) {
      go({here.group, here.chassis, there.blade});
      here.chassis = 0;
    }
    if (here.chassis != there.chassis) {
      go({here.group, there.chassis, here.blade});
    }
  }
  return found && pass(vertex(there), target, 0, hops);
}

}  // namespace orrery::topology
