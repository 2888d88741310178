// SPDX-License-Identifier: Apache-2.0
/// The operators of the zoo's decoders (planner/spmd/decoder_layers.h) on small arrays, the plain
/// way.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "array.h"

namespace orrery::spmd {

/// By the root of the mean square of the last dimension.
inline std::optional<Arrays> rms_norm(const Arrays& in) {
  const std::int64_t width = in[0].shape.back();
  if (in[1].extent(0) != width) {
    return std::nullopt;
  }
  return Arrays{make(in[0].shape, [&](Shape index) {
    const double x = in[0].at(index);
    const double scale = in[1].at({index.back()});
    double squares = 0;
    for (index.back() = 0; index.back() < width; ++index.back()) {
      squares += in[0].at(index) * in[0].at(index);
    }
    return x * scale / std::sqrt(squares / static_cast<double>(width) + 0.1);
  })};
}

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
inline std::optional<Arrays> causal_attention(const Arrays& in) {
  return windowed_attention(in, in[0].extent(1));
}
inline std::optional<Arrays> local_attention(const Arrays& in) {
  return windowed_attention(in, 2);
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

inline std::optional<Arrays> concatenate_rows(const Arrays& in) {
  if (in[0].shape != in[1].shape) {
    return std::nullopt;
  }
  return Arrays{concatenate(in, 2)};
}

/// Heads of two elements, each followed by the same two.
inline std::optional<Arrays> append_rotary(const Arrays& in) {
  if (in[0].extent(0) != in[1].extent(0) || in[0].extent(1) != in[1].extent(1)) {
    return std::nullopt;
  }
  return Arrays{make({in[0].extent(0), in[0].extent(1), 2 * in[0].extent(2)}, [&](const Shape& i) {
    const std::int64_t place = i[2] % 4;
    return place < 2 ? in[0].at({i[0], i[1], i[2] / 4 * 2 + place})
                     : in[1].at({i[0], i[1], place - 2});
  })};
}

/// Slots (b, E, C) are numbers that say both: which of kTokens tokens a slot holds, and by how much
/// it counts. Values of the tests lie no closer to where the token changes than 0.0006.
inline constexpr std::int64_t kTokens = 4;
inline std::int64_t token_of(double slot) {
  return std::clamp(static_cast<std::int64_t>(std::floor((slot + 1.2463) * 1.6)), std::int64_t{0},
                    kTokens - 1);
}

/// The two best experts of a token: what each of an expert's slots counts for.
inline std::optional<Arrays> top_k_gating(const Arrays& in) {
  const Array counts = gating(in[0], in[1], 2, kTokens)[1];
  return Arrays{make({counts.extent(0), counts.extent(2), kTokens}, [&](const Shape& i) {
    double sum = 0;
    for (std::int64_t token = 0; token < counts.extent(1); ++token) {
      sum += counts.at({i[0], token, i[1], i[2]});
    }
    return sum;
  })};
}

inline std::optional<Arrays> dispatch(const Arrays& in) {
  const Shape& slots = in[1].shape;
  if (in[0].extent(0) != slots[0] || in[0].extent(1) != kTokens) {
    return std::nullopt;
  }
  return Arrays{make({slots[0], slots[1], slots[2], in[0].extent(2)}, [&](const Shape& i) {
    return in[0].at({i[0], token_of(in[1].at({i[0], i[1], i[2]})), i[3]});
  })};
}

inline std::optional<Arrays> combine(const Arrays& in) {
  const Shape& rows = in[0].shape;
  if (in[1].shape != Shape{rows[0], rows[1], rows[2]}) {
    return std::nullopt;
  }
  Array sums({rows[0], kTokens, rows[3]});
  for_each_index(rows, [&](const Shape& i) {
    const double slot = in[1].at({i[0], i[1], i[2]});
    sums.at({i[0], token_of(slot), i[3]}) += slot * in[0].at(i);
  });
  return Arrays{sums};
}

}  // namespace orrery::spmd
