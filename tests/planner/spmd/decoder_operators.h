// SPDX-License-Identifier: Apache-2.0
/// The operators of the zoo's decoders (planner/spmd/decoder.h) on small arrays, the plain way:
/// heads of two elements; a product's result that several tensors share holds for every head or
/// group what each has of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "array.h"

namespace orrery::spmd {

/// Heads of two elements; a query sees its own key and the `window` - 1 before it. A fourth input
/// is one logit more for each head, without a value.
inline std::optional<Arrays> windowed_attention(const Arrays& in, std::int64_t window) {
  constexpr std::int64_t kWidth = 2;
  if (in[0].shape != in[1].shape || in[0].shape != in[2].shape || in[0].extent(2) % kWidth != 0 ||
      (in.size() > 3 && in[3].extent(0) * kWidth != in[0].extent(2))) {
    return std::nullopt;
  }
  return Arrays{make(in[0].shape, [&](const Shape& index) {
    const std::int64_t head = index[2] / kWidth * kWidth;
    double sum = 0;
    double weights = in.size() > 3 ? std::exp(in[3].at({head / kWidth})) : 0;
    for (std::int64_t key = std::max<std::int64_t>(0, index[1] - window + 1); key <= index[1];
         ++key) {
      double score = 0;
      for (std::int64_t d = head; d < head + kWidth; ++d) {
        score += in[0].at({index[0], index[1], d}) * in[1].at({index[0], key, d});
      }
      sum += std::exp(score) * in[2].at({index[0], key, index[2]});
      weights += std::exp(score);
    }
    return sum / weights;
  })};
}
inline double silu(double x) {
  return x / (1 + std::exp(-x));
}

/// Each channel with its own weights over the tokens before it, then SiLU.
inline std::optional<Arrays> causal_convolution(const Arrays& in) {
  const std::int64_t kernel = in[1].extent(1);
  if (in[1].extent(0) != in[0].extent(2) || (in.size() > 2 && in[2].extent(0) != in[0].extent(2))) {
    return std::nullopt;
  }
  return Arrays{make(in[0].shape, [&](const Shape& i) {
    double sum = in.size() > 2 ? in[2].at({i[2]}) : 0;
    for (std::int64_t k = 0; k < std::min(kernel, i[1] + 1); ++k) {
      sum += in[0].at({i[0], i[1] - k, i[2]}) * in[1].at({i[2], k});
    }
    return silu(sum);
  })};
}

/// Groups of two heads of one channel with a state of one element: of a group's four columns two
/// are x, one is B and one is C. h' = exp(-A dt) h + dt B x;  y = C h' + D x;  dt = exp(dt + bias).
inline std::optional<Arrays> state_space_scan(const Arrays& in) {
  constexpr std::int64_t kColumns = 4;
  constexpr std::int64_t kHeads = 2;
  const Shape& steps = in[1].shape;
  if (in[0].extent(0) != steps[0] || in[0].extent(1) != steps[1] || steps[2] % kHeads != 0 ||
      in[0].extent(2) * kHeads != steps[2] * kColumns || in[2].extent(0) != steps[2]) {
    return std::nullopt;
  }
  return Arrays{make(steps, [&](const Shape& i) {
    const std::int64_t first = i[2] / kHeads * kColumns;
    const auto column = [&](std::int64_t token, std::int64_t c) {
      return in[0].at({i[0], token, first + c});
    };
    double state = 0;
    for (std::int64_t token = 0; token <= i[1]; ++token) {
      const double dt = std::exp(in[1].at({i[0], token, i[2]}) + in[2].at({i[2], 2}));
      state = std::exp(-std::abs(in[2].at({i[2], 0})) * dt) * state +
              dt * column(token, 2) * column(token, i[2] % kHeads);
    }
    return column(i[1], 3) * state + in[2].at({i[2], 1}) * column(i[1], i[2] % kHeads);
  })};
}

/// Groups of two elements, each divided by the root of its mean square.
inline std::optional<Arrays> gated_norm(const Arrays& in) {
  constexpr std::int64_t kGroup = 2;
  if (in[0].shape != in[1].shape || in[2].extent(0) != in[0].extent(2) ||
      in[0].extent(2) % kGroup != 0) {
    return std::nullopt;
  }
  return Arrays{make(in[0].shape, [&](Shape i) {
    const auto gated = [&] { return in[0].at(i) * silu(in[1].at(i)); };
    const double own = gated() * in[2].at({i[2]});
    const std::int64_t first = i[2] / kGroup * kGroup;
    double squares = 0;
    for (i[2] = first; i[2] < first + kGroup; ++i[2]) {
      squares += gated() * gated();
    }
    return own / std::sqrt(squares / kGroup + 0.1);
  })};
}

/// Returns columns `first` to `first` + `count` of every group of `width`.
inline Array columns_of(const Array& x, std::int64_t width, std::int64_t first,
                        std::int64_t count) {
  return make({x.extent(0), x.extent(1), x.extent(2) / width * count}, [&](const Shape& i) {
    return x.at({i[0], i[1], i[2] / count * width + first + i[2] % count});
  });
}

/// Inputs with alternating columns, times a weight (out, in), plus a bias.
inline std::optional<Arrays> product_of(const Arrays& in, std::size_t weight) {
  const auto count = static_cast<std::int64_t>(weight);
  const Array& w = in[weight];
  if (w.extent(1) != count * in[0].shape.back() ||
      (in.size() > weight + 1 && in[weight + 1].extent(0) != w.extent(0))) {
    return std::nullopt;
  }
  Shape shape = in[0].shape;
  shape.back() = w.extent(0);
  return Arrays{make(shape, [&](Shape i) {
    const std::int64_t out = i.back();
    double sum = in.size() > weight + 1 ? in[weight + 1].at({out}) : 0;
    for (std::int64_t k = 0; k < w.extent(1); ++k) {
      i.back() = k / count;
      sum += in[static_cast<std::size_t>(k % count)].at(i) * w.at({out, k});
    }
    return sum;
  })};
}

/// Weights (experts, in, out), perhaps a bias for each expert's columns, rows (b, experts, room,
/// in).
inline std::optional<Arrays> experts_of(const Arrays& in) {
  const Array& w = in[0];
  const Array& x = in.back();
  if (x.extent(1) != w.extent(0) || x.extent(3) != w.extent(1) ||
      (in.size() > 2 && in[1].extent(0) != w.extent(0) * w.extent(2))) {
    return std::nullopt;
  }
  return Arrays{make({x.extent(0), x.extent(1), x.extent(2), w.extent(2)}, [&](const Shape& i) {
    double sum = in.size() > 2 ? in[1].at({i[1] * w.extent(2) + i[3]}) : 0;
    for (std::int64_t k = 0; k < w.extent(1); ++k) {
      sum += x.at({i[0], i[1], i[2], k}) * w.at({i[1], k, i[3]});
    }
    return sum;
  })};
}

/// All rows of three dimensions, and what a vector has for a column of them.
inline std::optional<Arrays> sum_with_biases(const Arrays& in) {
  const std::int64_t columns = in[0].shape.back();
  const std::int64_t each = in.back().rank() == 1 ? in.back().extent(0) / columns : 0;
  return Arrays{make(in[0].shape, [&](const Shape& i) {
    double sum = 0;
    for (const Array& one : in) {
      sum += one.rank() == 1 ? 0 : one.at(i);
    }
    for (std::int64_t k = 0; k < each; ++k) {
      sum += in.back().at({i.back() * each + k});
    }
    return sum;
  })};
}

/// Divides by the root of the mean square of `width` columns each, of the first so many; a vector
/// scales them, and its second half is added.
inline Array norm_of(const Array& x, std::int64_t width, const Array* vector) {
  return make(x.shape, [&](Shape i) {
    const std::int64_t column = i.back() % width;
    const std::int64_t first = i.back() - column;
    const double own = x.at(i) * (vector == nullptr ? 1 : vector->at({column}));
    const bool shifts = vector != nullptr && vector->extent(0) == 2 * width;
    double squares = 0;
    for (i.back() = first; i.back() < first + width; ++i.back()) {
      squares += x.at(i) * x.at(i);
    }
    return own / std::sqrt(squares / static_cast<double>(width) + 0.1) +
           (shifts ? vector->at({width + column}) : 0);
  });
}

/// Two columns make one: SiLU of the first times the second.
inline std::optional<Arrays> gated_activation(const Arrays& in) {
  Shape shape = in[0].shape;
  shape.back() /= 2;
  return Arrays{make(shape, [&](Shape i) {
    i.back() *= 2;
    const double gate = in[0].at(i);
    ++i.back();
    return silu(gate) * in[0].at(i);
  })};
}

/// `where` (experts, room) says which token a slot holds.
inline std::optional<Arrays> routed(const Array& x, const Array& where) {
  return Arrays{
      make({x.extent(0), where.extent(0), where.extent(1), x.extent(2)}, [&](const Shape& i) {
        const auto token = static_cast<std::int64_t>(where.at({i[1], i[2]}));
        return x.at({i[0], token, i[3]});
      })};
}
inline std::optional<Arrays> unpermuted(const Array& rows, const Array& where,
                                        std::int64_t tokens) {
  if (where.extent(0) != rows.extent(1) || where.extent(1) != rows.extent(2)) {
    return std::nullopt;
  }
  Array sums({rows.extent(0), tokens, rows.extent(3)});
  for_each_index(rows.shape, [&](const Shape& i) {
    sums.at({i[0], static_cast<std::int64_t>(where.at({i[1], i[2]})), i[3]}) += rows.at(i);
  });
  return Arrays{sums};
}

/// Rows of a table whose lines have these numbers.
inline std::optional<Arrays> looked_up(const Array& tokens, const Array& table,
                                       const Array& numbers) {
  if (numbers.extent(0) != table.extent(0)) {
    return std::nullopt;
  }
  return Arrays{make({tokens.extent(0), tokens.extent(1), table.extent(1)}, [&](const Shape& i) {
    double sum = 0;
    for (std::int64_t line = 0; line < table.extent(0); ++line) {
      sum += numbers.at({line}) == tokens.at({i[0], i[1]}) ? table.at({line, i[2]}) : 0;
    }
    return sum;
  })};
}

inline std::optional<Arrays> token_loss(const Arrays& in) {
  if (in[0].extent(0) != in[1].extent(0) || in[0].extent(1) != in[1].extent(1)) {
    return std::nullopt;
  }
  Array loss;
  for_each_index(in[1].shape, [&](const Shape& i) {
    double sum = 0;
    for (std::int64_t word = 0; word < in[0].extent(2); ++word) {
      sum += std::exp(in[0].at({i[0], i[1], word}));
    }
    const auto label = static_cast<std::int64_t>(in[1].at(i));
    loss.values[0] += std::log(sum) - in[0].at({i[0], i[1], label});
  });
  return Arrays{loss};
}

}  // namespace orrery::spmd
