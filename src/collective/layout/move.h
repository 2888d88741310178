// SPDX-License-Identifier: Apache-2.0
/// The reference executor: real arrays through a sequence of steps.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "collective/layout/steps.h"

namespace orrery::layout {

/// Part is what one rank holds: the elements of its box, the last dimension the fastest.
struct Part {
  Box box;
  std::vector<double> values;
};

/// Returns the pieces of a whole tensor as `layout` says; of a layout with partial sums,
/// `partial_sum[rank]` gives each rank's whole tensor. Every rank's part.
std::vector<Part> scattered(const Shape& shape, const Mesh& mesh, const Layout& layout,
                            const std::vector<std::vector<double>>& partial_sum);

/// The work on one rank: of the input's whole tensor, an element of the result. It may read the
/// elements of `line` only: the input's elements in the dimensions that the work needs whole, at
/// the result's place in the others.
using Compute = std::function<double(const std::array<std::int64_t, Shape::kMost>& at,
                                     std::span<const double> line)>;

/// Does the work on one rank, which makes the elements of `box`. Of two dimensions the second is
/// whole.
Part worked_on(const Part& input, const Box& box, const Compute& compute);

/// Moves `ranks` through the steps, message by message. A mistake: a sender does not hold what it
/// sends, an element arrives twice or never, work on partial sums or on parts of what it needs
/// (conditions 1 to 3 of a fusion), steps that do not follow one another. Sums add in the order of
/// ranks, so sequences that add the same partial sums are equal bit for bit.
///
/// Steps may be those of conversion_between(), so that gradients are moved as values are.
Result<std::vector<Part>> move(std::vector<Part> ranks, std::span<const Step> steps,
                               const Problem& problem, const Compute& compute = {});

}  // namespace orrery::layout
