// SPDX-License-Identifier: Apache-2.0
/// Slices of a torus: the block of a pod of TPUs that a job takes.
///
/// Slices of three axes whose extents are multiples of 4 are made of cubes of 4 x 4 x 4 between
/// optical switches, which close every axis again (Jouppi et al. 2023, TPU v4, section 2.2). In
/// other slices an axis is closed only where it is as long as the pod's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine/machine.h"

namespace orrery::machine {

/// Keeps `count` of the devices of a dimension, with the links that remain between them.
void cut(topology::NetworkDimension& dimension, std::int64_t count);

/// Returns the extents of the slice that `devices` of the machine's torus usually are: made of
/// cubes where that is possible, then with the least sum of extents, the longest last (64: 4x4x4,
/// 256: 4x8x8). Empty: the network does not begin with a torus of two or three axes that is larger
/// than the job, or has no such block.
std::vector<std::int64_t> usual_slice(const Machine& machine, std::int64_t devices);

/// Returns the machine with its torus cut to a slice and laid out as lines. Requires a torus of as
/// many axes, none shorter than the slice's.
Machine cut_to_slice(Machine machine, const std::vector<std::int64_t>& slice);

/// A slice that a user names, and its devices.
struct NamedSlice {
  Machine machine;
  std::int64_t devices = 0;
  std::string text;  ///< "4x8x8, 256 chips, v5p-512"
};
/// Returns the slice of a text. `text`: extents ("4x8x8"), or Google's name ("v5p-512"), whose
/// number counts cores, two a chip, for v4 and v5p, and chips for v5e and v6e. Mistakes: no torus,
/// extents that do not fit into it in any order, a name of another machine.
Result<NamedSlice> with_slice(const Machine& machine, const std::string& text);

}  // namespace orrery::machine
