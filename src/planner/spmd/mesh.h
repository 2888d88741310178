// SPDX-License-Identifier: Apache-2.0
/// Tensors on a mesh of two or three axes (graph/layout.h), a form (form.h) for each.
///
/// Device (i, j, k) has rank i + N0 (j + N1 k): groups of the inner axis are neighbours, those of
/// the middle one stand N0 apart, those of the outer one N0 N1. A mesh of two axes has a middle of
/// 1. On an axis of one device every form is `full` there. Where axes slice one dimension, the
/// outer cuts first, so that ranks hold slices in their order.
///
/// A step converts the form of one axis within its groups, as form.h says, or equal forms of
/// several axes by one collective of their devices: what layout::conversion_between() knows. So an
/// axis alone converts no slices of a dimension that an axis inside it slices as well, neither from
/// nor to them: ranks would hold slices in another order.
///
/// An operator runs by a signature for each axis: what a device has by that of the outer one is a
/// smaller tensor, of which it has its part by the others. tests/planner/spmd executes every pair
/// of signatures on 2 x 2 devices and triples on 2 x 2 x 2, and every step by
/// collective/layout/move.h, values and gradients.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/members.h"
#include "planner/spmd/form.h"

namespace orrery::spmd {

inline constexpr std::size_t kAxes = 3;
using Mesh = std::array<std::int64_t, kAxes>;  ///< devices along each axis, the inner one first

constexpr std::int64_t devices_of(const Mesh& mesh) {
  return mesh[0] * mesh[1] * mesh[2];
}
/// Returns the mesh of two axes.
constexpr Mesh mesh_of(std::int64_t inner, std::int64_t outer) {
  return {inner, 1, outer};
}
/// Returns the mesh of two or three numbers, the inner axis first; nothing: they are none, or more
/// than kMostDevices.
std::optional<Mesh> mesh_of(const std::vector<std::int64_t>& extents);
/// Returns the axes that texts and files name: all, of two the first and the last.
std::vector<std::size_t> axes_of(const Mesh& mesh);

class MeshForm {
 public:
  /// The most dimensions with which codes of forms fit into three bits.
  static constexpr int kDimensions = 5;
  static constexpr int kCodes = 512;

  constexpr MeshForm() = default;
  constexpr explicit MeshForm(const std::array<Form, kAxes>& forms) : forms_(forms) {}
  /// Makes one of a mesh of two axes.
  constexpr MeshForm(Form inner, Form outer) : forms_{inner, Form::full(), outer} {}
  static constexpr MeshForm of_code(int code) {
    return MeshForm(
        {Form::of_code(code % 8), Form::of_code(code / 8 % 8), Form::of_code(code / 64)});
  }

  /// Returns the form's code, which is below kCodes. Requires dimensions below kDimensions.
  constexpr int code() const {
    return forms_[0].code() + 8 * forms_[1].code() + 64 * forms_[2].code();
  }
  constexpr Form operator[](std::size_t axis) const { return forms_[axis]; }
  constexpr Form& operator[](std::size_t axis) { return forms_[axis]; }
  graph::Held held() const;
  /// Returns the number of parts into which the mesh cuts a tensor, or one dimension of it.
  std::int64_t parts(const Mesh& mesh) const;
  std::int64_t parts(const Mesh& mesh, int dimension) const;

  friend constexpr auto operator<=>(const MeshForm&, const MeshForm&) = default;

 private:
  std::array<Form, kAxes> forms_{};
};

/// Returns every form of a tensor with so many dimensions on a mesh, by code.
std::vector<MeshForm> forms_on(const Mesh& mesh, int rank);

/// Returns "gather_0 x full", a form for each of the mesh's axes.
std::string to_string(const MeshForm& form, const Mesh& mesh);
std::optional<MeshForm> parse_mesh_form(std::string_view text, const Mesh& mesh);
/// Returns "8x4", "8x4x2".
std::string to_string(const Mesh& mesh);

/// A MeshGroup names the devices that communicate.
enum class MeshGroup : std::uint8_t {
  inner,
  middle,
  outer,
  inner_middle,
  inner_outer,
  middle_outer,
  all
};
constexpr auto named_values(MeshGroup) {
  return std::to_array<Named<MeshGroup>>({
      {MeshGroup::inner, "inner", "neighbours"},
      {MeshGroup::middle, "middle", "along the middle axis of three"},
      {MeshGroup::outer, "outer", "along the last axis, farthest apart"},
      {MeshGroup::inner_middle, "inner_middle", "of the first two axes of three"},
      {MeshGroup::inner_outer, "inner_outer", "of the first and the last axis of three"},
      {MeshGroup::middle_outer, "middle_outer", "of the last two axes of three"},
      {MeshGroup::all, "all", "all devices"},
  });
}
inline constexpr std::size_t kMeshGroups = 7;

/// Returns the groups of more than one device, each once: what is `all` is nothing else.
std::vector<MeshGroup> groups_on(const Mesh& mesh);
/// Returns whether the group has devices along the axis.
bool spans(MeshGroup group, std::size_t axis, const Mesh& mesh);
std::int64_t members_of(MeshGroup group, const Mesh& mesh);
/// Returns the communicators of the group.
graph::Members communicators(MeshGroup group, const Mesh& mesh);

struct MeshStep {
  MeshGroup group = MeshGroup::inner;
  Form from{};
  Form to{};
  friend bool operator==(const MeshStep&, const MeshStep&) = default;
};

/// Returns every step from this form of a tensor with so many dimensions, in a fixed order.
std::vector<MeshStep> steps_from(const MeshForm& form, int rank, const Mesh& mesh);

/// Requires a step from this form.
MeshForm after(MeshForm form, const MeshStep& step, const Mesh& mesh);

}  // namespace orrery::spmd
