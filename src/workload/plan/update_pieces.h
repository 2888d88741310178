// SPDX-License-Identifier: Apache-2.0
/// Optimizer states that do not live in device memory (offload_optimizer) are updated in pieces, so
/// that one piece's copies run beside the update of another, and only few of them take room on the
/// device.
#pragma once

#include <cstdint>

namespace orrery::plan {

/// K.
inline constexpr std::int64_t kUpdatePieces = 8;

}  // namespace orrery::plan
