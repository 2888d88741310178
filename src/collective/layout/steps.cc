// SPDX-License-Identifier: Apache-2.0
#include "collective/layout/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace orrery::layout {
namespace {

using Kind = Placement::Kind;

/// A dimension's slices on this axis can be taken or undone without moving others: no earlier axis
/// cuts them further.
bool cuts_last(const Layout& layout, std::size_t axis, int dimension) {
  return std::none_of(layout.begin(), layout.begin() + static_cast<std::ptrdiff_t>(axis),
                      [&](const Placement& p) { return p == Placement::shard(dimension); });
}

/// The same of several axes that change together: what cuts an axis's slices further changes too.
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

std::optional<Operation> single(const Layout& from, const Layout& to, std::size_t axis) {
  const Placement& a = from[axis];
  const Placement& b = to[axis];
  const bool takes = b.kind != Kind::shard || cuts_last(to, axis, b.value);
  const bool gives = a.kind != Kind::shard || cuts_last(from, axis, a.value);
  if (!takes || !gives) {
    return std::nullopt;
  }
  if (a.kind == Kind::replicate && b.kind == Kind::shard) {
    return Operation::slice;
  }
  if (a.kind == Kind::shard && b.kind == Kind::replicate) {
    return Operation::all_gather;
  }
  if (a.kind == Kind::partial) {
    return b.kind == Kind::shard       ? std::optional(Operation::reduce_scatter)
           : b.kind == Kind::replicate ? std::optional(Operation::all_reduce)
                                       : std::nullopt;
  }
  if (a.kind == Kind::shard && b.kind == Kind::shard) {
    return Operation::all_to_all;
  }
  if (a.kind == Kind::only && b.kind == Kind::only) {
    return Operation::send_recv;
  }
  return std::nullopt;
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

  /// From the ranks whose boxes meet what the target needs; of equal boxes each a part, but the
  /// target's own comes from itself.
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

std::optional<Step> step_between(const Layout& from, const Layout& to) {
  const std::vector<std::size_t> axes = changed_axes(from, to);
  if (axes.empty()) {
    return std::nullopt;
  }
  if (axes.size() == 1) {
    if (const auto operation = single(from, to, axes.front())) {
      return Step{*operation, from, to, false};
    }
  }
  const auto all = [&](auto holds) { return std::all_of(axes.begin(), axes.end(), holds); };
  const bool in_group = cuts_last(from, axes) && cuts_last(to, axes);
  if (in_group && all([&](std::size_t i) {
        return from[i].kind == Kind::replicate && to[i].kind == Kind::shard;
      })) {
    return Step{Operation::slice, from, to, false};
  }
  if (in_group && all([&](std::size_t i) {
        return from[i].kind == Kind::shard && to[i].kind == Kind::shard &&
               from[i] == from[axes.front()] && to[i] == to[axes.front()];
      })) {
    return Step{Operation::all_to_all, from, to, false};
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

Moves moves_of(const Step& step, const Shape& shape, const Mesh& mesh) {
  if (step.operation == Operation::apply) {
    return {};
  }
  if (step.operation != Operation::all_reduce) {
    return {Mover(step, shape, mesh).run(), {}};
  }
  // Its halves meet in shards of the longest dimension that nothing cuts further.
  const std::size_t axis = changed_axes(step.from, step.to).front();
  Layout slices = step.to;
  for (std::size_t d = 0; d < shape.extents.size(); ++d) {
    if (cuts_last(step.to, axis, static_cast<int>(d))) {
      slices[axis] = Placement::shard(static_cast<int>(d));
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
  std::vector<std::string> names;
  for (const std::size_t axis : changed_axes(step.from, step.to)) {
    names.push_back(mesh.axes[axis].name);
  }
  if (names.empty()) {
    return std::string(name_of(step.operation));
  }
  return fmt::format("{} {}", name_of(step.operation), fmt::join(names, " "));
}

}  // namespace orrery::layout
