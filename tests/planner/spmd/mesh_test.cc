// SPDX-License-Identifier: Apache-2.0
// Two axes executed: every pair of sound signatures and every step on 2 x 2 devices, values and
// gradients, as signatures_test.cc does it on one axis. Device (i, j) stands at i + 2 j.
#include "planner/spmd/mesh.h"

#include <gtest/gtest.h>

#include <random>

#include "operator_cases.h"

namespace orrery::spmd {
namespace {

using Parts = std::optional<Arrays>;

/// By axis 1, and each part by axis 0; copies along axis 1 are spread alike.
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
    if (k == op.indices) {
      whole.back() = map(whole.back(), [&](double) {
        return static_cast<double>(random() % static_cast<unsigned>(op.below));
      });
    }
  }
  return whole;
}

/// Nothing where slices are uneven.
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
    for (std::size_t device = 0; device < 4 && k != op.indices; ++device) {
      gradients.push_back(gradient(op.execute, (*local)[device], k, local_weights[device]));
    }
    if (k != op.indices && !is_whole_mesh(gradients, dual(input_form(inner, outer, k)),
                                          gradient(op.execute, whole, k, weights))) {
      return false;
    }
  }
  return true;
}

TEST(Mesh, EveryPairOfSoundSignaturesGivesWholeResultsAndGradients) {
  std::mt19937 random(3);  // NOLINT(cert-msc51-cpp): the same tensors in every run
  int executed = 0;
  for (const Case& op : all_cases()) {
    const std::vector<Signature> all = signatures_of(op.shape);
    for (const Signature& inner : all) {
      for (const Signature& outer : all) {
        if (!is_sound(op.shape.op, inner) || !is_sound(op.shape.op, outer)) {
          continue;
        }
        // Turned round, a pair has the same parts on other devices.
        const auto sound = runs_alike(op, inner, outer, &inner <= &outer, random);
        // Two heads or groups are not enough for four devices; mesh_prices.h keeps them whole.
        const bool cuts_heads =
            (consists_of_heads(op.shape.op) || consists_of_groups(op.shape.op)) &&
            inner.outputs[0] == Form::gather(2) && outer == inner;
        EXPECT_EQ(sound.value_or(!cuts_heads), !cuts_heads)
            << op.shape.op << ": " << to_string(inner) << " x " << to_string(outer);
        executed += sound ? 1 : 0;
      }
    }
  }
  EXPECT_GT(executed, 500);
}

/// The devices of each group of a step, by rank.
std::vector<std::vector<std::size_t>> groups_of(MeshGroup group) {
  return group == MeshGroup::inner   ? std::vector<std::vector<std::size_t>>{{0, 1}, {2, 3}}
         : group == MeshGroup::outer ? std::vector<std::vector<std::size_t>>{{0, 2}, {1, 3}}
                                     : std::vector<std::vector<std::size_t>>{{0, 1, 2, 3}};
}

/// Parts of a whole in a form, of as many devices as the group has.
Parts spread_group(const Array& whole, Form form, std::size_t count, std::mt19937& random) {
  if (count == 2) {
    return spread(whole, form, random);
  }
  return spread_mesh(whole, {form, form}, random);
}

/// Each group on its own: what its parts are parts of, spread anew; summands of equal tensors
/// alike, as a collective makes them.
Parts convert(const Arrays& parts, MeshGroup group, Form from, Form to, std::mt19937& random) {
  Arrays made = parts;
  const auto seed = random();
  for (const std::vector<std::size_t>& ranks : groups_of(group)) {
    std::mt19937 alike(seed);
    Arrays own;
    for (const std::size_t rank : ranks) {
      own.push_back(parts[rank]);
    }
    const auto whole = join(own, from);
    const Parts anew = whole ? spread_group(*whole, to, ranks.size(), alike) : std::nullopt;
    if (!anew) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      made[ranks[i]] = (*anew)[i];
    }
  }
  return made;
}

constexpr std::array kForms{Form::full(), Form::reduce(), Form::gather(0), Form::gather(1)};

TEST(Mesh, StepsGiveTheirFormsForwardAndTheDualOnesBackward) {
  std::mt19937 random(5);  // NOLINT(cert-msc51-cpp): the same tensors in every run
  const Array whole = random_array({8, 8}, random);
  int executed = 0;
  for (const Form inner : kForms) {
    for (const Form outer : kForms) {
      const MeshForm form(inner, outer);
      for (const MeshStep& step : steps_from(form, 2)) {
        if (step.to == Form::replicate()) {
          continue;
        }
        const MeshForm next = after(form, step);
        const Parts forward =
            convert(*spread_mesh(whole, form, random), step.group, step.from, step.to, random);
        EXPECT_TRUE(forward && is_whole_mesh(*forward, next, whole))
            << to_string(form) << ", " << name_of(step.group) << " to " << to_string(step.to);
        const Parts backward = convert(*spread_mesh(whole, dual(next), random), step.group,
                                       dual(step.to), dual(step.from), random);
        EXPECT_TRUE(backward && is_whole_mesh(*backward, dual(form), whole))
            << to_string(form) << ", gradient of " << name_of(step.group);
        ++executed;
      }
    }
  }
  EXPECT_GT(executed, 60);
}

TEST(Mesh, AxisOneLeavesSlicesAloneThatAxisZeroCutsAgain) {
  // Rows 0 to 7 in slices of slices: ranks 0 and 2 have rows 0-1 and 4-5. What they gather, 0 1 4
  // 5, is not the first half that form (gather_0, full) says.
  std::mt19937 random(5);  // NOLINT(cert-msc51-cpp): the same tensors in every run
  const Array whole = random_array({8, 8}, random);
  const MeshForm form(Form::gather(0), Form::gather(0));
  const auto gathered = convert(*spread_mesh(whole, form, random), MeshGroup::outer,
                                Form::gather(0), Form::full(), random);
  ASSERT_TRUE(gathered);
  EXPECT_FALSE(is_whole_mesh(*gathered, {Form::gather(0), Form::full()}, whole));
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
