// SPDX-License-Identifier: Apache-2.0
/// A model's processor makes patches for its encoder and tokens of its text of an image.
///
/// p: pixels of a patch's side, m: Vision::merge, f = p m.
///
///   whole     scaled to a square of `side`: (side / p)^2 patches, `most` tokens (SigLIP of
///             Gemma 3, CLIP of LLaVA 1.5)
///   resized   both sides to the nearest multiple of f (of two alike the even one), or, scaled to
///             least_pixels .. most_pixels, down or up to one: w h / p^2 patches, w h / f^2 tokens
///             (smart_resize of Qwen2-VL to Qwen3.5)
///   pooled    both sides to multiples of f so that there are at most `most` tokens, as many as
///             possible; patches are padded to `most` m^2 (Gemma 4)
///   rows      scaled down to sides of at most `side`, up to multiples of f; as `resized`, and a
///             token at the end of every row (Pixtral)
///   tiles     i x j tiles of `side`, i j <= `most`, of the ratio nearest to the image's, the
///             larger of two alike if the image fills more than half of it; more than one: and the
///             image as one tile (InternVL)
///   canvases  the i x j tiles of `side`, i j <= `most`, in which the image is scaled up least, or
///             else down least, the smaller of two alike; a token between tiles of a row and one
///             behind it; more than one: and the image as one tile (Llama 4)
///
/// Tiles attend alone. To all come `marks` tokens around the image.
#pragma once

#include <cstdint>

#include "workload/zoo/architecture.h"

namespace orrery::zoo {

struct ImageSize {
  std::int64_t width = 0;  ///< pixels
  std::int64_t height = 0;
};

struct ImageTokens {
  std::int64_t tiles = 1;    ///< sequences of the encoder, which do not see one another
  std::int64_t patches = 0;  ///< rows of the encoder in each, with a class token
  std::int64_t encoded = 0;  ///< rows that the projector makes of all
  std::int64_t tokens = 0;   ///< of text
};

/// Requires 1 <= width, height < 2^24.
ImageTokens image_tokens(const Vision& vision, const ImageSize& image);

}  // namespace orrery::zoo
