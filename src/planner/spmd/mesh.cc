// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh.h"

namespace orrery::spmd {
namespace {

constexpr std::size_t kInner = 0;
constexpr std::size_t kOuter = 1;

/// Returns whether nothing but what the step says changes: its value may stay as it is.
bool is_one_step(const MeshForm& form, const MeshStep& step) {
  const graph::Layout from = form.held().value;
  const graph::Layout to = after(form, step).held().value;
  return from == to || layout::conversion_between(from, to);
}

}  // namespace

graph::Held MeshForm::held() const {
  return {.value = {forms_[kInner].value(), forms_[kOuter].value()},
          .gradient = {forms_[kInner].gradient(), forms_[kOuter].gradient()}};
}

std::int64_t MeshForm::parts(const Mesh& mesh) const {
  return (forms_[kInner].is_gather() ? mesh[kInner] : 1) *
         (forms_[kOuter].is_gather() ? mesh[kOuter] : 1);
}

std::int64_t MeshForm::parts(const Mesh& mesh, int dimension) const {
  const Form slice = Form::gather(dimension);
  return (forms_[kInner] == slice ? mesh[kInner] : 1) *
         (forms_[kOuter] == slice ? mesh[kOuter] : 1);
}

std::string to_string(const MeshForm& form) {
  return to_string(form[kInner]) + " x " + to_string(form[kOuter]);
}

std::optional<MeshForm> parse_mesh_form(std::string_view text) {
  constexpr std::string_view kBetween = " x ";
  const std::size_t at = text.find(kBetween);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const auto inner = parse_form(text.substr(0, at));
  const auto outer = parse_form(text.substr(at + kBetween.size()));
  return inner && outer ? std::optional(MeshForm(*inner, *outer)) : std::nullopt;
}

std::string to_string(const Mesh& mesh) {
  return std::to_string(mesh[kInner]) + "x" + std::to_string(mesh[kOuter]);
}

std::int64_t members_of(MeshGroup group, const Mesh& mesh) {
  return group == MeshGroup::inner   ? mesh[kInner]
         : group == MeshGroup::outer ? mesh[kOuter]
                                     : devices_of(mesh);
}

std::vector<MeshStep> steps_from(const MeshForm& form, int rank) {
  std::vector<MeshStep> steps;
  const auto add = [&](const MeshStep& step) {
    if (conversion(step.from, step.to) && is_one_step(form, step)) {
      steps.push_back(step);
    }
  };
  for (int code = 0; code < Form::gather(rank).code(); ++code) {
    const Form to = Form::of_code(code);
    add({MeshGroup::inner, form[kInner], to});
    add({MeshGroup::outer, form[kOuter], to});
    if (form[kInner] == form[kOuter]) {
      add({MeshGroup::all, form[kInner], to});
    }
  }
  return steps;
}

MeshForm after(MeshForm form, const MeshStep& step) {
  if (step.group != MeshGroup::outer) {
    form[kInner] = step.to;
  }
  if (step.group != MeshGroup::inner) {
    form[kOuter] = step.to;
  }
  return form;
}

}  // namespace orrery::spmd
