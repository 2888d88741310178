// SPDX-License-Identifier: Apache-2.0
/// The part of an image under a square kernel. Private to neural.
#pragma once

#include <algorithm>

#include "neural/network.h"

namespace orrery::neural {

/// Rows [top, bottom) and columns [left, right) of one channel, without what lies outside.
struct Window {
  std::int64_t top = 0;
  std::int64_t bottom = 0;
  std::int64_t left = 0;
  std::int64_t right = 0;
  std::int64_t width = 0;   ///< of the image
  std::int64_t kernel = 0;  ///< its extent
  std::int64_t y = 0;       ///< of the kernel's first element, perhaps outside
  std::int64_t x = 0;

  std::int64_t size() const { return (bottom - top) * (right - left); }
  std::size_t first() const { return static_cast<std::size_t>(top * width + left); }
  /// Calls visit(position in the channel, element of the kernel), by rows.
  template <class Visit>
  void each(const Visit& visit) const {
    for (std::int64_t row = top; row < bottom; ++row) {
      for (std::int64_t column = left; column < right; ++column) {
        visit(static_cast<std::size_t>(row * width + column),
              static_cast<std::size_t>((row - y) * kernel + column - x));
      }
    }
  }
};

/// Returns the window of output position `p`, by rows.
inline Window window_of(const Layer& layer, std::size_t p) {
  const std::int64_t height = layer.in.extents[1];
  const std::int64_t width = layer.in.extents[2];
  const auto at = static_cast<std::int64_t>(p);
  const std::int64_t y = at / layer.out.extents[2] * layer.stride - (layer.kernel - 1) / 2;
  const std::int64_t x = at % layer.out.extents[2] * layer.stride - (layer.kernel - 1) / 2;
  return {.top = std::max<std::int64_t>(y, 0),
          .bottom = std::min(y + layer.kernel, height),
          .left = std::max<std::int64_t>(x, 0),
          .right = std::min(x + layer.kernel, width),
          .width = width,
          .kernel = layer.kernel,
          .y = y,
          .x = x};
}

}  // namespace orrery::neural
