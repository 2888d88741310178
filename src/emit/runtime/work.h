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

/// Kernels do a plan's work on matrices of ones and halves, whose products are exact.
class Kernels {
 public:
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
    a_.resize(std::max(a_.size(), m * k), 1.0F);
    b_.resize(std::max(b_.size(), k * n), 0.5F);
    c_.resize(std::max(c_.size(), m * n));
    for (std::int64_t time = 0; time < work.batch; ++time) {
#ifdef PLAN_CBLAS
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(m),
                  static_cast<int>(n), static_cast<int>(k), 1.0F, a_.data(), static_cast<int>(k),
                  b_.data(), static_cast<int>(n), 0.0F, c_.data(), static_cast<int>(n));
#else
      std::fill_n(c_.begin(), m * n, 0.0F);
      for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t l = 0; l < k; ++l) {
          for (std::size_t j = 0; j < n; ++j) {
            c_[i * n + j] += a_[i * k + l] * b_[l * n + j];
          }
        }
      }
#endif
      wrong_ += c_[0] == 0.5F * static_cast<float>(k) ? 0 : 1;  // exact: a sum of halves
    }
  }

  void stream(std::int64_t bytes) {
    const std::size_t most = 1U << 22U;
    const auto floats = static_cast<std::size_t>(bytes) / (2 * sizeof(float));  // read and written
    streamed_.resize(std::max(streamed_.size(), std::min(floats, most)));
    for (std::size_t done = 0; done < floats; done += most) {
      const std::size_t part = std::min(most, floats - done);
      for (std::size_t i = 0; i < part; ++i) {
        streamed_[i] += 1.0F;
      }
    }
  }

  static void last(std::chrono::nanoseconds time) {
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < time) {
    }
  }

  std::vector<float> a_;
  std::vector<float> b_;
  std::vector<float> c_;
  std::vector<float> streamed_;
  long long wrong_ = 0;
};

}  // namespace plan
