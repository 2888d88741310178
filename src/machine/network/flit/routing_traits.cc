// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/routing_traits.h"

namespace orrery::flit {
bool fits(Shape shape, Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::dor:
      return is_grid(shape) || shape == Shape::flattened_butterfly;
    case Algorithm::yx:
    case Algorithm::o1turn:
    case Algorithm::adaptive_xy_yx:
    case Algorithm::romm:
      return shape == Shape::mesh || shape == Shape::cmesh;
    case Algorithm::valiant:
    case Algorithm::ugal:
      return is_grid(shape) || shape == Shape::flattened_butterfly || shape == Shape::dragonfly;
    case Algorithm::adaptive:
      return is_grid(shape);
    case Algorithm::nca:
      return shape == Shape::fat_tree || shape == Shape::switch_clusters || shape == Shape::tree;
    case Algorithm::dest_tag:
      return shape == Shape::fly;
    case Algorithm::min:
    case Algorithm::up_down:
      return shape != Shape::fly || algorithm == Algorithm::min;
  }
  return false;
}

Algorithm default_algorithm(Shape shape) {
  switch (shape) {
    case Shape::mesh:
    case Shape::torus:
    case Shape::cmesh:
    case Shape::flattened_butterfly:
      return Algorithm::dor;
    case Shape::fat_tree:
    case Shape::tree:
    case Shape::switch_clusters:
      return Algorithm::nca;
    case Shape::fly:
      return Algorithm::dest_tag;
    case Shape::dragonfly:
    case Shape::graph:
      return Algorithm::min;
  }
  return Algorithm::min;
}

bool RoutingTraits::is_fixed() const {
  return !is_stated && (algorithm == Algorithm::dest_tag ||
                        (algorithm == Algorithm::dor &&
                         (shape == Shape::mesh || shape == Shape::flattened_butterfly)));
}

bool RoutingTraits::splits_choices() const {
  const bool rings = shape == Shape::torus && vcs % 2 != 0;
  return follows_booksim() && (has_escapes() || draws_at_start() || rings);
}

bool RoutingTraits::is_ordered() const {
  if (is_stated) {
    return false;
  }
  const bool overlaps = splits_choices();
  switch (shape) {
    case Shape::mesh:
      return algorithm == Algorithm::dor || algorithm == Algorithm::yx ||
             (draws_at_start() && !overlaps);
    case Shape::torus:
      return algorithm == Algorithm::dor && !overlaps;
    case Shape::flattened_butterfly:
      return algorithm == Algorithm::dor;
    case Shape::fat_tree:
      return algorithm == Algorithm::nca;
    case Shape::fly:
      return algorithm == Algorithm::dest_tag;
    default:
      return false;
  }
}

int RoutingTraits::vc_classes() const {
  const bool table = algorithm == Algorithm::min || algorithm == Algorithm::up_down;
  if (algorithm == Algorithm::adaptive) {  // of BookSim's torus VC 2 is for injection alone
    return shape != Shape::torus ? 2 : follows_booksim() ? 4 : 3;
  }
  if (goes_by_groups()) {
    return algorithm == Algorithm::min ? 2 : 3;  // groups that a route touches
  }
  return (has_two_phases() ? 2 : 1) * (shape == Shape::torus && !table ? 2 : 1);
}

}  // namespace orrery::flit
