// SPDX-License-Identifier: Apache-2.0
#include "neural/weights.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

#include "base/collect.h"
#include "base/reader.h"

namespace orrery::neural {
namespace {

constexpr std::uint64_t kPatternSeed = 20220425;
constexpr std::size_t kPatternsPerClass = 2;

/// The standard library says what its engines draw, not its distributions.
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : random_(seed) {}

  /// Box and Muller.
  double draw() {
    const double radius = std::sqrt(-2 * std::log(1 - unit()));
    return radius * std::cos(2 * std::numbers::pi * unit());
  }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

 private:
  double unit() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  std::mt19937_64 random_;
};

/// Rows and columns that a shape wraps around: of tokens and features alone there is one extent.
struct Plane {
  std::size_t channels = 1;
  std::size_t height = 1;
  std::size_t width = 1;

  explicit Plane(const Shape& shape) : width(shape.last()) {
    height = shape.rank() > 1 ? shape.at(shape.rank() - 2) : 1;
    channels = shape.size() / (height * width);
  }
  std::size_t at(std::size_t c, std::size_t y, std::size_t x) const {
    return (c * height + y % height) * width + x % width;
  }
};

/// Each value the mean of four neighbours, scaled to the variance of one.
std::vector<double> draw_pattern(const Shape& shape, Normal& normal) {
  const Plane plane(shape);
  std::vector<double> noise(shape.size());
  for (double& value : noise) {
    value = normal.draw();
  }
  std::vector<double> pattern(shape.size());
  for (std::size_t c = 0; c < plane.channels; ++c) {
    for (std::size_t y = 0; y < plane.height; ++y) {
      for (std::size_t x = 0; x < plane.width; ++x) {
        pattern[plane.at(c, y, x)] =
            (noise[plane.at(c, y, x)] + noise[plane.at(c, y + 1, x)] +
             noise[plane.at(c, y, x + 1)] + noise[plane.at(c, y + 1, x + 1)]) /
            2;
      }
    }
  }
  return pattern;
}

/// A sample is its pattern, moved, and noise on it.
void draw_sample(const std::vector<double>& pattern, const Task& task, Normal& normal,
                 double* sample) {
  const Plane plane(task.input);
  const std::size_t down = normal.below(plane.height > 1 ? 2 : 1);
  const std::size_t right = normal.below(plane.width > 1 ? 2 : 1);
  for (std::size_t c = 0; c < plane.channels; ++c) {
    for (std::size_t y = 0; y < plane.height; ++y) {
      for (std::size_t x = 0; x < plane.width; ++x) {
        sample[plane.at(c, y, x)] =
            pattern[plane.at(c, y + down, x + right)] + task.noise * normal.draw();
      }
    }
  }
}

}  // namespace

std::vector<double> draw_weights(const Network& network, std::uint64_t seed) {
  Normal normal(seed);
  std::vector<double> weights(network.weights);
  for (const Parameter& parameter : network.parameters) {
    const double deviation = std::sqrt(2 / static_cast<double>(parameter.columns));
    for (std::size_t i = 0; i < parameter.size(); ++i) {
      weights[parameter.offset + i] =
          parameter.matrix ? deviation * normal.draw() : parameter.initial;
    }
  }
  return weights;
}

Samples draw_samples(const Task& task, std::size_t count, std::uint64_t seed) {
  Normal of_patterns(kPatternSeed);
  std::vector<std::vector<double>> patterns;
  for (std::size_t i = 0; i < kPatternsPerClass * static_cast<std::size_t>(task.classes); ++i) {
    patterns.push_back(draw_pattern(task.input, of_patterns));
  }
  Normal normal(seed);
  Samples samples;
  samples.values.resize(count * task.input.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t chosen = normal.below(patterns.size());
    samples.labels.push_back(static_cast<int>(chosen / kPatternsPerClass));
    draw_sample(patterns[chosen], task, normal, samples.values.data() + i * task.input.size());
  }
  return samples;
}

Result<Samples> read_samples(const CsvTable& table, const Shape& input, std::int64_t classes) {
  Samples samples;
  FileMistakes mistakes(table.file);
  const std::size_t columns = input.size() + 1;
  if (table.header.size() != columns || table.rows.empty()) {
    return fail(Error(Mistake{
        table.file,
        {},
        {},
        fmt::format("{} columns in {} rows: expected a label and the {} "
                    "values of a sample ({}) in each row",
                    table.header.size(), table.rows.size(), input.size(), to_string(input))}));
  }
  for (const CsvRow& row : table.rows) {
    const auto label = parse_integer(row.cells.front());
    if (!label || *label < 0 || *label >= classes) {
      mistakes.add({table.where(row), table.header.front(), std::string(row.cells.front()),
                    fmt::format("a class from 0 to {}", classes - 1)});
    }
    samples.labels.push_back(static_cast<int>(label.value_or(0)));
    for (std::size_t i = 1; i < columns; ++i) {
      const auto value = parse_number(row.cells[i]);
      if (!value) {
        mistakes.add({table.where(row), table.header[i], std::string(row.cells[i]), value.error()});
      }
      samples.values.push_back(value.value_or(0));
    }
  }
  return or_mistakes(std::move(samples), mistakes.take());
}

Samples draw_from(const Samples& samples, std::size_t count, std::uint64_t seed) {
  Normal normal(seed);
  const std::size_t size = samples.values.size() / samples.count();
  std::vector<std::size_t> order(samples.count());
  std::iota(order.begin(), order.end(), 0);
  Samples drawn;
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i) {
    std::swap(order[i], order[i + normal.below(order.size() - i)]);
    const auto first = samples.values.begin() + static_cast<std::ptrdiff_t>(order[i] * size);
    drawn.labels.push_back(samples.labels[order[i]]);
    drawn.values.insert(drawn.values.end(), first, first + static_cast<std::ptrdiff_t>(size));
  }
  return drawn;
}

}  // namespace orrery::neural
