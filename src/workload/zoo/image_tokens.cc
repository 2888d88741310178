// SPDX-License-Identifier: Apache-2.0
#include "workload/zoo/image_tokens.h"

#include <algorithm>
#include <cmath>

namespace orrery::zoo {
namespace {

/// Pixels, or squares, of an image's sides.
struct Sides {
  double width = 0;
  double height = 0;
};

/// Applies `round` to both sides as multiples of `factor`, at least one.
template <class Round>
Sides in_squares(const Sides& sides, double factor, Round round) {
  return {std::max(1.0, round(sides.width / factor)), std::max(1.0, round(sides.height / factor))};
}

Sides resized(const Vision& vision, const Sides& image, double factor) {
  const double pixels = image.width * image.height;
  const auto scaled = [&](double to) {
    const double scale = std::sqrt(to / pixels);
    return Sides{image.width * scale, image.height * scale};
  };
  const Sides nearest = in_squares(image, factor, [](double x) { return std::nearbyint(x); });
  const double area = nearest.width * nearest.height * factor * factor;
  if (area > static_cast<double>(vision.most_pixels)) {
    return in_squares(scaled(static_cast<double>(vision.most_pixels)), factor,
                      [](double x) { return std::floor(x); });
  }
  if (area < static_cast<double>(vision.least_pixels)) {
    return in_squares(scaled(static_cast<double>(vision.least_pixels)), factor,
                      [](double x) { return std::ceil(x); });
  }
  return nearest;
}

/// A side shorter than a square becomes one, the other as many as the ratio says.
Sides pooled(const Vision& vision, const Sides& image) {
  const auto most = static_cast<double>(vision.most);
  const double scale = std::sqrt(most / (image.width * image.height));
  const double width = std::floor(image.width * scale);
  const double height = std::floor(image.height * scale);
  if (height == 0) {
    return {std::min(std::floor(image.width / image.height), most), 1};
  }
  return width == 0 ? Sides{1, std::min(std::floor(image.height / image.width), most)}
                    : Sides{width, height};
}

Sides in_rows(const Vision& vision, const Sides& image, double factor) {
  const double down =
      std::max(1.0, std::max(image.width, image.height) / static_cast<double>(vision.side));
  return in_squares({std::floor(image.width / down), std::floor(image.height / down)}, factor,
                    [](double x) { return std::ceil(x); });
}

/// Calls `take` with every shape of at most `most` tiles, fewer tiles first, then narrower ones.
template <class Take>
void for_shapes(std::int64_t most, Take take) {
  for (std::int64_t tiles = 1; tiles <= most; ++tiles) {
    for (std::int64_t across = 1; across <= tiles; ++across) {
      if (tiles % across == 0) {
        take(Sides{static_cast<double>(across), static_cast<double>(tiles / across)});
      }
    }
  }
}

Sides nearest_ratio(const Vision& vision, const Sides& image) {
  const auto side = static_cast<double>(vision.side);
  const double ratio = image.width / image.height;
  const double area = image.width * image.height;
  Sides best{1, 1};
  double least = std::abs(ratio - 1);
  for_shapes(vision.most, [&](const Sides& shape) {
    const double differs = std::abs(ratio - shape.width / shape.height);
    const bool fills = area > 0.5 * side * side * shape.width * shape.height;
    if (differs < least || (differs == least && fills)) {
      best = shape;
      least = differs;
    }
  });
  return best;
}

Sides best_canvas(const Vision& vision, const Sides& image) {
  const auto side = static_cast<double>(vision.side);
  Sides best{1, 1};
  double scale = 0;
  for_shapes(vision.most, [&](const Sides& shape) {
    const double own =
        std::min(shape.width * side / image.width, shape.height * side / image.height);
    const bool better = own >= 1 ? scale < 1 || own < scale : scale < 1 && own > scale;
    if (better) {
      best = shape;
      scale = own;
    }
  });
  return best;
}

}  // namespace

ImageTokens image_tokens(const Vision& vision, const ImageSize& size) {
  const Patches& patch = vision.encoder.patches;
  const std::int64_t classes = patch.class_token ? 1 : 0;
  const auto across = static_cast<double>(patch.side * vision.merge);
  const std::int64_t squares = vision.merge * vision.merge;
  const Sides image{static_cast<double>(size.width), static_cast<double>(size.height)};
  const std::int64_t of_side = vision.side / patch.side;
  const std::int64_t of_square = of_side * of_side;
  const auto flowing = [&](const Sides& sides, std::int64_t breaks) {
    const std::int64_t tokens = std::llround(sides.width * sides.height);
    return ImageTokens{1, tokens * squares + classes, tokens, tokens + breaks + vision.marks};
  };
  const auto cut = [&](const Sides& shape, bool breaks) {
    const std::int64_t tiles = std::llround(shape.width * shape.height);
    const std::int64_t all = tiles > 1 ? tiles + 1 : 1;
    const std::int64_t encoded = all * (of_square / squares);
    return ImageTokens{all, of_square + classes, encoded,
                       encoded + (breaks && tiles > 1 ? tiles : 0) + vision.marks};
  };
  switch (vision.rule) {
    case ImageRule::whole:
      return {1, of_square + classes, vision.most, vision.most + vision.marks};
    case ImageRule::resized:
      return flowing(resized(vision, image, across), 0);
    case ImageRule::pooled: {
      ImageTokens tokens = flowing(pooled(vision, image), 0);
      tokens.patches = vision.most * squares + classes;
      tokens.encoded = vision.most;
      return tokens;
    }
    case ImageRule::rows: {
      const Sides sides = in_rows(vision, image, across);
      return flowing(sides, std::llround(sides.height));
    }
    case ImageRule::tiles:
      return cut(nearest_ratio(vision, image), false);
    case ImageRule::canvases:
      return cut(best_canvas(vision, image), true);
  }
  return {};
}

}  // namespace orrery::zoo
