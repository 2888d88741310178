// SPDX-License-Identifier: Apache-2.0
#include "serving/requests/generate.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <random>

#include "base/reader.h"

namespace orrery::requests {
namespace {

/// Draws that are the same with every standard library.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}

  /// Draws a number in (0, 1).
  double unit() { return (static_cast<double>(random_() >> 11U) + 0.5) * 0x1.0p-53; }
  double normal() {  // Box and Muller
    const double radius = std::sqrt(-2 * std::log(unit()));
    return radius * std::cos(2 * std::numbers::pi * unit());
  }
  /// Draws from a gamma distribution of mean `shape`. Marsaglia and Tsang 2000.
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

tl::expected<std::vector<Stage>, std::string> parse_stages(std::string_view text) {
  std::vector<Stage> stages;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    const std::string_view part = text.substr(0, comma);
    text = more ? text.substr(comma + 1) : std::string_view();
    const std::size_t colon = std::min(part.find(':'), part.size());
    const auto rate = parse_number(part.substr(0, colon));
    const auto duration = parse_time(part.substr(std::min(colon + 1, part.size())));
    constexpr double kMostRate = 1e9;
    if (!rate || !(*rate > 0) || *rate > kMostRate || !duration || *duration <= Time(0)) {
      return tl::make_unexpected(
          std::string("requests per second and a time of each stage such as '2:60 s,10:30 s'"));
    }
    stages.push_back({*rate, *duration});
  }
  return stages;
}

namespace {

/// Seconds at which requests arrive, one after the other; none after the last stage.
class Arrivals {
 public:
  explicit Arrivals(const Generator& generator) : generator_(generator), draws_(generator.seed) {}

  std::optional<double> next() {
    if (!begun_) {
      begun_ = true;
    } else if (generator_.stages.empty()) {
      now_ += gap(generator_, draws_);
    } else if (!next_of_stages()) {
      return std::nullopt;
    }
    return now_;
  }

 private:
  /// A gap that reaches beyond a stage begins anew with the next one.
  bool next_of_stages() {
    for (; stage_ < generator_.stages.size(); ++stage_) {
      generator_.rate = generator_.stages[stage_].rate;
      const double end = begin_ + to_seconds(generator_.stages[stage_].duration);
      now_ += gap(generator_, draws_);
      if (now_ < end) {
        return true;
      }
      now_ = begin_ = end;
    }
    return false;
  }

  Generator generator_;
  Draws draws_;
  bool begun_ = false;
  std::size_t stage_ = 0;
  double begin_ = 0;  ///< of the stage
  double now_ = 0;
};

/// Sets what its prompt and its answer share with other requests.
void share(const Generator& generator, std::int64_t session, Request& request) {
  constexpr std::uint64_t kFirstSession = std::uint64_t{1} << 40U;  // groups have smaller numbers
  if (generator.shared_prefix > 0) {
    request.ids = {static_cast<std::uint64_t>(session % generator.prefix_groups) + 1};
    request.id_tokens = request.shared = generator.shared_prefix;
  }
  if (generator.turns > 1) {
    request.shared = request.input + request.output;
    request.id_tokens = generator.shared_prefix > 0 ? generator.shared_prefix : request.shared;
    request.ids.resize(
        static_cast<std::size_t>((request.shared + request.id_tokens - 1) / request.id_tokens),
        kFirstSession + static_cast<std::uint64_t>(session));
  }
}

/// Adds images of drawn sizes behind a prompt whose session's turns before had `images`, and adds
/// them to these.
void show(const Generator& generator, Draws& draws, std::vector<Image>& images, Request& request) {
  double all = 0;
  for (const ImageShare& size : generator.sizes) {
    all += size.share;
  }
  for (std::int64_t i = 0; i < generator.images; ++i) {
    double left = draws.unit() * all;
    auto size = generator.sizes.begin();
    for (; size + 1 != generator.sizes.end() && left >= size->share; ++size) {
      left -= size->share;
    }
    images.push_back(size->image);
    images.back().at = request.input;
    request.input += size->image.tokens;
  }
  request.images = images;
}

/// Stretches drawn times: the last of `sessions` arrives (sessions - 1) / rate after the first.
void keep_rate(const Generator& generator, std::int64_t sessions, double last,
               std::vector<Request>& requests) {
  const bool drawn = generator.arrival == Arrival::poisson || generator.arrival == Arrival::gamma;
  if (!drawn || !generator.stages.empty() || last <= 0) {
    return;
  }
  const double factor = static_cast<double>(sessions - 1) / generator.rate / last;
  for (Request& request : requests) {
    if (request.after < 0) {
      request.arrival = from_seconds(to_seconds(request.arrival) * factor);
    }
  }
}

}  // namespace

std::vector<Request> generate(const Generator& generator) {
  Arrivals arrivals(generator);
  Draws lengths(generator.seed + 0x9e3779b97f4a7c15U);
  Draws adapters(generator.seed + 0xbf58476d1ce4e5b9U);
  Draws sizes(generator.seed + 0x94d049bb133111ebU);
  std::vector<Request> requests;
  const auto all = static_cast<std::size_t>(generator.count);
  requests.reserve(generator.stages.empty() ? all : 0);
  double last = 0;
  std::int64_t session = 0;
  for (; requests.size() < all; ++session) {
    const auto arrival = arrivals.next();
    if (!arrival) {
      break;
    }
    last = *arrival;
    std::int32_t adapter = -1;
    if (generator.adapters > 0) {
      adapter =
          static_cast<std::int32_t>(adapters.unit() * static_cast<double>(generator.adapters));
    }
    std::vector<Image> images;                      // of the session
    std::int64_t before = generator.shared_prefix;  // tokens that the prompt begins with
    for (std::int64_t turn = 0; turn < generator.turns && requests.size() < all; ++turn) {
      Request request{.arrival = turn == 0 ? from_seconds(*arrival) : generator.think, .ids = {}};
      request.adapter = adapter;
      request.after = turn == 0 ? -1 : static_cast<std::int64_t>(requests.size()) - 1;
      request.input = before + draw(generator.input, lengths);
      show(generator, sizes, images, request);
      request.output = draw(generator.output, lengths);
      before = request.input + request.output;
      share(generator, session, request);
      requests.push_back(std::move(request));
    }
  }
  keep_rate(generator, session, last, requests);
  return requests;
}

}  // namespace orrery::requests
