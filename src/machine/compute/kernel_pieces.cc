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
  op.tracking = graph::Tracking::none;
  return op;
}

}  // namespace

TileTraffic tile_traffic(const graph::Operator& op, std::int64_t ranks, const Device& device) {
  const graph::GemmShape& shape = op.gemm;
  const auto bytes = [&](std::int64_t rows, std::int64_t columns) {
    return static_cast<double>(graph::bytes_of(op.type, shape.batch * rows * columns).value());
  };
  const double rereads = device.tracker.value_or(Tracker()).rereads;
  constexpr std::int64_t kLeastBits = 16;  // of a result, however narrow the operands are
  const double narrow = static_cast<double>(std::max(graph::bits_of(op.type), kLeastBits)) /
                        static_cast<double>(graph::bits_of(op.type));
  const double result = bytes(shape.m, shape.n) * narrow;
  return {.operands = rereads * (bytes(shape.m, shape.k) + bytes(shape.k, shape.n)),
          .result = result,
          .chunk = result / static_cast<double>(ranks),
          .ranks = ranks};
}

double slowed_by_engines(const graph::Operator& op, const Device& device) {
  if (op.tracking != graph::Tracking::shared) {
    return 1;
  }
  const TileTraffic traffic = tile_traffic(op, op.pieces, device);
  const double kappa = device.tracker.value_or(Tracker()).contention;
  return 1 + kappa * traffic.moved() / (traffic.product() + traffic.moved());
}

KernelTime time_in_pieces(const graph::Operator& op, const Device& device) {
  if (op.tracking != graph::Tracking::none) {
    const Time all = lone_kernel_time(whole_of(op), device) * slowed_by_engines(op, device);
    return {all, all, all};
  }
  const KernelTime whole = kernel_time(whole_of(op), device);
  return {whole.alone, std::max(whole.alone, whole.beside_collective),
          std::max(whole.alone, whole.beside_message)};
}

KernelTime piece_time(const graph::Operator& op, const Device& device) {
  const KernelTime whole = time_in_pieces(op, device);
  const auto part = [&](Time time) { return graph::part_of(time, op.piece, op.pieces); };
  const Time alone = part(whole.alone);
  return {alone, std::max(alone, part(whole.beside_collective)),
          std::max(alone, part(whole.beside_message))};
}

Time lone_piece_time(const graph::Operator& op, const Device& device, double clock) {
  const Time whole = lone_kernel_time(whole_of(op), device, clock) * slowed_by_engines(op, device);
  return graph::part_of(whole, op.piece, op.pieces);
}

}  // namespace orrery::compute
