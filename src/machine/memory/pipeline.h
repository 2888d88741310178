// SPDX-License-Identifier: Apache-2.0
/// Time of a transfer that passes several links and memories.
///
/// A transfer cut into n equal chunks passes its stages one after the other; stage i moves bytes_i
/// in all, at bandwidth_i, one chunk at a time. With s_i = bytes_i / bandwidth_i the last chunk
/// leaves the last stage after
///
///   T(n) = sum_i s_i / n + (n - 1) max_i s_i / n
///        = max_i s_i + (sum_i s_i - max_i s_i) / n
///
/// n = 1 is store and forward (the sum), many chunks come near to the slowest stage (the maximum);
/// T falls with n and with every bandwidth and is never below the slowest stage. Latencies are the
/// caller's: the first chunk sees each of them once, the others behind it do not.
///
/// The same formula is the time of a loop whose pieces are loaded while the piece before them is
/// computed with: the stages are the whole load and the whole computation, n is the pieces.
///
/// Ignores: the rest of a last, smaller chunk; finite buffers between stages.
/// Source:  flow shop of identical jobs; ASTRA-sim 2.0 (arXiv 2303.14006) describes transfers from
///          pooled memory as such a pipeline of chunks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/units.h"

namespace orrery::memory {

struct TransferStage {
  std::string_view name;
  Bytes bytes{0};
  Bandwidth bandwidth{0};

  Time time() const { return bytes / bandwidth; }
};

/// Returns T(chunks). Requires chunks >= 1, bandwidths > 0. Zero without stages.
Time pipelined_time(std::span<const TransferStage> stages, std::int64_t chunks);

/// Returns the stage that bounds the transfer: the first of the slowest. Requires one at least.
const TransferStage& slowest(std::span<const TransferStage> stages);

/// Access to a device's own memory: latency + bytes / bandwidth.
Time local_access(Bytes bytes, Bandwidth bandwidth, Time latency);

}  // namespace orrery::memory
