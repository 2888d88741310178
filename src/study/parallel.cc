// SPDX-License-Identifier: Apache-2.0
#include "study/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace orrery::study {

void run_parallel(std::size_t count, int threads, const std::function<void(std::size_t)>& work,
                  const std::function<void(double)>& progress) {
  const unsigned wanted =
      threads > 0 ? static_cast<unsigned>(threads) : std::thread::hardware_concurrency();
  const std::size_t workers = std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(count, 1));
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  const auto take = [&](bool reports) {
    for (std::size_t i = next++; i < count; i = next++) {
      work(i);
      const std::size_t finished = ++done;
      if (reports && progress) {
        progress(static_cast<double>(finished) / static_cast<double>(count));
      }
    }
  };
  std::vector<std::jthread> pool;
  for (std::size_t i = 1; i < workers; ++i) {
    pool.emplace_back(take, false);
  }
  take(true);
}

}  // namespace orrery::study
