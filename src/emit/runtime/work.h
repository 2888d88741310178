// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "emit/runtime/plan.h"
#ifdef PLAN_CBLAS
#include <cblas.h>
#endif

namespace plan {

/// A Ring is memory that is used part after part. Where it is larger than caches, weights and
/// activations come from memory each time, as on a device that keeps them there.
class Ring {
 public:
  /// Makes a ring of floats. `floats`: those that it has, or those of the largest part.
  explicit Ring(std::size_t floats) : least_(floats) {}

  float* next(std::size_t floats, float value) {
    if (all_.size() < std::max(floats, least_)) {
      all_.resize(std::max(floats, least_), value);
    }
    at_ = at_ + floats > all_.size() ? 0 : at_;
    float* const begin = all_.data() + at_;
    at_ += floats;
    return begin;
  }

 private:
  std::size_t least_;
  std::vector<float> all_;
  std::size_t at_ = 0;
};

/// Kernels do a plan's work on matrices of halves, whose products are exact.
class Kernels {
 public:
  /// Makes the kernels. `timed`: operands come from memory.
  explicit Kernels(bool timed)
      : halves_(timed ? kLarge : kPart),
        results_(timed ? kLarge : kPart),
        ones_(timed ? kLarge : kPart) {}

  void run(std::span<const Work> works) {
    for (const Work& work : works) {
      if (work.batch > 0) {
        multiply(work);
      } else if (work.bytes > 0) {
        stream(work.bytes);
      } else {
        last(std::chrono::nanoseconds(work.nanoseconds));
      }
    }
  }

  /// Products that came out otherwise.
  long long wrong() const { return wrong_; }

 private:
  void multiply(const Work& work) {
    const auto m = static_cast<std::size_t>(work.m);
    const auto n = static_cast<std::size_t>(work.n);
    const auto k = static_cast<std::size_t>(work.k);
    for (std::int64_t time = 0; time < work.batch; ++time) {
      const float* const a = halves_.next(m * k + k * n, 0.5F);
      const float* const b = a + m * k;
      float* const c = results_.next(m * n, 0.0F);
#ifdef PLAN_CBLAS
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(m),
                  static_cast<int>(n), static_cast<int>(k), 1.0F, a, static_cast<int>(k), b,
                  static_cast<int>(n), 0.0F, c, static_cast<int>(n));
#else
      multiply(work, a, b, c);
#endif
      wrong_ += c[0] == 0.25F * static_cast<float>(k) ? 0 : 1;  // exact: a sum of quarters
    }
  }

  /// Multiplies in blocks of B that stay in a cache while all rows of A pass them.
  static void multiply(const Work& work, const float* a, const float* b, float* c) {
    const auto m = static_cast<std::size_t>(work.m);
    const auto n = static_cast<std::size_t>(work.n);
    const auto k = static_cast<std::size_t>(work.k);
    constexpr std::size_t kDeep = 64;
    constexpr std::size_t kWide = 512;
    std::fill_n(c, m * n, 0.0F);
    for (std::size_t block = 0; block < k; block += kDeep) {
      const std::size_t deep = std::min(k, block + kDeep);
      for (std::size_t first = 0; first < n; first += kWide) {
        const std::size_t wide = std::min(n - first, kWide);
        for (std::size_t i = 0; i < m; ++i) {
          float* const to = c + i * n + first;
          for (std::size_t l = block; l < deep; ++l) {
            const float factor = a[i * k + l];
            const float* const from = b + l * n + first;
            for (std::size_t j = 0; j < wide; ++j) {
              to[j] += factor * from[j];
            }
          }
        }
      }
    }
  }

  void stream(std::int64_t bytes) {
    auto floats = static_cast<std::size_t>(bytes) / (2 * sizeof(float));  // read and written
    while (floats > 0) {
      const std::size_t part = std::min(floats, kPart);
      float* const at = ones_.next(part, 1.0F);
      for (std::size_t i = 0; i < part; ++i) {
        at[i] += 1.0F;
      }
      floats -= part;
    }
  }

  static void last(std::chrono::nanoseconds time) {
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < time) {
    }
  }

  static constexpr std::size_t kPart = std::size_t{1} << 18U;
  /// 64 MiB, beyond the share of a last-level cache that one core has.
  static constexpr std::size_t kLarge = std::size_t{1} << 24U;

  Ring halves_;
  Ring results_;
  Ring ones_;
  long long wrong_ = 0;
};

}  // namespace plan
