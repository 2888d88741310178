// SPDX-License-Identifier: Apache-2.0
/// Small arrays of doubles, and the operators of planner/spmd/signatures.h on them, the plain way.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "planner/spmd/signatures.h"

namespace orrery::spmd {

struct Array {
  Shape shape;
  std::vector<double> values;

  explicit Array(Shape extents = {}) : shape(std::move(extents)) {
    values.resize(static_cast<std::size_t>(
        std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
  }
  std::int64_t extent(int d) const { return shape[static_cast<std::size_t>(d)]; }
  int rank() const { return static_cast<int>(shape.size()); }
  double& at(const Shape& index) { return values[offset(index.data())]; }
  double at(const Shape& index) const { return values[offset(index.data())]; }
  double& at(std::initializer_list<std::int64_t> index) { return values[offset(index.begin())]; }
  double at(std::initializer_list<std::int64_t> index) const {
    return values[offset(index.begin())];
  }

 private:
  std::size_t offset(const std::int64_t* index) const {
    std::int64_t position = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      position = position * shape[d] + (shape[d] == 1 ? 0 : index[d]);  // size 1: broadcast
    }
    return static_cast<std::size_t>(position);
  }
};
using Arrays = std::vector<Array>;

/// Calls visit(index) for every index of the shape, last dimension fastest.
template <class Visit>
void for_each_index(const Shape& shape, const Visit& visit) {
  Shape index(shape.size(), 0);
  const std::size_t count = Array(shape).values.size();
  for (std::size_t i = 0; i < count; ++i) {
    visit(index);
    for (std::size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];) {
      index[d] = 0;
    }
  }
}

template <class Function>
Array make(const Shape& shape, const Function& value) {
  Array made(shape);
  for_each_index(shape, [&](const Shape& index) { made.at(index) = value(index); });
  return made;
}

inline Array slice(const Array& whole, int dimension, std::int64_t part, std::int64_t parts) {
  const auto d = static_cast<std::size_t>(dimension);
  Shape shape = whole.shape;
  shape[d] /= parts;
  return make(shape, [&](Shape index) {
    index[d] += part * shape[d];
    return whole.at(index);
  });
}

inline Array concatenate(const Arrays& parts, int dimension) {
  const auto d = static_cast<std::size_t>(dimension);
  Shape shape = parts.front().shape;
  const std::int64_t each = shape[d];
  shape[d] *= static_cast<std::int64_t>(parts.size());
  return make(shape, [&](Shape index) {
    const auto part = static_cast<std::size_t>(index[d] / each);
    index[d] %= each;
    return parts[part].at(index);
  });
}

inline Array sum_of(const Arrays& parts) {
  Array sum = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    for (std::size_t k = 0; k < sum.values.size(); ++k) {
      sum.values[k] += parts[i].values[k];
    }
  }
  return sum;
}

/// einsum of two operands, "bsd,bsec->becd". Nothing where the extents of a letter differ.
inline std::optional<Array> einsum(const std::string& formula, const Array& a, const Array& b) {
  const std::size_t comma = formula.find(',');
  const std::size_t arrow = formula.find("->");
  const std::string names[] = {formula.substr(0, comma),
                               formula.substr(comma + 1, arrow - comma - 1),
                               formula.substr(arrow + 2)};
  std::string letters;
  Shape extents;
  for (const auto& [name, array] : {std::pair(names[0], &a), {names[1], &b}}) {
    for (std::size_t d = 0; d < name.size(); ++d) {
      const std::size_t known = letters.find(name[d]);
      if (known == std::string::npos) {
        letters += name[d];
        extents.push_back(array->shape[d]);
      } else if (extents[known] != array->shape[d]) {
        return std::nullopt;
      }
    }
  }
  Shape own[3];  // index of each operand and of the result
  const auto pick = [&](std::size_t operand, const Shape& from) -> const Shape& {
    own[operand].clear();
    for (const char letter : names[operand]) {
      own[operand].push_back(from[letters.find(letter)]);
    }
    return own[operand];
  };
  Array result(pick(2, extents));
  for_each_index(extents, [&](const Shape& index) {
    result.at(pick(2, index)) += a.at(pick(0, index)) * b.at(pick(1, index));
  });
  return result;
}

template <class Function>
Array map(const Array& x, const Function& function) {
  Array y = x;
  std::transform(y.values.begin(), y.values.end(), y.values.begin(), function);
  return y;
}

/// Returns the softmax along one dimension; `finish(value, exponential, sum of exponentials)`.
template <class Finish>
Array softmax(const Array& x, int axis, const Finish& finish) {
  const auto d = static_cast<std::size_t>(axis < 0 ? axis + x.rank() : axis);
  return make(x.shape, [&](Shape index) {
    const double own = x.at(index);
    double sum = 0;
    for (index[d] = 0; index[d] < x.shape[d]; ++index[d]) {
      sum += std::exp(x.at(index));
    }
    return finish(own, std::exp(own), sum);
  });
}
inline Array softmax(const Array& x, int axis) {
  return softmax(x, axis, [](double, double e, double sum) { return e / sum; });
}

/// x (..., i) W (o, i)^T + bias (o).
inline std::optional<Array> linear(const Array& x, const Array& w, const Array* bias) {
  if (x.shape.back() != w.extent(1) || (bias != nullptr && bias->extent(0) != w.extent(0))) {
    return std::nullopt;
  }
  Shape shape = x.shape;
  shape.back() = w.extent(0);
  return make(shape, [&](Shape index) {
    const std::int64_t o = index.back();
    double sum = bias == nullptr ? 0 : bias->at({o});
    for (index.back() = 0; index.back() < w.extent(1); ++index.back()) {
      sum += x.at(index) * w.at({o, index.back()});
    }
    return sum;
  });
}

inline Array layer_norm(const Array& x, const Array& weight, const Array& bias) {
  const std::int64_t width = x.shape.back();
  return make(x.shape, [&](Shape index) {
    const double own = x.at(index);
    const std::int64_t column = index.back();
    double mean = 0;
    double square = 0;
    for (index.back() = 0; index.back() < width; ++index.back()) {
      const double value = x.at(index);
      mean += value / static_cast<double>(width);
      square += value * value / static_cast<double>(width);
    }
    return (own - mean) / std::sqrt(square - mean * mean + 1e-5) * weight.at({column}) +
           bias.at({column});
  });
}

/// q, k, v (length, n, d), in-projection (3d, d), (3d), out-projection (d, d), (d), mask: two
/// heads. Gives the result and the weights, mean over the heads (n, length, length).
inline std::optional<Arrays> attention(const Arrays& in) {
  constexpr std::int64_t kHeads = 2;
  const std::int64_t d = in[0].extent(2);
  if (in[3].extent(0) != 3 * d || in[3].extent(1) != d || in[5].extent(1) != d) {
    return std::nullopt;
  }
  Arrays projected;
  for (int i = 0; i < 3; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const Array bias = slice(in[4], 0, i, 3);
    projected.push_back(*linear(in[k], slice(in[3], 0, i, 3), &bias));
  }
  const std::int64_t length = in[0].extent(0);
  const std::int64_t n = in[0].extent(1);
  const std::int64_t width = d / kHeads;
  const Array scores = make({n, kHeads, length, length}, [&](const Shape& i) {
    double sum = in.size() > 7 ? in[7].at({i[2], i[3]}) : 0;
    for (std::int64_t c = i[1] * width; c < (i[1] + 1) * width; ++c) {
      sum += projected[0].at({i[2], i[0], c}) * projected[1].at({i[3], i[0], c}) /
             std::sqrt(static_cast<double>(width));
    }
    return sum;
  });
  const Array weights = softmax(scores, 3);
  const Array mixed = make({length, n, d}, [&](const Shape& i) {
    double sum = 0;
    for (std::int64_t k = 0; k < length; ++k) {
      sum += weights.at({i[1], i[2] / width, i[0], k}) * projected[2].at({k, i[1], i[2]});
    }
    return sum;
  });
  const Array mean = make({n, length, length}, [&](const Shape& i) {
    return (weights.at({i[0], 0, i[1], i[2]}) + weights.at({i[0], 1, i[1], i[2]})) / kHeads;
  });
  return Arrays{*linear(mixed, in[5], &in[6]), mean};
}

/// Tokens x (b, s, d) to their `best` experts by w (d, E), at most `capacity` of a sample to each:
/// where they go and by how much their results count, both (b, s, E, C).
inline Arrays gating(const Array& x, const Array& w, int best, std::int64_t capacity) {
  const Array probability = softmax(*einsum("bsd,de->bse", x, w), 2);
  const std::int64_t experts = w.extent(1);
  Array sent({x.extent(0), x.extent(1), experts, capacity});
  Array counts = sent;
  for (std::int64_t b = 0; b < x.extent(0); ++b) {
    std::vector<std::int64_t> filled(static_cast<std::size_t>(experts), 0);
    for (std::int64_t s = 0; s < x.extent(1); ++s) {
      std::vector<std::int64_t> order(static_cast<std::size_t>(experts));
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
        return probability.at({b, s, i}) > probability.at({b, s, j});
      });
      for (int i = 0; i < best; ++i) {
        const std::int64_t e = order[static_cast<std::size_t>(i)];
        const std::int64_t place = filled[static_cast<std::size_t>(e)]++;
        if (place < capacity) {
          sent.at({b, s, e, place}) = 1;
          counts.at({b, s, e, place}) = probability.at({b, s, e});
        }
      }
    }
  }
  return {sent, counts};
}

}  // namespace orrery::spmd
