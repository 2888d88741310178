// SPDX-License-Identifier: Apache-2.0
#include "machine/compute/kernel_pieces.h"

#include <algorithm>

namespace orrery::compute {
namespace {

/// Returns the kernel of which `op` is a piece, as far as its time goes: only its first piece is
/// launched.
graph::Operator whole_of(graph::Operator op) {
  op.pieces = 1;
  op.piece = 0;
  op.kernels = 1;
  return op;
}

}  // namespace

KernelTime piece_time(const graph::Operator& op, const Device& device) {
  const KernelTime whole = kernel_time(whole_of(op), device);
  const auto part = [&](Time time) { return graph::part_of(time, op.piece, op.pieces); };
  const Time alone = part(whole.alone);
  return {alone, std::max(alone, part(whole.beside_collective)),
          std::max(alone, part(whole.beside_message))};
}

Time lone_piece_time(const graph::Operator& op, const Device& device, double clock) {
  return graph::part_of(lone_kernel_time(whole_of(op), device, clock), op.piece, op.pieces);
}

}  // namespace orrery::compute
