// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "planner/spmd/graph_builder.h"

namespace orrery::spmd {
namespace {

constexpr std::size_t kMiddle = 1;
/// Axes of each MeshGroup, a bit for each.
constexpr std::array<unsigned, kMeshGroups> kSpans{1, 2, 4, 3, 5, 6, 7};

/// Returns whether nothing but what the step says changes: its value may stay as it is.
bool is_one_step(const MeshForm& form, const MeshStep& step, const Mesh& mesh) {
  const graph::Layout from = form.held().value;
  const graph::Layout to = after(form, step, mesh).held().value;
  return from == to || layout::conversion_between(from, to);
}

/// Returns the form that the axes of a group have alike; nothing where they differ.
std::optional<Form> common_form(const MeshForm& form, MeshGroup group, const Mesh& mesh) {
  std::optional<Form> common;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    if (spans(group, axis, mesh)) {
      if (common && *common != form[axis]) {
        return std::nullopt;
      }
      common = form[axis];
    }
  }
  return common;
}

}  // namespace

std::optional<Mesh> mesh_of(const std::vector<std::int64_t>& extents) {
  if (extents.size() < 2 || extents.size() > kAxes) {
    return std::nullopt;
  }
  std::int64_t left = kMostDevices;
  for (const std::int64_t extent : extents) {
    if (extent < 1 || extent > left) {
      return std::nullopt;
    }
    left /= extent;
  }
  return extents.size() == 2 ? mesh_of(extents[0], extents[1])
                             : Mesh{extents[0], extents[1], extents[2]};
}

std::vector<std::size_t> axes_of(const Mesh& mesh) {
  return mesh[kMiddle] == 1 ? std::vector<std::size_t>{0, 2} : std::vector<std::size_t>{0, 1, 2};
}

graph::Held MeshForm::held() const {
  graph::Held held;
  for (const Form form : forms_) {
    held.value.push_back(form.value());
    held.gradient.push_back(form.gradient());
  }
  return held;
}

std::int64_t MeshForm::parts(const Mesh& mesh) const {
  std::int64_t parts = 1;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    parts *= forms_[axis].is_gather() ? mesh[axis] : 1;
  }
  return parts;
}

std::int64_t MeshForm::parts(const Mesh& mesh, int dimension) const {
  std::int64_t parts = 1;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    parts *= forms_[axis] == Form::gather(dimension) ? mesh[axis] : 1;
  }
  return parts;
}

std::vector<MeshForm> forms_on(const Mesh& mesh, int rank) {
  const int count = Form::gather(rank).code();
  std::vector<MeshForm> forms{MeshForm()};
  for (std::size_t axis = kAxes; axis-- > 0;) {
    std::vector<MeshForm> more;
    for (const MeshForm& form : forms) {
      for (int code = 0; code < (mesh[axis] > 1 ? count : 1); ++code) {
        more.push_back(form);
        more.back()[axis] = Form::of_code(code);
      }
    }
    forms = std::move(more);
  }
  return forms;
}

std::string to_string(const MeshForm& form, const Mesh& mesh) {
  std::vector<std::string> names;
  for (const std::size_t axis : axes_of(mesh)) {
    names.push_back(to_string(form[axis]));
  }
  return fmt::format("{}", fmt::join(names, " x "));
}

std::optional<MeshForm> parse_mesh_form(std::string_view text, const Mesh& mesh) {
  constexpr std::string_view kBetween = " x ";
  MeshForm found;
  const std::vector<std::size_t> axes = axes_of(mesh);
  for (const std::size_t axis : axes) {
    const bool last = axis == axes.back();
    const std::size_t at = last ? text.size() : text.find(kBetween);
    const auto form = at == std::string_view::npos ? std::nullopt : parse_form(text.substr(0, at));
    if (!form) {
      return std::nullopt;
    }
    found[axis] = *form;
    text.remove_prefix(last ? at : at + kBetween.size());
  }
  return found;
}

std::string to_string(const Mesh& mesh) {
  std::vector<std::int64_t> extents;
  for (const std::size_t axis : axes_of(mesh)) {
    extents.push_back(mesh[axis]);
  }
  return fmt::format("{}", fmt::join(extents, "x"));
}

bool spans(MeshGroup group, std::size_t axis, const Mesh& mesh) {
  return (kSpans[static_cast<std::size_t>(group)] >> axis & 1U) != 0 && mesh[axis] > 1;
}

std::vector<MeshGroup> groups_on(const Mesh& mesh) {
  std::vector<MeshGroup> groups;
  std::vector<unsigned> known;
  for (const auto& [group, name, meaning] : kNames<MeshGroup>) {
    unsigned axes = 0;
    for (std::size_t axis = 0; axis < kAxes; ++axis) {
      axes |= spans(group, axis, mesh) ? 1U << axis : 0;
    }
    const auto same = std::ranges::find(known, axes);
    if (axes == 0) {
      continue;
    }
    if (same == known.end()) {
      known.push_back(axes);
      groups.push_back(group);
    } else if (group == MeshGroup::all && axes != kSpans[0] && axes != kSpans[1] &&
               axes != kSpans[2]) {
      groups[static_cast<std::size_t>(same - known.begin())] = group;
    }
  }
  return groups;
}

std::int64_t members_of(MeshGroup group, const Mesh& mesh) {
  std::int64_t members = 1;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    members *= spans(group, axis, mesh) ? mesh[axis] : 1;
  }
  return members;
}

graph::Members communicators(MeshGroup group, const Mesh& mesh) {
  graph::Members found;
  std::int64_t stride = 1;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    if (spans(group, axis, mesh)) {
      if (!found.digits.empty() &&
          found.digits.back().stride * found.digits.back().size == stride) {
        found.digits.back().size *= mesh[axis];
      } else {
        found.digits.push_back({mesh[axis], stride});
      }
    }
    stride *= mesh[axis];
  }
  return found;
}

std::vector<MeshStep> steps_from(const MeshForm& form, int rank, const Mesh& mesh) {
  std::vector<MeshStep> steps;
  const std::vector<MeshGroup> groups = groups_on(mesh);
  for (int code = 0; code < Form::gather(rank).code(); ++code) {
    for (const MeshGroup group : groups) {
      const std::optional<Form> from = common_form(form, group, mesh);
      const MeshStep step{group, from.value_or(Form()), Form::of_code(code)};
      if (from && conversion(*from, step.to) && is_one_step(form, step, mesh)) {
        steps.push_back(step);
      }
    }
  }
  return steps;
}

MeshForm after(MeshForm form, const MeshStep& step, const Mesh& mesh) {
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    if (spans(step.group, axis, mesh)) {
      form[axis] = step.to;
    }
  }
  return form;
}

}  // namespace orrery::spmd
