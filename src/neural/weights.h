// SPDX-License-Identifier: Apache-2.0
/// A network starts from weights and samples, drawn from named seeds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/result.h"
#include "neural/network.h"

namespace orrery::neural {

/// Matrices normal with variance 2 / (inputs of an output), biases 0, gains 1 (He et al., 2015).
std::vector<double> draw_weights(const Network& network, std::uint64_t seed);

struct Samples {
  std::vector<double> values;  ///< [count, size of an input]
  std::vector<int> labels;

  std::size_t count() const { return labels.size(); }
};

/// Made-up pictures to classify: of each class two patterns, whose values are normal and whose
/// neighbours are alike, each sample one of them, shifted by up to one position each way, plus
/// normal noise of deviation `noise`. The patterns depend on shape and classes alone.
struct Task {
  Shape input;
  std::int64_t classes = 0;
  double noise = 1;
};
Samples draw_samples(const Task& task, std::size_t count, std::uint64_t seed);

/// Reads rows of a label (0 to classes - 1) and the values of a sample, in the order of its shape.
Result<Samples> read_samples(const CsvTable& table, const Shape& input, std::int64_t classes);

/// `count` of the samples, drawn without repetition: all, in another order, if there are no more.
Samples draw_from(const Samples& samples, std::size_t count, std::uint64_t seed);

}  // namespace orrery::neural
