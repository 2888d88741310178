// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/vc_classes.h"

#include <algorithm>
#include <bit>

namespace orrery::flit {
namespace {

VcMask lowest(int count) {
  return count >= 64 ? ~VcMask{0} : (VcMask{1} << static_cast<unsigned>(count)) - 1;
}

/// One of `count` parts of a range of VCs; the lower ones have the odd ones.
VcMask class_of(VcMask range, int which, int count) {
  const int vcs = std::popcount(range);
  const auto up_to = [&](int classes) { return lowest((vcs * classes + count - 1) / count); };
  return (up_to(which + 1) & ~up_to(which)) << static_cast<unsigned>(std::countr_zero(range));
}

VcMask half_of(VcMask range, unsigned which) {
  return class_of(range, static_cast<int>(which), 2);
}

/// A range of VCs without the `count` highest (half 0) or lowest.
VcMask without(VcMask range, int count, unsigned which) {
  const VcMask lowest_ones = lowest(count) << static_cast<unsigned>(std::countr_zero(range));
  return which == 0 ? range & (range >> static_cast<unsigned>(count)) : range & ~lowest_ones;
}

}  // namespace

VcClasses::VcClasses(const RoutingTraits& traits) : traits_(traits), all_(lowest(traits.vcs)) {
  const bool shares = traits.follows_booksim();  // the middle one of an odd number
  low_ = shares ? without(all_, traits.vcs / 2, 0) : half_of(all_, 0);
  high_ = shares ? without(all_, traits.vcs / 2, 1) : half_of(all_, 1);
}

VcMask VcClasses::of_ring(unsigned ring, unsigned phase, bool at_target) const {
  if (!traits_.has_two_phases()) {
    return half(ring);
  }
  if (!traits_.follows_booksim()) {
    return half_of(half(ring), phase);
  }
  return at_target ? all_ : without(half(ring), traits_.vcs / 2 / 2, phase);
}

VcMask VcClasses::of_group(unsigned group) const {
  return traits_.follows_booksim() ? VcMask{1} << group
                                   : class_of(all_, static_cast<int>(group), traits_.vc_classes());
}

VcMask VcClasses::to_node(std::uint8_t phase) const {
  const bool by_phase = traits_.follows_booksim() && traits_.goes_by_groups();
  return by_phase ? of_group(std::max(phase, traits_.first_phase())) : all_;
}

}  // namespace orrery::flit
