// SPDX-License-Identifier: Apache-2.0
// Every signature is executed: on each device the plain operator on what the forms say it has, put
// together again as the forms say, against the operator on whole tensors; values and gradients.
//
// A gradient has the dual form of its tensor: slices of slices, summands of a full tensor, whole of
// summands.
#include "planner/spmd/signatures.h"

#include <gtest/gtest.h>

#include <random>

#include "decoder_cases.h"
#include "operator_cases.h"

namespace orrery::spmd {
namespace {

bool is_whole(const Arrays& parts, Form form, const Array& whole) {
  if (form == Form::full()) {
    return close(parts[0], whole) && close(parts[1], whole);
  }
  if (form == Form::reduce()) {
    return parts[0].shape == parts[1].shape && close(sum_of(parts), whole);
  }
  return form.dimension() < parts[0].rank() && close(concatenate(parts, form.dimension()), whole);
}

/// Returns whether the devices' parts, each computed alone, are their parts of the whole.
bool runs_alike(const Case& op, const Signature& signature, std::mt19937& random) {
  Arrays whole;
  std::vector<Arrays> local(kHalves);
  for (std::size_t k = 0; k < op.shape.inputs.size(); ++k) {
    whole.push_back(random_array(op.shape.inputs[k], random));
    if (op.is_index(k)) {
      whole.back() = map(whole.back(), [&](double) {
        return static_cast<double>(random() % static_cast<unsigned>(op.below));
      });
    }
    const auto parts = spread(whole.back(), signature.inputs[k], random);
    if (!parts) {
      return false;
    }
    local[0].push_back((*parts)[0]);
    local[1].push_back((*parts)[1]);
  }
  const Arrays expected = op.execute(whole).value_or(Arrays{});
  const auto first = op.execute(local[0]);
  const auto second = op.execute(local[1]);
  if (!first || !second) {
    return false;
  }
  Arrays weights;
  std::vector<Arrays> local_weights(kHalves);
  for (std::size_t k = 0; k < expected.size(); ++k) {
    if (!is_whole({(*first)[k], (*second)[k]}, signature.outputs[k], expected[k])) {
      return false;
    }
    weights.push_back(random_array(expected[k].shape, random));
    const Arrays parts =
        spread(weights.back(), dual(signature.outputs[k]), random).value_or(Arrays(kHalves));
    local_weights[0].push_back(parts[0]);
    local_weights[1].push_back(parts[1]);
  }
  for (std::size_t k = 0; k < whole.size(); ++k) {
    if (!op.is_index(k) &&
        !is_whole({gradient(op.execute, local[0], k, local_weights[0]),
                   gradient(op.execute, local[1], k, local_weights[1])},
                  dual(signature.inputs[k]), gradient(op.execute, whole, k, weights))) {
      return false;
    }
  }
  return true;
}

TEST(Signatures, GiveWholeResultsAndGradientsButForTheUnsound) {
  const std::vector<Case> cases = all_cases();
  std::vector<std::string> left = known_operators();
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same tensors in every run
  int unsound = 0;
  for (const Case& op : cases) {
    const std::vector<Signature> signatures = signatures_of(op.shape);
    EXPECT_FALSE(signatures.empty()) << op.shape.op;
    for (const Signature& signature : signatures) {
      const bool sound = runs_alike(op, signature, random);
      EXPECT_EQ(sound, is_sound(op.shape.op, signature))
          << op.shape.op << ": " << to_string(signature);
      unsound += sound ? 0 : 1;
    }
    std::erase(left, op.shape.op);
  }
  EXPECT_TRUE(left.empty()) << left.front() << " is not executed";
  // Head-parallel attention with and without mask, three of matmul, one of the last einsum.
  EXPECT_EQ(unsound, 6);
}

TEST(Signatures, OfTheZoosOperatorsGiveWholeResultsAndGradients) {
  std::mt19937 random(2);  // NOLINT(cert-msc51-cpp): the same tensors in every run
  int executed = 0;
  for (const Case& op : decoder_cases()) {
    ASSERT_TRUE(op.execute) << op.shape.op;
    EXPECT_EQ(op.own.front().outputs.front().is_gather(), !op.shape.outputs.front().empty());
    for (const Signature& signature : op.own) {
      EXPECT_TRUE(runs_alike(op, signature, random)) << op.shape.op << ": " << to_string(signature);
      ++executed;
    }
  }
  EXPECT_GT(executed, 200);
}

TEST(Signatures, TheSumOfSummandsIsMissingThoughItWouldBeSound) {
  const Case add = binary("add", {2, 4, 2}, [](double a, double b) { return a + b; });
  const Signature sums{{Form::reduce(), Form::reduce()}, {Form::reduce()}};
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same tensors in every run
  EXPECT_TRUE(runs_alike(add, sums, random));
  const auto known = signatures_of(add.shape);
  EXPECT_EQ(std::count(known.begin(), known.end(), sums), 0);
}

TEST(Signatures, ExecutionRejectsWhatIsWrong) {
  const Case relu = simple_cases().front();
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same tensors in every run
  EXPECT_FALSE(runs_alike(relu, {{Form::reduce()}, {Form::reduce()}}, random));
  EXPECT_FALSE(runs_alike(relu, {{Form::gather(0)}, {Form::gather(1)}}, random));
}

TEST(Conversions, TheGradientOfASliceIsWholeOnlyAfterAnAllGather) {
  // Each device has all of x and takes its half. What it knows of the gradient is 0 in the other
  // half: free, and right as a summand. But it is not the whole gradient, which each device has to
  // have where gradients of whole tensors are whole: that takes the other device's half, an
  // all-gather, for which the published cost has no charge.
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same tensors in every run
  const Shape shape{4, 2};
  const Array weights = random_array(shape, random);
  Arrays known;
  Arrays halves;
  for (const std::int64_t device : {0, 1}) {
    halves.push_back(slice(weights, 0, device, kHalves));
    const Execute take = [device](const Arrays& in) {
      return Arrays{slice(in[0], 0, device, kHalves)};
    };
    known.push_back(gradient(take, {random_array(shape, random)}, 0, {halves.back()}));
    EXPECT_FALSE(close(known.back(), weights));
  }
  EXPECT_TRUE(close(sum_of(known), weights));
  EXPECT_TRUE(close(concatenate(halves, 0), weights));
  const auto kinds = conversion(Form::full(), Form::gather(0));
  ASSERT_TRUE(kinds);
  EXPECT_EQ(kinds->published, Operation::slice);
  EXPECT_EQ(kinds->gradient, Operation::all_gather);
}

}  // namespace
}  // namespace orrery::spmd
