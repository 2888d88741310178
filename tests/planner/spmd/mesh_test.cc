// SPDX-License-Identifier: Apache-2.0
// Two axes executed: every pair of sound signatures and every step on 2 x 2 devices, values and
// gradients, as signatures_test.cc does it on one axis. Device (i, j) stands at i + 2 j.
#include "planner/spmd/mesh.h"

#include <gtest/gtest.h>

#include <random>

#include "collective/layout/move.h"
#include "decoder_cases.h"
#include "operator_cases.h"

namespace orrery::spmd {
namespace {

using Parts = std::optional<Arrays>;

/// Spreads an array by axis 1, and each part by axis 0; copies along axis 1 are spread alike.
Parts spread_mesh(const Array& whole, const MeshForm& form, std::mt19937& random) {
  const Parts outer = spread(whole, form[1], random);
  Arrays all;
  for (const Array& part : outer.value_or(Arrays{})) {
    if (form[1] == Form::full() && !all.empty()) {
      all.insert(all.end(), {all[0], all[1]});
      break;
    }
    const Parts inner = spread(part, form[0], random);
    if (!inner) {
      return std::nullopt;
    }
    all.insert(all.end(), inner->begin(), inner->end());
  }
  return outer ? Parts(all) : std::nullopt;
}

/// Joins the parts of an axis to what they are parts of; nothing where copies differ.
std::optional<Array> join(const Arrays& parts, Form form) {
  if (form == Form::full()) {
    return std::ranges::all_of(parts, [&](const Array& part) { return close(part, parts[0]); })
               ? std::optional(parts[0])
               : std::nullopt;
  }
  const bool alike =
      std::ranges::all_of(parts, [&](const Array& part) { return part.shape == parts[0].shape; });
  if (!alike || (form.is_gather() && form.dimension() >= parts[0].rank())) {
    return std::nullopt;
  }
  return form == Form::reduce() ? sum_of(parts) : concatenate(parts, form.dimension());
}

bool is_whole_mesh(const Arrays& parts, const MeshForm& form, const Array& whole) {
  const auto lower = join({parts[0], parts[1]}, form[0]);
  const auto upper = join({parts[2], parts[3]}, form[0]);
  const auto all = lower && upper ? join({*lower, *upper}, form[1]) : std::nullopt;
  return all && close(*all, whole);
}

MeshForm dual(const MeshForm& form) {
  return {dual(form[0]), dual(form[1])};
}
MeshForm input_form(const Signature& inner, const Signature& outer, std::size_t k) {
  return {inner.inputs[k], outer.inputs[k]};
}
MeshForm output_form(const Signature& inner, const Signature& outer, std::size_t k) {
  return {inner.outputs[k], outer.outputs[k]};
}

/// Inputs of every device; nothing where slices are uneven.
std::optional<std::vector<Arrays>> inputs_of(const Case& op, const Signature& inner,
                                             const Signature& outer, const Arrays& whole,
                                             std::mt19937& random) {
  std::vector<Arrays> local(4);
  for (std::size_t k = 0; k < op.shape.inputs.size(); ++k) {
    const Parts parts = spread_mesh(whole[k], input_form(inner, outer, k), random);
    if (!parts) {
      return std::nullopt;
    }
    for (std::size_t device = 0; device < 4; ++device) {
      local[device].push_back((*parts)[device]);
    }
  }
  return local;
}

Arrays draw_inputs(const Case& op, std::mt19937& random) {
  Arrays whole;
  for (std::size_t k = 0; k < op.shape.inputs.size(); ++k) {
    whole.push_back(random_array(op.shape.inputs[k], random));
    if (op.is_index(k)) {
      whole.back() = map(whole.back(), [&](double) {
        return static_cast<double>(random() % static_cast<unsigned>(op.below));
      });
    }
  }
  return whole;
}

/// Returns whether parts run as the whole does; nothing where slices are uneven.
std::optional<bool> runs_alike(const Case& op, const Signature& inner, const Signature& outer,
                               bool with_gradients, std::mt19937& random) {
  const Arrays whole = draw_inputs(op, random);
  const auto local = inputs_of(op, inner, outer, whole, random);
  if (!local) {
    return std::nullopt;
  }
  const Arrays expected = op.execute(whole).value_or(Arrays{});
  for (std::size_t k = 0; k < expected.size(); ++k) {
    if (!spread_mesh(expected[k], output_form(inner, outer, k), random)) {
      return std::nullopt;
    }
  }
  std::vector<Arrays> made;
  for (const Arrays& inputs : *local) {
    const auto one = op.execute(inputs);
    if (!one) {
      return false;
    }
    made.push_back(*one);
  }
  Arrays weights;
  std::vector<Arrays> local_weights(4);
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const MeshForm form = output_form(inner, outer, k);
    if (!is_whole_mesh({made[0][k], made[1][k], made[2][k], made[3][k]}, form, expected[k])) {
      return false;
    }
    weights.push_back(random_array(expected[k].shape, random));
    const Arrays parts =
        spread_mesh(weights.back(), dual(form), random).value_or(Arrays(kHalves * kHalves));
    for (std::size_t device = 0; device < 4; ++device) {
      local_weights[device].push_back(parts[device]);
    }
  }
  for (std::size_t k = 0; with_gradients && k < whole.size(); ++k) {
    Arrays gradients;
    for (std::size_t device = 0; device < 4 && !op.is_index(k); ++device) {
      gradients.push_back(gradient(op.execute, (*local)[device], k, local_weights[device]));
    }
    if (!op.is_index(k) && !is_whole_mesh(gradients, dual(input_form(inner, outer, k)),
                                          gradient(op.execute, whole, k, weights))) {
      return false;
    }
  }
  return true;
}

/// Returns how many pairs are executed; all are right.
int execute_pairs(const std::vector<Case>& cases, bool with_gradients) {
  std::mt19937 random(3);  // NOLINT(cert-msc51-cpp): the same tensors in every run
  int executed = 0;
  for (const Case& op : cases) {
    const std::vector<Signature> all = op.signatures();
    for (const Signature& inner : all) {
      for (const Signature& outer : all) {
        if (!is_sound(op.shape.op, inner) || !is_sound(op.shape.op, outer)) {
          continue;
        }
        // Two heads or groups are not enough for four devices; mesh_prices.h keeps them whole.
        if (op.keeps_parts && inner.outputs[0] == Form::gather(2) && outer == inner) {
          continue;
        }
        // Turned round, a pair has the same parts on other devices.
        if (with_gradients && &outer < &inner) {
          continue;
        }
        const auto sound = runs_alike(op, inner, outer, with_gradients, random);
        EXPECT_TRUE(sound.value_or(true))
            << op.shape.op << ": " << to_string(inner) << " x " << to_string(outer);
        executed += sound ? 1 : 0;
      }
    }
  }
  return executed;
}

TEST(Mesh, EveryPairOfSoundSignaturesGivesWholeResultsAndGradients) {
  EXPECT_GT(execute_pairs(all_cases(), true), 200);
}

TEST(Mesh, EveryPairOfTheZoosSignaturesGivesWholeResults) {
  EXPECT_GT(execute_pairs(decoder_cases(), false), 500);
}

const graph::Mesh kTwoByTwo{{{"inner", 2}, {"outer", 2}}};
const graph::Shape kSquare{{8, 8}, Bytes(8)};

/// The rank of equal coordinates on axes of summands, and 0 on others.
std::int64_t summand_of(const graph::Layout& layout, std::int64_t rank) {
  std::int64_t number = 0;
  for (std::size_t axis = 0; axis < layout.size(); ++axis) {
    if (layout[axis] == graph::Placement::partial()) {
      number += kTwoByTwo.coordinate(rank, axis) * kTwoByTwo.stride(axis);
    }
  }
  return number;
}

/// Random summands, copies and slices, and the whole that they are parts of.
struct Spread {
  Array whole{kSquare.extents};
  std::vector<layout::Part> parts;
};
Spread spread_by(const graph::Layout& layout, std::mt19937& random) {
  Spread made;
  std::vector<std::vector<double>> summands(4);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const std::int64_t first = summand_of(layout, rank);
    auto& own = summands[static_cast<std::size_t>(rank)];
    own = first < rank ? summands[static_cast<std::size_t>(first)]
                       : random_array(kSquare.extents, random).values;
    for (std::size_t i = 0; first == rank && i < own.size(); ++i) {
      made.whole.values[i] += own[i];
    }
  }
  made.parts = layout::scattered(kSquare, kTwoByTwo, layout, summands);
  return made;
}

/// Returns whether every rank has its box of the whole, with those that have its other summands.
bool is_whole_layout(const std::vector<layout::Part>& parts, const graph::Layout& layout,
                     const Array& whole) {
  bool alike = true;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const graph::Box box = held(kSquare, kTwoByTwo, layout, rank);
    Array expected({box.end[0] - box.begin[0], box.end[1] - box.begin[1]});
    Array sum(expected.shape);
    for_each_index(expected.shape, [&](const Shape& at) {
      expected.at(at) = whole.at({box.begin[0] + at[0], box.begin[1] + at[1]});
    });
    for (std::int64_t other = 0; other < 4; ++other) {
      const bool adds = rank - summand_of(layout, rank) == other - summand_of(layout, other);
      const auto& values = parts[static_cast<std::size_t>(other)].values;
      for (std::size_t i = 0; adds && i < sum.values.size(); ++i) {
        sum.values[i] += values.at(i);
      }
    }
    alike = alike && close(sum, expected);
  }
  return alike;
}

/// Returns whether the reference executor makes the whole of `to` of what `from` is the whole of.
bool converts(const graph::Layout& from, const graph::Layout& to, std::mt19937& random) {
  const Spread before = spread_by(from, random);
  std::vector<layout::Step> steps;
  if (const auto step = layout::conversion_between(from, to)) {
    steps.push_back(*step);
  }
  const auto after =
      layout::move(before.parts, steps, {kTwoByTwo, kSquare, std::nullopt, from, to});
  return after && (from == to || !steps.empty()) && is_whole_layout(*after, to, before.whole);
}

TEST(Mesh, StepsConvertValuesForwardAndGradientsBackward) {
  std::mt19937 random(5);  // NOLINT(cert-msc51-cpp): the same tensors in every run
  constexpr std::array kForms{Form::full(), Form::reduce(), Form::replicate(), Form::gather(0),
                              Form::gather(1)};
  int executed = 0;
  for (const Form inner : kForms) {
    for (const Form outer : kForms) {
      const MeshForm form(inner, outer);
      for (const MeshStep& step : steps_from(form, 2)) {
        const graph::Held from = form.held();
        const graph::Held to = after(form, step).held();
        EXPECT_TRUE(converts(from.value, to.value, random))
            << to_string(form) << ", " << name_of(step.group) << " to " << to_string(step.to);
        EXPECT_TRUE(converts(to.gradient, from.gradient, random))
            << to_string(form) << ", gradient of " << name_of(step.group);
        ++executed;
      }
    }
  }
  EXPECT_GT(executed, 90);
}

TEST(Mesh, AxisOneLeavesSlicesAloneThatAxisZeroCutsAgain) {
  // Rows 0 to 7 in slices of slices: ranks 0 and 2 have rows 0-1 and 4-5. What they gather, 0 1 4
  // 5, is not the first half that form (gather_0, full) says.
  const MeshForm form(Form::gather(0), Form::gather(0));
  EXPECT_EQ(held(kSquare, kTwoByTwo, form.held().value, 0).end[0], 2);
  EXPECT_EQ(held(kSquare, kTwoByTwo, form.held().value, 2).begin[0], 4);
  const MeshForm gathered(Form::gather(0), Form::full());
  EXPECT_EQ(held(kSquare, kTwoByTwo, gathered.held().value, 0).end[0], 4);
  for (const MeshStep& step : steps_from(form, 2)) {
    EXPECT_NE(step.group, MeshGroup::outer);
  }
}

TEST(Mesh, FormsHaveCodesAndParts) {
  const Mesh mesh{8, 4};
  const MeshForm form(Form::gather(0), Form::gather(0));
  EXPECT_EQ(form.parts(mesh), 32);
  EXPECT_EQ(form.parts(mesh, 0), 32);
  EXPECT_EQ(form.parts(mesh, 1), 1);
  EXPECT_EQ(MeshForm(Form::reduce(), Form::gather(2)).parts(mesh), 4);
  EXPECT_EQ(MeshForm::of_code(form.code()), form);
  EXPECT_EQ(to_string(MeshForm(Form::full(), Form::gather(2))), "full x gather_2");
  EXPECT_EQ(members_of(MeshGroup::outer, mesh), 4);
}

}  // namespace
}  // namespace orrery::spmd
