// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/form.h"

#include <algorithm>
#include <charconv>

#include "base/lists.h"

namespace orrery::spmd {
namespace {

constexpr std::string_view kGatherPrefix = "gather_";

std::string words(const std::vector<Form>& forms) {
  return joined(forms, " ", [&](const Form form) { return to_string(form); });
}

/// Returns what moves between two placements.
Operation between(const graph::Placement& from, const graph::Placement& to) {
  const Operation operation = layout::operation_between(from, to).value_or(Operation::slice);
  return layout::moves(operation) ? operation : Operation::slice;
}

}  // namespace

std::string to_string(Form form) {
  if (form.is_gather()) {
    return std::string(kGatherPrefix) + std::to_string(form.dimension());
  }
  return form == Form::full() ? "full" : form == Form::reduce() ? "reduce" : "replicate";
}

std::optional<Form> parse_form(std::string_view text) {
  for (const Form form : {Form::full(), Form::reduce(), Form::replicate()}) {
    if (text == to_string(form)) {
      return form;
    }
  }
  if (!text.starts_with(kGatherPrefix)) {
    return std::nullopt;
  }
  text.remove_prefix(kGatherPrefix.size());
  int dimension = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), dimension);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return whole && dimension >= 0 && dimension < Form::kDimensions
             ? std::optional(Form::gather(dimension))
             : std::nullopt;
}

graph::Placement Form::value() const {
  return is_gather()         ? graph::Placement::shard(dimension())
         : *this == reduce() ? graph::Placement::partial()
                             : graph::Placement::replicate();
}

graph::Placement Form::gradient() const {
  return *this == full() ? graph::Placement::partial()
         : is_gather()   ? value()
                         : graph::Placement::replicate();
}

std::optional<Conversion> conversion(Form from, Form to) {
  if (from == to || !(to.is_gather() || to == Form::full())) {
    return std::nullopt;
  }
  const Operation backward = between(to.gradient(), from.gradient());
  const bool cuts = to.is_gather();
  return Conversion{
      .forward = between(from.value(), to.value()),
      .published = cuts && from == Form::replicate() ? Operation::all_reduce : backward,
      .gradient = cuts && from == Form::full() ? Operation::all_gather : backward};
}

bool Signature::divides_work() const {
  const auto sliced = [](Form form) { return form.is_gather(); };
  return std::any_of(inputs.begin(), inputs.end(), sliced) ||
         std::any_of(outputs.begin(), outputs.end(), sliced);
}

std::string to_string(const Signature& signature) {
  const std::string inputs = words(signature.inputs);
  return inputs + (inputs.empty() ? "-> " : " -> ") + words(signature.outputs);
}

}  // namespace orrery::spmd
