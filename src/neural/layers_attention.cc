// SPDX-License-Identifier: Apache-2.0
// Of one sample of T tokens and F features, H heads of d = F / H, X the input:
//   Q = X Wq^T, K = X Wk^T, V = X Wv^T, A_h = softmax(Q_h K_h^T / sqrt(d)), Y = [A_h V_h] Wo^T
#include <algorithm>
#include <cmath>

#include "neural/layer_pass.h"
#include "neural/matrix.h"

namespace orrery::neural {
namespace {

enum Part : std::size_t { kQueries, kKeys, kValues, kMixed, kProbabilities };

/// Saved is, of one sample: Q, K, V and the mixed values [T, F] each, then A [H, T, T].
class Saved {
 public:
  explicit Saved(const LayerPass& pass)
      : tokens(pass.layer.in.at(0)),
        features(pass.layer.in.at(1)),
        heads(static_cast<std::size_t>(pass.layer.heads)),
        depth(features / heads),
        scale(1 / std::sqrt(static_cast<double>(depth))) {}

  std::size_t size() const { return 4 * tokens * features + heads * tokens * tokens; }
  std::size_t at(Part part) const { return part * tokens * features; }

  const std::size_t tokens;
  const std::size_t features;
  const std::size_t heads;
  const std::size_t depth;
  const double scale;
};

void softmax_row(double* row, std::size_t size) {
  const double greatest = *std::max_element(row, row + size);
  double total = 0;
  for (std::size_t i = 0; i < size; ++i) {
    row[i] = std::exp(row[i] - greatest);
    total += row[i];
  }
  for (std::size_t i = 0; i < size; ++i) {
    row[i] /= total;
  }
}

/// A of a head from Q and K, and its part of the mixed values.
void attend(const Saved& s, double* saved, std::size_t head) {
  const double* const q = saved + s.at(kQueries) + head * s.depth;
  const double* const k = saved + s.at(kKeys) + head * s.depth;
  const double* const v = saved + s.at(kValues) + head * s.depth;
  double* const mixed = saved + s.at(kMixed) + head * s.depth;
  double* const a = saved + s.at(kProbabilities) + head * s.tokens * s.tokens;
  for (std::size_t i = 0; i < s.tokens; ++i) {
    double* const row = a + i * s.tokens;
    for (std::size_t j = 0; j < s.tokens; ++j) {
      for (std::size_t c = 0; c < s.depth; ++c) {
        row[j] += q[i * s.features + c] * k[j * s.features + c];
      }
      row[j] *= s.scale;
    }
    softmax_row(row, s.tokens);
    for (std::size_t j = 0; j < s.tokens; ++j) {
      for (std::size_t c = 0; c < s.depth; ++c) {
        mixed[i * s.features + c] += row[j] * v[j * s.features + c];
      }
    }
  }
}

/// Gradients by Q, K and V of a head from that by the mixed values.
void attend_backward(const Saved& s, const double* saved, double* by, std::size_t head) {
  const std::size_t shift = head * s.depth;
  const double* const a = saved + s.at(kProbabilities) + head * s.tokens * s.tokens;
  const double* const by_mixed = by + s.at(kMixed) + shift;
  std::vector<double> by_row(s.tokens);
  for (std::size_t i = 0; i < s.tokens; ++i) {
    const double* const row = a + i * s.tokens;
    double mean = 0;
    for (std::size_t j = 0; j < s.tokens; ++j) {
      by_row[j] = 0;
      for (std::size_t c = 0; c < s.depth; ++c) {
        const double delta = by_mixed[i * s.features + c];
        by_row[j] += delta * saved[s.at(kValues) + shift + j * s.features + c];
        by[s.at(kValues) + shift + j * s.features + c] += row[j] * delta;
      }
      mean += row[j] * by_row[j];
    }
    for (std::size_t j = 0; j < s.tokens; ++j) {
      const double by_score = row[j] * (by_row[j] - mean) * s.scale;
      for (std::size_t c = 0; c < s.depth; ++c) {
        const std::size_t q = shift + i * s.features + c;
        const std::size_t k = shift + j * s.features + c;
        by[s.at(kQueries) + q] += by_score * saved[s.at(kKeys) + k];
        by[s.at(kKeys) + k] += by_score * saved[s.at(kQueries) + q];
      }
    }
  }
}

}  // namespace

std::string attention_shape(Layer& layer, std::vector<Parameter>& parameters) {
  if (layer.in.rank() != 2) {
    return "[tokens, features]";
  }
  if (layer.in.extents[1] % layer.heads != 0) {
    return "features that the heads divide";
  }
  layer.out = layer.in;
  for (const char* const name : {".queries", ".keys", ".values", ".output"}) {
    parameters.push_back({.name = layer.name + name,
                          .rows = layer.in.at(1),
                          .columns = layer.in.at(1),
                          .matrix = true});
  }
  return {};
}

void attention_forward(LayerPass& pass) {
  const Saved s(pass);
  const Extents square{s.tokens, s.features, s.features};
  pass.saved.assign(pass.samples * s.size(), 0);
  std::vector<std::vector<double>> turned;
  for (std::size_t w = 0; w < 4; ++w) {
    turned.push_back(transposed(s.features, s.features, pass.weight(w)));
  }
  for (std::size_t i = 0; i < pass.samples; ++i) {
    double* const saved = pass.saved.data() + i * s.size();
    for (const Part part : {kQueries, kKeys, kValues}) {
      add_product(square, pass.inputs.front() + i * pass.layer.in.size(), turned[part].data(),
                  saved + s.at(part));
    }
    for (std::size_t head = 0; head < s.heads; ++head) {
      attend(s, saved, head);
    }
    add_product(square, saved + s.at(kMixed), turned[kMixed].data(),
                pass.output + i * pass.layer.out.size());
  }
}

void attention_backward(LayerPass& pass) {
  const Saved s(pass);
  const Extents square{s.tokens, s.features, s.features};
  for (std::size_t i = 0; i < pass.samples; ++i) {
    const double* const saved = pass.saved.data() + i * s.size();
    const double* const input = pass.inputs.front() + i * pass.layer.in.size();
    const double* const delta = pass.output_gradient + i * pass.layer.out.size();
    std::vector<double> by(4 * s.tokens * s.features);
    add_product(square, delta, pass.weight(kMixed), by.data() + s.at(kMixed));
    for (std::size_t head = 0; head < s.heads; ++head) {
      attend_backward(s, saved, by.data(), head);
    }
    for (const Part part : {kQueries, kKeys, kValues}) {
      add_product(square, by.data() + s.at(part), pass.weight(part),
                  pass.input_gradients.front() + i * pass.layer.in.size());
    }
    if (pass.gradients == nullptr) {
      continue;
    }
    for (const Part part : {kQueries, kKeys, kValues}) {
      pass.gradients->product({&pass.parameters[part], 1, s.tokens, by.data() + s.at(part), input});
    }
    pass.gradients->product({&pass.parameters[kMixed], 1, s.tokens, delta, saved + s.at(kMixed)});
  }
}

}  // namespace orrery::neural
