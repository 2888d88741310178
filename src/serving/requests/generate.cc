// SPDX-License-Identifier: Apache-2.0
#include "serving/requests/generate.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "base/reader.h"

namespace orrery::requests {
namespace {

/// Draws that are the same with every standard library.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}

  /// In (0, 1).
  double unit() { return (static_cast<double>(random_() >> 11U) + 0.5) * 0x1.0p-53; }
  double normal() {  // Box and Muller
    const double radius = std::sqrt(-2 * std::log(unit()));
    return radius * std::cos(2 * std::numbers::pi * unit());
  }
  /// Of mean `shape`. Marsaglia and Tsang 2000.
  double gamma(double shape) {
    if (shape < 1) {
      return gamma(shape + 1) * std::pow(unit(), 1 / shape);
    }
    const double d = shape - 1.0 / 3;
    const double c = 1 / std::sqrt(9 * d);
    for (;;) {
      const double x = normal();
      const double v = std::pow(1 + c * x, 3);
      if (v > 0 && std::log(unit()) < x * x / 2 + d - d * v + d * std::log(v)) {
        return d * v;
      }
    }
  }

 private:
  std::mt19937_64 random_;
};

std::int64_t draw(const Length& length, Draws& draws) {
  double value = length.first;
  if (length.kind == Length::Kind::uniform) {
    value = length.first + std::floor(draws.unit() * (length.second - length.first + 1));
  } else if (length.kind == Length::Kind::lognormal) {
    const double sigma = length.second;
    value = length.first * std::exp(sigma * draws.normal() - sigma * sigma / 2);
  }
  return std::max<std::int64_t>(1, std::llround(std::min(value, 1e12)));
}

double gap(const Generator& generator, Draws& draws) {
  switch (generator.arrival) {
    case Arrival::poisson:
      return -std::log(draws.unit()) / generator.rate;
    case Arrival::gamma:
      return draws.gamma(generator.burstiness) / (generator.burstiness * generator.rate);
    case Arrival::fixed:
      return 1 / generator.rate;
    case Arrival::infinite:
      return 0;
  }
  return 0;
}

constexpr const char* kExpected =
    "tokens such as '1000', 'uniform(500, 1500)' or 'lognormal(1000, 0.6)'";

}  // namespace

tl::expected<Length, std::string> parse_length(std::string_view text) {
  const auto wrong = [] { return tl::make_unexpected(std::string(kExpected)); };
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) {
    const auto tokens = parse_integer(text);
    return tokens && *tokens >= 1 && *tokens <= 1'000'000'000
               ? tl::expected<Length, std::string>(Length{.first = static_cast<double>(*tokens)})
               : wrong();
  }
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos || text.back() != ')') {
    return wrong();
  }
  const auto trimmed = [](std::string_view part) {
    while (!part.empty() && part.front() == ' ') {
      part.remove_prefix(1);
    }
    return part;
  };
  const std::string_view kind = text.substr(0, open);
  const auto first = parse_number(trimmed(text.substr(open + 1, comma - open - 1)));
  const auto second = parse_number(trimmed(text.substr(comma + 1, text.size() - comma - 2)));
  if (!first || !second || *first < 1 || *first > 1e9 || *second < 0 || *second > 1e9) {
    return wrong();
  }
  Length length{.first = *first, .second = *second};
  if (kind == "uniform" && *second >= *first) {
    length.kind = Length::Kind::uniform;
  } else if (kind == "lognormal" && *second <= 10) {
    length.kind = Length::Kind::lognormal;
  } else {
    return wrong();
  }
  return length;
}

std::vector<Request> generate(const Generator& generator) {
  Draws gaps(generator.seed);
  Draws lengths(generator.seed + 0x9e3779b97f4a7c15U);
  std::vector<Request> requests;
  requests.reserve(static_cast<std::size_t>(generator.count));
  double now = 0;
  for (std::int64_t i = 0; i < generator.count; ++i) {
    Request request{.arrival = from_seconds(now), .ids = {}};
    request.input = generator.shared_prefix + draw(generator.input, lengths);
    request.output = draw(generator.output, lengths);
    if (generator.shared_prefix > 0) {
      request.ids = {static_cast<std::uint64_t>(i % generator.prefix_groups) + 1};
      request.id_tokens = request.shared = generator.shared_prefix;
    }
    requests.push_back(std::move(request));
    now += gap(generator, gaps);
  }
  return requests;
}

}  // namespace orrery::requests
