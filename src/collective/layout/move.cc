// SPDX-License-Identifier: Apache-2.0
#include "collective/layout/move.h"

#include <fmt/format.h>

namespace orrery::layout {
namespace {

std::size_t index_in(const Box& box, const std::array<std::int64_t, Shape::kMost>& at) {
  std::int64_t index = 0;
  for (std::size_t d = 0; d < at.size(); ++d) {
    index = index * (box.end[d] - box.begin[d]) + at[d] - box.begin[d];
  }
  return static_cast<std::size_t>(index);
}

template <class Visit>
void for_each(const Box& box, Visit visit) {
  std::array<std::int64_t, Shape::kMost> at = box.begin;
  for (std::int64_t left = box.elements(); left > 0; --left) {
    visit(at);
    for (std::size_t d = at.size(); d-- > 0 && ++at[d] == box.end[d];) {
      at[d] = box.begin[d];
    }
  }
}

Box whole(const Shape& shape) {
  Box box;
  box.end.fill(1);
  std::copy(shape.extents.begin(), shape.extents.end(), box.end.begin());
  return box;
}

/// Returns what every rank holds after the pieces have arrived.
Result<std::vector<Part>> deliver(const std::vector<Part>& before,
                                  const std::vector<Piece>& pieces) {
  // What a rank gets is its box: of sums that of every piece, else the hull of its pieces.
  std::vector<Part> after(before.size());
  for (const Piece& piece : pieces) {
    Box& box = after[static_cast<std::size_t>(piece.receiver)].box;
    if (box.empty()) {
      box = piece.box;
      continue;
    }
    for (std::size_t d = 0; d < box.begin.size(); ++d) {
      box.begin[d] = std::min(box.begin[d], piece.box.begin[d]);
      box.end[d] = std::max(box.end[d], piece.box.end[d]);
    }
  }
  std::vector<std::vector<int>> arrivals(before.size());
  for (std::size_t rank = 0; rank < after.size(); ++rank) {
    const auto elements = static_cast<std::size_t>(after[rank].box.elements());
    after[rank].values.assign(elements, 0);
    arrivals[rank].assign(elements, 0);
  }
  for (const Piece& piece : pieces) {
    const Part& source = before[static_cast<std::size_t>(piece.sender)];
    const auto receiver = static_cast<std::size_t>(piece.receiver);
    if (!source.box.contains(piece.box)) {
      return fail(fmt::format("rank {} sends what it does not hold", piece.sender));
    }
    bool twice = false;
    for_each(piece.box, [&](const auto& at) {
      const std::size_t index = index_in(after[receiver].box, at);
      const double value = source.values[index_in(source.box, at)];
      double& sum = after[receiver].values[index];
      int& count = arrivals[receiver][index];
      sum = count == 0 ? value : sum + value;
      twice = twice || (count > 0 && !piece.reduce);
      ++count;
    });
    if (twice) {
      return fail(fmt::format("rank {} gets an element twice", piece.receiver));
    }
  }
  for (std::size_t rank = 0; rank < arrivals.size(); ++rank) {
    for (const int count : arrivals[rank]) {
      if (count == 0 || count != arrivals[rank].front()) {
        return fail(fmt::format("rank {} misses an element or a summand", rank));
      }
    }
  }
  return after;
}

/// Returns the elements of `box`: those of `part`, around them zeros.
Part padded(const Part& part, const Box& box) {
  Part result{box, std::vector<double>(static_cast<std::size_t>(box.elements()), 0)};
  for_each(part.box, [&](const auto& at) {
    result.values[index_in(box, at)] = part.values[index_in(part.box, at)];
  });
  return result;
}

}  // namespace

Part worked_on(const Part& input, const Box& box, const Compute& compute) {
  Part result{box, {}};
  const std::int64_t width = input.box.end[1] - input.box.begin[1];
  for_each(box, [&](const auto& at) {
    const std::int64_t row = at[0] - input.box.begin[0];
    result.values.push_back(compute(
        at, std::span(input.values)
                .subspan(static_cast<std::size_t>(row * width), static_cast<std::size_t>(width))));
  });
  return result;
}

std::vector<Part> scattered(const Shape& shape, const Mesh& mesh, const Layout& layout,
                            const std::vector<std::vector<double>>& partial_sum) {
  const Box all = whole(shape);
  std::vector<Part> ranks;
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    Part part{held(shape, mesh, layout, rank), {}};
    const std::vector<double>& values =
        partial_sum[static_cast<std::size_t>(rank) % partial_sum.size()];
    for_each(part.box, [&](const auto& at) { part.values.push_back(values[index_in(all, at)]); });
    ranks.push_back(std::move(part));
  }
  return ranks;
}

Result<std::vector<Part>> move(std::vector<Part> ranks, std::span<const Step> steps,
                               const Problem& problem, const Compute& compute) {
  const Mesh& mesh = problem.mesh;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const bool worked =
        i > 0 && (steps[i - 1].after_work || steps[i - 1].operation == Operation::apply);
    if (step.from != (i == 0 ? problem.from : steps[i - 1].to) || step.after_work != worked) {
      return fail(fmt::format("step {} does not begin where the one before ends", i));
    }
    if (step.operation == Operation::apply) {
      if (!problem.work || !can_apply(*problem.work, step.from)) {
        return fail(fmt::format("step {} works on summands or on parts of what it needs", i));
      }
      for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
        Part& part = ranks[static_cast<std::size_t>(rank)];
        part = worked_on(part, held(problem.work->shape, mesh, step.from, rank), compute);
      }
      continue;
    }
    const Shape& shape = shape_of(problem, step);
    if (step.operation == Operation::pad) {
      for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
        Part& part = ranks[static_cast<std::size_t>(rank)];
        part = padded(part, held(shape, mesh, step.to, rank));
      }
      continue;
    }
    const Moves all = moves_of(step, shape, mesh);
    for (const std::vector<Piece>* pieces : {&all.pieces, &all.second}) {
      if (pieces->empty()) {
        continue;
      }
      auto after = deliver(ranks, *pieces);
      if (!after) {
        return after;
      }
      ranks = std::move(*after);
    }
    for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
      const Box& box = ranks[static_cast<std::size_t>(rank)].box;
      const Box due = held(shape, mesh, step.to, rank);
      if (!(due.empty() && box.empty()) && box != due) {
        return fail(fmt::format("rank {} does not hold what step {} should leave it", rank, i));
      }
    }
  }
  return ranks;
}

}  // namespace orrery::layout
