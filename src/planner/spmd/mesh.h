// SPDX-License-Identifier: Apache-2.0
/// Tensors on a mesh of two axes (graph/layout.h), a form (form.h) for each.
///
/// Device (i, j) has rank i + N0 j: groups of axis 0 are neighbours, those of axis 1 stand N0
/// apart. Where both axes slice one dimension, axis 1 cuts it and axis 0 cuts its slices, so that
/// ranks hold slices in their order.
///
/// A step converts the form of one axis within its groups, as form.h says, or equal forms of both
/// axes by one collective of all devices: what layout::conversion_between() knows. So axis 1 alone
/// converts no slices of a dimension that axis 0 slices as well, neither from nor to them: ranks
/// would hold slices in another order.
///
/// An operator runs by a signature for each axis: what a device has by that of axis 1 is a smaller
/// tensor, of which it has its part by that of axis 0. tests/planner/spmd executes every pair of
/// signatures, and every step by collective/layout/move.h, on 2 x 2 devices, values and gradients.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spmd/form.h"

namespace orrery::spmd {

inline constexpr std::size_t kAxes = 2;
using Mesh = std::array<std::int64_t, kAxes>;  ///< devices along each axis

constexpr std::int64_t devices_of(const Mesh& mesh) {
  return mesh[0] * mesh[1];
}

class MeshForm {
 public:
  /// The most dimensions with which codes of forms fit into three bits.
  static constexpr int kDimensions = 5;
  static constexpr int kCodes = 64;

  constexpr MeshForm() = default;
  constexpr MeshForm(Form inner, Form outer) : forms_{inner, outer} {}
  static constexpr MeshForm of_code(int code) {
    return {Form::of_code(code % 8), Form::of_code(code / 8)};
  }

  /// Returns the form's code, which is below kCodes. Requires dimensions below kDimensions.
  constexpr int code() const { return forms_[0].code() + 8 * forms_[1].code(); }
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

/// Returns "gather_0 x full".
std::string to_string(const MeshForm& form);
std::optional<MeshForm> parse_mesh_form(std::string_view text);
/// Returns "8x4".
std::string to_string(const Mesh& mesh);

/// A MeshGroup names the devices that communicate.
enum class MeshGroup : std::uint8_t { inner, outer, all };
constexpr auto named_values(MeshGroup) {
  return std::to_array<Named<MeshGroup>>({
      {MeshGroup::inner, "inner", "neighbours: axis 0"},
      {MeshGroup::outer, "outer", "devices N0 apart: axis 1"},
      {MeshGroup::all, "all", "all devices"},
  });
}

std::int64_t members_of(MeshGroup group, const Mesh& mesh);

struct MeshStep {
  MeshGroup group = MeshGroup::inner;
  Form from{};
  Form to{};
  friend bool operator==(const MeshStep&, const MeshStep&) = default;
};

/// Returns every step from this form of a tensor with so many dimensions, in a fixed order.
std::vector<MeshStep> steps_from(const MeshForm& form, int rank);

/// Requires a step from this form.
MeshForm after(MeshForm form, const MeshStep& step);

}  // namespace orrery::spmd
