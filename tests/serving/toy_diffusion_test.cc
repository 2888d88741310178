// SPDX-License-Identifier: Apache-2.0
/// Displaced patches for real: a toy diffusion of 64 tokens in a row by an attention layer, one
/// thread a patch. Keys and values of other patches are those of the step before; only a portion of
/// the neighbours' is attended to. What that costs is measured against one thread that sees all.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

namespace orrery::serving {
namespace {

constexpr std::size_t kTokens = 64;
constexpr std::size_t kWidth = 8;
constexpr std::size_t kPatches = 4;
constexpr std::size_t kPatch = kTokens / kPatches;
constexpr int kSteps = 20;

using Token = std::array<double, kWidth>;
using Image = std::vector<Token>;

struct Setting {
  double portion = 1;  ///< of a neighbour's patch; above kPatches: everybody's
  int warmup = 0;      ///< synchronous steps
};

/// Fixed weights: key = A x, value = B x, query = x.
struct Layer {
  std::array<Token, kWidth> key{};
  std::array<Token, kWidth> value{};

  Layer() {
    std::mt19937_64 random(7);
    const auto draw = [&] { return static_cast<double>(random() >> 11U) * 0x1.0p-53 - 0.5; };
    for (std::size_t i = 0; i < kWidth; ++i) {
      for (std::size_t j = 0; j < kWidth; ++j) {
        key[i][j] = draw() * 2;
        value[i][j] = draw();
      }
    }
  }
  static Token times(const std::array<Token, kWidth>& matrix, const Token& x) {
    Token y{};
    for (std::size_t i = 0; i < kWidth; ++i) {
      for (std::size_t j = 0; j < kWidth; ++j) {
        y[i] += matrix[i][j] * x[j];
      }
    }
    return y;
  }
};

Image noise() {
  std::mt19937_64 random(11);
  Image image(kTokens);
  for (Token& token : image) {
    for (double& value : token) {
      value = static_cast<double>(random() >> 11U) * 0x1.0p-52 - 1;
    }
  }
  return image;
}

/// One step of token t, which sees tokens [from, to) of `seen`.
Token denoised(const Token& token, const Image& seen, std::size_t from, std::size_t to,
               const Layer& layer) {
  std::vector<double> weights;
  double sum = 0;
  for (std::size_t other = from; other < to; ++other) {
    const Token key = Layer::times(layer.key, seen[other]);
    double score = 0;
    for (std::size_t i = 0; i < kWidth; ++i) {
      score += token[i] * key[i];
    }
    weights.push_back(std::exp(score / std::sqrt(static_cast<double>(kWidth))));
    sum += weights.back();
  }
  Token next = token;
  for (std::size_t other = from; other < to; ++other) {
    const Token value = Layer::times(layer.value, seen[other]);
    for (std::size_t i = 0; i < kWidth; ++i) {
      next[i] += 0.1 * weights[other - from] / sum * value[i];
    }
  }
  for (double& value : next) {
    value -= 0.05 * value;
  }
  return next;
}

/// Threads with a barrier a step; the images of this step and the last are shared.
Image diffuse(const Setting& setting) {
  const Layer layer;
  std::array<Image, 2> images{noise(), noise()};
  std::barrier step_done(static_cast<std::ptrdiff_t>(kPatches));
  std::vector<Image> stale(kPatches, images[0]);  // what each thread has received
  const auto work = [&](std::size_t patch) {
    const auto reach = static_cast<std::size_t>(
        std::min<double>(kTokens, std::round(setting.portion * static_cast<double>(kPatch))));
    const std::size_t begin = patch * kPatch;
    for (int step = 0; step < kSteps; ++step) {
      const Image& now = images[static_cast<std::size_t>(step % 2)];
      Image& next = images[static_cast<std::size_t>((step + 1) % 2)];
      const bool synchronous = step < setting.warmup;
      Image seen = synchronous ? now : stale[patch];
      std::copy_n(now.begin() + static_cast<long>(begin), kPatch,
                  seen.begin() + static_cast<long>(begin));
      const std::size_t from = synchronous ? 0 : begin - std::min(begin, reach);
      const std::size_t to = synchronous ? kTokens : std::min(kTokens, begin + kPatch + reach);
      for (std::size_t token = begin; token < begin + kPatch; ++token) {
        next[token] = denoised(now[token], seen, from, to, layer);
      }
      stale[patch] = now;  // sent while this step ran, used by the next
      step_done.arrive_and_wait();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t patch = 0; patch < kPatches; ++patch) {
    threads.emplace_back(work, patch);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return images[kSteps % 2];
}

Image alone() {
  const Layer layer;
  Image image = noise();
  for (int step = 0; step < kSteps; ++step) {
    Image next = image;
    for (std::size_t token = 0; token < kTokens; ++token) {
      next[token] = denoised(image[token], image, 0, kTokens, layer);
    }
    image = next;
  }
  return image;
}

/// Returns the PSNR of values around 1.
double psnr(const Image& image, const Image& reference) {
  double squares = 0;
  for (std::size_t token = 0; token < kTokens; ++token) {
    for (std::size_t i = 0; i < kWidth; ++i) {
      squares += std::pow(image[token][i] - reference[token][i], 2);
    }
  }
  return -10 * std::log10(squares / static_cast<double>(kTokens * kWidth) + 1e-30);
}

constexpr double kEverybody = kPatches;

TEST(ToyDiffusion, SynchronousStepsAreThoseOfOneDevice) {
  EXPECT_EQ(diffuse({.portion = 0, .warmup = kSteps}), alone());
}

TEST(ToyDiffusion, ThreadsDoNotChangeTheImage) {
  EXPECT_EQ(diffuse({.portion = 0.3, .warmup = 4}), diffuse({.portion = 0.3, .warmup = 4}));
}

/// Displaced attention to everybody (DistriFusion) without threads: of other patches the image of
/// the step before; in the first step all have the same noise.
Image displaced() {
  const Layer layer;
  Image last = noise();
  Image image = last;
  for (int step = 0; step < kSteps; ++step) {
    Image next = image;
    for (std::size_t token = 0; token < kTokens; ++token) {
      Image seen = last;
      const std::size_t begin = token / kPatch * kPatch;
      std::copy_n(image.begin() + static_cast<long>(begin), kPatch,
                  seen.begin() + static_cast<long>(begin));
      next[token] = denoised(image[token], seen, 0, kTokens, layer);
    }
    last = image;
    image = next;
  }
  return image;
}

TEST(ToyDiffusion, APortionOfEverythingIsDisplacedAttention) {
  EXPECT_EQ(diffuse({.portion = kEverybody, .warmup = 0}), displaced());
}

TEST(ToyDiffusion, ErrorFallsWithPortionAndWarmUp) {
  const Image exact = alone();
  const auto error = [&](double portion, int warmup) {
    const double db = psnr(diffuse({.portion = portion, .warmup = warmup}), exact);
    std::printf("portion %.1f, warm-up %2d: %.1f dB\n", portion, warmup, db);
    return db;
  };
  const double none = error(0, 2);
  const double some = error(0.3, 2);
  const double whole = error(1, 2);
  const double all = error(kEverybody, 2);
  EXPECT_LT(none, whole);
  EXPECT_LT(some, all);
  EXPECT_LT(whole, all);
  EXPECT_LT(some, error(0.3, 8));
  EXPECT_LT(error(0.3, 8), error(0.3, 16));
  EXPECT_LT(error(kEverybody, 0), error(kEverybody, 8));
}

}  // namespace
}  // namespace orrery::serving
