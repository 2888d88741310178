// SPDX-License-Identifier: Apache-2.0
/// Every operator of planner/spmd/signatures.h with small shapes, to be executed.
#pragma once

#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "array.h"

namespace orrery::spmd {

inline constexpr std::int64_t kHalves = 2;  ///< devices of an axis
inline constexpr double kStep = 1e-5;       // of differences
inline constexpr double kTolerance = 1e-6;  // of values of size 1; differences err by about 1e-9

using Execute = std::function<std::optional<Arrays>(const Arrays&)>;

struct Case {
  OperatorShape shape;
  Execute execute;
  std::vector<std::size_t> indices{};  ///< inputs that hold whole numbers
  std::int64_t below = 1;              ///< which are from 0 to below - 1
  std::vector<Signature> own{};        ///< of a node of the zoo's
  bool keeps_parts = false;            ///< its columns are whole heads or groups

  bool is_index(std::size_t input) const {
    return std::ranges::find(indices, input) != indices.end();
  }
  std::vector<Signature> signatures() const { return own.empty() ? signatures_of(shape) : own; }
};

inline Array random_array(const Shape& shape, std::mt19937& random) {
  // Far from each other and from 0: no kink or change of order within a difference.
  return make(shape,
              [&](const Shape&) { return (static_cast<double>(random() % 997) - 498.25) / 400; });
}

/// Arrays whose sum is the whole.
inline Arrays summands(const Array& whole, std::mt19937& random) {
  const Array part = random_array(whole.shape, random);
  Array rest = whole;
  for (std::size_t i = 0; i < rest.values.size(); ++i) {
    rest.values[i] -= part.values[i];
  }
  return {part, rest};
}

/// Returns what every device has of a tensor; nothing where the form does not fit.
inline std::optional<Arrays> spread(const Array& whole, Form form, std::mt19937& random) {
  if (form == Form::full()) {
    return Arrays(kHalves, whole);
  }
  if (form == Form::reduce()) {
    return summands(whole, random);
  }
  if (form.dimension() >= whole.rank() || whole.extent(form.dimension()) % kHalves != 0) {
    return std::nullopt;
  }
  return Arrays{slice(whole, form.dimension(), 0, kHalves),
                slice(whole, form.dimension(), 1, kHalves)};
}

inline Form dual(Form form) {
  return form == Form::full() ? Form::reduce() : form == Form::reduce() ? Form::full() : form;
}

inline bool close(const Array& a, const Array& b) {
  if (a.shape != b.shape) {
    return false;
  }
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    if (!(std::abs(a.values[i] - b.values[i]) < kTolerance)) {
      return false;
    }
  }
  return true;
}

inline double weighted(const Arrays& outputs, const Arrays& weights) {
  double sum = 0;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    for (std::size_t i = 0; i < outputs[k].values.size(); ++i) {
      sum += outputs[k].values[i] * weights[k].values[i];
    }
  }
  return sum;
}

/// Returns the gradient of the weighted sum of the outputs, by one input.
inline Array gradient(const Execute& execute, Arrays inputs, std::size_t input,
                      const Arrays& weights) {
  Array result = inputs[input];
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    double& x = inputs[input].values[i];
    const double before = x;
    x = before + kStep;
    const double above = weighted(execute(inputs).value_or(Arrays{}), weights);
    x = before - kStep;
    const double below = weighted(execute(inputs).value_or(Arrays{}), weights);
    x = before;
    result.values[i] = (above - below) / (2 * kStep);
  }
  return result;
}

inline Case elementwise(const char* op, double (*function)(double)) {
  return {{op, {{2, 4}}, {{2, 4}}},
          [function](const Arrays& in) { return Arrays{map(in[0], function)}; }};
}

inline Case binary(const char* op, const Shape& second, double (*function)(double, double)) {
  return {{op, {{2, 4, 2}, second}, {{2, 4, 2}}}, [function](const Arrays& in) {
            return Arrays{make(in[0].shape,
                               [&](const Shape& i) { return function(in[0].at(i), in[1].at(i)); })};
          }};
}

inline Case products(const char* op, const std::string& formula, const Shape& a, const Shape& b,
                     const Shape& c) {
  return {{op, {a, b}, {c}}, [formula](const Arrays& in) -> std::optional<Arrays> {
            const auto made = einsum(formula, in[0], in[1]);
            return made ? std::optional(Arrays{*made}) : std::nullopt;
          }};
}

inline Array reshaped(const Array& x, const Shape& shape) {
  Array made(shape);
  made.values = x.values;
  return made;
}

inline Case gates(const char* op, int best) {
  return {{op, {{2, 4, 4}, {4, 2}}, {{2, 4, 2, 2}, {2, 4, 2, 2}}},
          [best](const Arrays& in) { return gating(in[0], in[1], best, 2); }};
}

inline std::optional<Arrays> run_linear(const Arrays& in) {
  const auto made = linear(in[0], in[1], in.size() > 2 ? &in[2] : nullptr);
  return made ? std::optional(Arrays{*made}) : std::nullopt;
}

inline std::optional<Arrays> run_nll_loss(const Arrays& in) {
  Array loss;
  for_each_index(in[1].shape, [&](Shape index) {
    const auto label = static_cast<std::int64_t>(in[1].at(index));
    index.insert(index.begin() + 1, label);
    loss.values[0] -= in[0].at(index);
  });
  return Arrays{loss};
}

inline std::vector<Case> simple_cases() {
  return {
      elementwise("relu", [](double x) { return x > 0 ? x : 0; }),
      elementwise("tanh", [](double x) { return std::tanh(x); }),
      elementwise("sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }),
      elementwise("sqrt", [](double x) { return std::sqrt(x + 2); }),
      // What is dropped depends on the element alone, as a random draw for each does.
      elementwise("dropout", [](double x) { return x > -0.5 ? x / 0.9 : 0; }),
      elementwise("contiguous", [](double x) { return x; }),
      elementwise("clone", [](double x) { return x; }),
      elementwise("mul", [](double x) { return 3 * x; }),
      elementwise("div", [](double x) { return x / 3; }),
      elementwise("add", [](double x) { return x + 3; }),
      binary("add", {2, 4, 2}, [](double a, double b) { return a + b; }),
      binary("add", {1, 4, 2}, [](double a, double b) { return a + b; }),
      binary("mul", {2, 4, 2}, [](double a, double b) { return a * b; }),
      binary("mul", {2, 1, 2}, [](double a, double b) { return a * b; }),
      binary("div", {2, 4, 2}, [](double a, double b) { return a / (b + 2); }),
  };
}

inline std::vector<Case> shaping_cases() {
  return {
      {{"softmax", {{2, 4, 2}}, {{2, 4, 2}}, 1},
       [](const Arrays& in) { return Arrays{softmax(in[0], 1)}; }},
      {{"log_softmax", {{2, 4, 2}}, {{2, 4, 2}}},
       [](const Arrays& in) {
         return Arrays{
             softmax(in[0], -1, [](double x, double, double sum) { return x - std::log(sum); })};
       }},
      {{"layer_norm", {{2, 2, 4}, {4}, {4}}, {{2, 2, 4}}},
       [](const Arrays& in) { return Arrays{layer_norm(in[0], in[1], in[2])}; }},
      {{"transpose", {{2, 4, 6}}, {{6, 4, 2}}, 0, 2},
       [](const Arrays& in) {
         const Shape& s = in[0].shape;
         return Arrays{make({s[2], s[1], s[0]}, [&](const Shape& i) {
           return in[0].at({i[2], i[1], i[0]});
         })};
       }},
      {{"chunk", {{2, 4, 2}}, {{2, 2, 2}, {2, 2, 2}}, 1},
       [](const Arrays& in) {
         return Arrays{slice(in[0], 1, 0, 2), slice(in[0], 1, 1, 2)};
       }},
      {{"view", {{2, 4}}, {{4, 2}}},
       [](const Arrays& in) {
         return Arrays{reshaped(in[0], {4, 2})};
       }},
      {{"flatten", {{2, 4, 2, 2}}, {{2, 4, 4}}, 2},
       [](const Arrays& in) {
         const Shape& s = in[0].shape;
         return Arrays{reshaped(in[0], {s[0], s[1], s[2] * s[3]})};
       }},
      {{"regroup", {{4, 2, 4}}, {{2, 4, 4}}},
       [](const Arrays& in) {
         const Shape& s = in[0].shape;
         return Arrays{reshaped(in[0], {s[0] / 2, 2 * s[1], s[2]})};
       }},
      {{"sum", {{2, 4}}, {{}}},
       [](const Arrays& in) {
         Array sum;
         sum.values[0] = std::accumulate(in[0].values.begin(), in[0].values.end(), 0.0);
         return Arrays{sum};
       }},
      {{"append_cls_token", {{2, 3, 4}, {1, 1, 4}}, {{2, 4, 4}}},
       [](const Arrays& in) -> std::optional<Arrays> {
         const Shape& s = in[0].shape;
         return Arrays{make({s[0], s[1] + 1, s[2]}, [&](const Shape& i) {
           return i[1] == 0 ? in[1].at({0, 0, i[2]}) : in[0].at({i[0], i[1] - 1, i[2]});
         })};
       }},
      {{"get_cls_token", {{2, 3, 4}}, {{2, 4}}},
       [](const Arrays& in) {
         return Arrays{make({in[0].extent(0), in[0].extent(2)}, [&](const Shape& i) {
           return in[0].at({i[0], 0, i[1]});
         })};
       }},
  };
}

inline std::vector<Case> product_cases() {
  return {
      {{"linear", {{2, 2, 4}, {6, 4}, {6}}, {{2, 2, 6}}}, run_linear},
      {{"linear", {{2, 2, 4}, {6, 4}}, {{2, 2, 6}}}, run_linear},
      products("bmm", "bij,bjk->bik", {2, 4, 6}, {2, 6, 2}, {2, 4, 2}),
      products("matmul", "becm,emp->becp", {2, 4, 2, 6}, {4, 6, 8}, {2, 4, 2, 8}),
      products("einsum bsd,bsec->becd", "bsd,bsec->becd", {2, 4, 6}, {2, 4, 2, 2}, {2, 2, 2, 6}),
      products("einsum edh,becd->bech", "edh,becd->bech", {2, 4, 6}, {2, 2, 2, 4}, {2, 2, 2, 6}),
      products("einsum ehd,bech->becd", "ehd,bech->becd", {2, 4, 6}, {2, 2, 2, 4}, {2, 2, 2, 6}),
      products("einsum becd,bsec->bsd", "becd,bsec->bsd", {2, 4, 2, 6}, {2, 2, 4, 2}, {2, 2, 6}),
      {{"embedding", {{2, 4}, {6, 4}}, {{2, 4, 4}}},
       [](const Arrays& in) {
         return Arrays{
             make({in[0].extent(0), in[0].extent(1), in[1].extent(1)}, [&](const Shape& i) {
               return in[1].at({static_cast<std::int64_t>(in[0].at(i)), i[2]});
             })};
       },
       {0},
       6},
      {{"conv2d", {{2, 2, 4, 4}, {4, 2, 2, 2}, {4}}, {{2, 4, 2, 2}}},
       [](const Arrays& in) {
         return Arrays{make({in[0].extent(0), in[1].extent(0), 2, 2}, [&](const Shape& i) {
           double sum = in[2].at({i[1]});
           for_each_index({2, 2, 2}, [&](const Shape& k) {
             sum += in[0].at({i[0], k[0], 2 * i[2] + k[1], 2 * i[3] + k[2]}) *
                    in[1].at({i[1], k[0], k[1], k[2]});
           });
           return sum;
         })};
       }},
      {{"attention",
        {{2, 2, 4}, {2, 2, 4}, {2, 2, 4}, {12, 4}, {12}, {4, 4}, {4}, {2, 2}},
        {{2, 2, 4}, {2, 2, 2}}},
       attention},
      {{"attention",
        {{2, 2, 4}, {2, 2, 4}, {2, 2, 4}, {12, 4}, {12}, {4, 4}, {4}},
        {{2, 2, 4}, {2, 2, 2}}},
       attention},
      gates("top_1_gating", 1),
      gates("top_2_gating", 2),
      {{"nll_loss", {{2, 6}, {2}}, {{}}}, run_nll_loss, {1}, 6},
      {{"nll_loss", {{2, 6, 4}, {2, 4}}, {{}}}, run_nll_loss, {1}, 6},
  };
}

inline std::vector<Case> all_cases() {
  std::vector<Case> cases = simple_cases();
  for (const std::vector<Case>& more : {shaping_cases(), product_cases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

}  // namespace orrery::spmd
