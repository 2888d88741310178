// SPDX-License-Identifier: Apache-2.0
/// Says which ranks need to be simulated where every message is.
#pragma once

#include <optional>
#include <string>

#include "graph/workload.h"
#include "machine/machine.h"
#include "simulate/bind.h"
#include "simulate/fold.h"

namespace orrery::simulate {

/// A digit d of the rank number, or a part of one (every k-th of its values), folds to 0 when
/// shifting it by one maps all that is sent onto itself, which is looked up message by message:
///
///   communicators, and the groups in which a phase runs its schedule, onto such
///   messages    onto messages of equal size that wait for the images of what they waited for
///   links       of a message's route onto those of its image's route, one to one, at equal
///               bandwidth and latency; each link has one image
///
/// Shifts commute, so what maps itself under each maps itself under the group G of them all. Every
/// message has one image sent by a simulated rank. A link L and its images are one in the
/// simulation: of a message over it |G| / |images of L| mirrors pass L at once
/// (LinkMirrors::multiplicity).
///
/// A phase that takes at most kMostApart (10 ns) of any link need not send alike, as the trees of a
/// gradient norm do not: where it does not it goes apart, the messages of all its members on their
/// own links, and meets only those of simulated ranks. Its members end it together in any case.
///
/// Max-min fair rates are unique, hence alike for what is alike, whatever lies under it: dimensions
/// or a network of links, by any routing that has the symmetry (a hash has none).
///
/// `bound`: all templates, whose messages exist; else nothing folds. `refusal`: why nothing may
/// fold, if so. Takes the routes of all messages once per digit tried.
Fold fold_messages(const graph::Workload& workload, const machine::Machine& machine, Binding& bound,
                   const std::optional<std::string>& refusal);

}  // namespace orrery::simulate
