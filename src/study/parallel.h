// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace orrery::study {

/// work(0) ... work(count - 1), each once, on up to `threads` threads (0 = one per processor). The
/// calls must be independent of one another; then the number of threads changes no result.
/// `progress` gets the share done, on the calling thread.
void run_parallel(std::size_t count, int threads, const std::function<void(std::size_t)>& work,
                  const std::function<void(double)>& progress = {});

}  // namespace orrery::study
