// SPDX-License-Identifier: Apache-2.0
#include "collective/layout/steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/lists.h"
#include "graph/workload.h"

namespace orrery::layout {
namespace {

using Kind = Placement::Kind;

/// The axes' shards can be taken or undone without moving others: what cuts them further changes
/// too.
bool cuts_last(const Layout& layout, const std::vector<std::size_t>& axes) {
  for (const std::size_t axis : axes) {
    for (std::size_t before = 0; before < axis; ++before) {
      if (layout[axis].kind == Kind::shard && layout[before] == layout[axis] &&
          std::find(axes.begin(), axes.end(), before) == axes.end()) {
        return false;
      }
    }
  }
  return true;
}

std::vector<std::size_t> changed_axes(const Layout& from, const Layout& to) {
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] != to[i]) {
      axes.push_back(i);
    }
  }
  return axes;
}

bool is_whole(const Placement& p) {
  return p.kind == Kind::replicate || p.kind == Kind::shard;
}

/// Ranks of `mesh` that differ from `rank` on the changed axes only.
bool together(const Mesh& mesh, const std::vector<std::size_t>& axes, std::int64_t a,
              std::int64_t b) {
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    if (mesh.coordinate(a, i) != mesh.coordinate(b, i) &&
        std::find(axes.begin(), axes.end(), i) == axes.end()) {
      return false;
    }
  }
  return true;
}

/// Part `number` of `count` equal ones, along the longest dimension.
Box part_of(const Box& box, std::int64_t number, std::int64_t count) {
  std::size_t longest = 0;
  for (std::size_t d = 1; d < box.begin.size(); ++d) {
    if (box.end[d] - box.begin[d] > box.end[longest] - box.begin[longest]) {
      longest = d;
    }
  }
  Box part = box;
  const std::int64_t length = box.end[longest] - box.begin[longest];
  part.begin[longest] = box.begin[longest] + number * length / count;
  part.end[longest] = box.begin[longest] + (number + 1) * length / count;
  return part;
}

class Mover {
 public:
  Mover(const Step& step, const Shape& shape, const Mesh& mesh)
      : step_(step), mesh_(mesh), axes_(changed_axes(step.from, step.to)) {
    for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
      before_.push_back(held(shape, mesh, step.from, rank));
      after_.push_back(held(shape, mesh, step.to, rank));
    }
  }

  std::vector<Piece> run() const {
    std::vector<Piece> pieces;
    for (std::int64_t target = 0; target < mesh_.ranks(); ++target) {
      if (at(after_, target).empty()) {
        continue;
      }
      if (step_.operation == Operation::reduce_scatter) {
        add_partial_sums(target, pieces);
      } else if (at(before_, target).contains(at(after_, target)) && !at(before_, target).empty()) {
        pieces.push_back({target, target, at(after_, target), false});
      } else {
        add_pieces(target, pieces);
      }
    }
    return pieces;
  }

 private:
  static const Box& at(const std::vector<Box>& boxes, std::int64_t rank) {
    return boxes[static_cast<std::size_t>(rank)];
  }

  void add_partial_sums(std::int64_t target, std::vector<Piece>& pieces) const {
    for (std::int64_t source = 0; source < mesh_.ranks(); ++source) {
      if (together(mesh_, axes_, source, target)) {
        pieces.push_back({source, target, at(after_, target), true});
      }
    }
  }

  /// Adds the pieces that the target gets from the ranks whose boxes meet what it needs. Of equal
  /// boxes each gives a part, but what the target has itself comes from itself.
  void add_pieces(std::int64_t target, std::vector<Piece>& pieces) const {
    const Box& needed = at(after_, target);
    const Box own = intersection(at(before_, target), needed);
    std::vector<Box> seen;
    for (std::int64_t source = 0; source < mesh_.ranks(); ++source) {
      const Box& box = at(before_, source);
      const Box meeting = intersection(box, needed);
      if (meeting.empty() || !is_partner(source, target) ||
          std::find(seen.begin(), seen.end(), box) != seen.end()) {
        continue;
      }
      seen.push_back(box);
      if (own == meeting) {
        pieces.push_back({target, target, meeting, false});
        continue;
      }
      std::vector<std::int64_t> holders;
      for (std::int64_t rank = source; rank < mesh_.ranks(); ++rank) {
        if (at(before_, rank) == box && is_partner(rank, target)) {
          holders.push_back(rank);
        }
      }
      const auto count = static_cast<std::int64_t>(holders.size());
      for (std::int64_t i = 0; i < count; ++i) {
        const Box part = part_of(meeting, i, count);
        if (!part.empty()) {
          pieces.push_back({holders[static_cast<std::size_t>(i)], target, part, false});
        }
      }
    }
  }

  /// A many_to_many may send from any rank that holds it, others stay in their group.
  bool is_partner(std::int64_t source, std::int64_t target) const {
    return step_.operation == Operation::many_to_many || together(mesh_, axes_, source, target);
  }

  Step step_;
  const Mesh& mesh_;
  std::vector<std::size_t> axes_;
  std::vector<Box> before_;
  std::vector<Box> after_;
};

}  // namespace

bool can_apply(const Work& work, const Layout& layout) {
  return std::none_of(layout.begin(), layout.end(), [&](const Placement& p) {
    return p.kind == Kind::partial ||
           (p.kind == Kind::shard &&
            std::find(work.whole.begin(), work.whole.end(), p.value) != work.whole.end());
  });
}

std::optional<Operation> operation_between(const Placement& from, const Placement& to) {
  switch (from.kind) {
    case Kind::replicate:
      return to.kind == Kind::shard ? std::optional(Operation::slice) : std::nullopt;
    case Kind::shard:
      return to.kind == Kind::replicate ? std::optional(Operation::all_gather)
             : to.kind == Kind::partial ? std::optional(Operation::pad)
             : to.kind == Kind::shard   ? std::optional(Operation::all_to_all)
                                        : std::nullopt;
    case Kind::partial:
      return to.kind == Kind::replicate ? std::optional(Operation::all_reduce)
             : to.kind == Kind::shard   ? std::optional(Operation::reduce_scatter)
                                        : std::nullopt;
    case Kind::only:
      return to.kind == Kind::only ? std::optional(Operation::send_recv) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<graph::CollectiveKind> collective_of(Operation operation) {
  switch (operation) {
    case Operation::all_gather:
      return graph::CollectiveKind::all_gather;
    case Operation::reduce_scatter:
      return graph::CollectiveKind::reduce_scatter;
    case Operation::all_reduce:
      return graph::CollectiveKind::all_reduce;
    case Operation::all_to_all:
      return graph::CollectiveKind::all_to_all;
    default:
      return std::nullopt;
  }
}

std::optional<Step> conversion_between(const Layout& from, const Layout& to) {
  const std::vector<std::size_t> axes = changed_axes(from, to);
  if (axes.empty()) {
    return std::nullopt;
  }
  const auto all = [&](auto holds) { return std::all_of(axes.begin(), axes.end(), holds); };
  const std::size_t first = axes.front();
  const bool in_group = cuts_last(from, axes) && cuts_last(to, axes);
  if (in_group &&
      all([&](std::size_t i) { return operation_between(from[i], to[i]) == Operation::slice; })) {
    return Step{Operation::slice, from, to, false};
  }
  const bool alike =
      all([&](std::size_t i) { return from[i] == from[first] && to[i] == to[first]; });
  const std::optional<Operation> operation = operation_between(from[first], to[first]);
  if (in_group && alike && operation && (axes.size() == 1 || *operation != Operation::send_recv)) {
    return Step{*operation, from, to, false};
  }
  const auto moved = [&](std::size_t i) {
    return from[i].kind == Kind::only && to[i].kind == Kind::only;
  };
  const bool coordinate = std::any_of(axes.begin(), axes.end(), moved);
  const bool no_sums = std::none_of(from.begin(), from.end(),
                                    [](const Placement& p) { return p.kind == Kind::partial; });
  if (coordinate && no_sums &&
      all([&](std::size_t i) { return moved(i) || (is_whole(from[i]) && is_whole(to[i])); })) {
    return Step{Operation::many_to_many, from, to, false};
  }
  return std::nullopt;
}

std::optional<Step> step_between(const Layout& from, const Layout& to) {
  std::optional<Step> step = conversion_between(from, to);
  const auto is = [&](Operation operation) { return step && step->operation == operation; };
  const bool gathers_or_sums =
      is(Operation::all_gather) || is(Operation::reduce_scatter) || is(Operation::all_reduce);
  const bool several = gathers_or_sums && changed_axes(from, to).size() > 1;
  return several || is(Operation::pad) ? std::nullopt : step;
}

Moves moves_of(const Step& step, const Shape& shape, const Mesh& mesh) {
  if (step.operation == Operation::apply || step.operation == Operation::pad) {
    return {};
  }
  if (step.operation != Operation::all_reduce) {
    return {Mover(step, shape, mesh).run(), {}};
  }
  // Its halves meet in shards of the first dimension that nothing cuts further.
  const std::vector<std::size_t> axes = changed_axes(step.from, step.to);
  Layout slices = step.to;
  for (std::size_t d = 0; d < shape.extents.size(); ++d) {
    for (const std::size_t axis : axes) {
      slices[axis] = Placement::shard(static_cast<int>(d));
    }
    if (cuts_last(slices, axes)) {
      return {Mover({Operation::reduce_scatter, step.from, slices, false}, shape, mesh).run(),
              Mover({Operation::all_gather, slices, step.to, false}, shape, mesh).run()};
    }
  }
  const Step whole{Operation::reduce_scatter, step.from, step.to,
                   false};  // every rank adds up everything
  return {Mover(whole, shape, mesh).run(), {}};
}

Bytes sent_by_a_rank(const Moves& moves, const Shape& shape, const Mesh& mesh) {
  std::vector<Bytes> sent(static_cast<std::size_t>(mesh.ranks()));
  for (const std::vector<Piece>* pieces : {&moves.pieces, &moves.second}) {
    for (const Piece& piece : *pieces) {
      if (piece.sender != piece.receiver) {
        sent[static_cast<std::size_t>(piece.sender)] += shape.element * piece.box.elements();
      }
    }
  }
  return *std::max_element(sent.begin(), sent.end());
}

std::string to_string(const Step& step, const Mesh& mesh) {
  const std::vector<std::string> names =
      mapped(changed_axes(step.from, step.to),
             [&](const std::size_t axis) { return mesh.axes[axis].name; });
  if (names.empty()) {
    return std::string(name_of(step.operation));
  }
  return fmt::format("{} {}", name_of(step.operation), fmt::join(names, " "));
}

}  // namespace orrery::layout
