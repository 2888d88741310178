// SPDX-License-Identifier: Apache-2.0
#include "collective/layout/packing.h"

#include <algorithm>
#include <map>

#include "datatype/datatype.h"
#include "machine/compute/compute_model.h"

namespace orrery::layout {
namespace {

constexpr std::int64_t kSector = 32;  // bytes

/// `piece` within the rows of `whole`.
datatype::Datatype type_of(const Box& piece, const Box& whole, const Shape& shape) {
  datatype::Datatype type = datatype::named(shape.element.value(), shape.element.value());
  std::int64_t stride = shape.element.value();
  for (std::size_t d = Shape::kMost; d-- > 0;) {
    type = datatype::hvector(piece.end[d] - piece.begin[d], 1, stride, type);
    stride *= whole.end[d] - whole.begin[d];
  }
  return datatype::canonical(std::move(type));
}

struct Copies {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::int64_t block = 0;
  std::int64_t moved = 0;  ///< with whole sectors

  void add(const datatype::Datatype& type) {
    std::int64_t repeats = 1;
    for (const datatype::Stream& stream : type.streams) {
      repeats *= stream.count;
    }
    for (const datatype::Block& each : type.blocks) {
      moved += repeats * ((each.bytes + kSector - 1) / kSector * kSector);
      block = block == 0 ? each.bytes : std::min(block, each.bytes);
    }
    blocks += repeats * static_cast<std::int64_t>(type.blocks.size());
    bytes += type.size();
    moved += type.size();
  }
};

Time copy_time(const Copies& copies, const compute::Device& device) {
  graph::Operator op{.name = "pack"};
  op.bytes = Bytes(copies.moved);
  return copies.bytes > 0 ? compute::lone_kernel_time(op, device) : Time(0);
}

/// The copies of a rank before and after a step.
struct BothCopies {
  Copies pack;
  Copies unpack;
};

std::map<std::int64_t, BothCopies> copies_of(const Step& step, const Shape& shape,
                                             const Mesh& mesh) {
  std::map<std::int64_t, BothCopies> ranks;
  if (!moves(step.operation) || step.operation == Operation::all_reduce) {
    return ranks;
  }
  const auto add = [&](Copies& copies, const Layout& layout, std::int64_t rank, const Box& box) {
    const datatype::Datatype type = type_of(box, held(shape, mesh, layout, rank), shape);
    if (!type.streams.empty() || type.blocks.size() > 1) {
      copies.add(type);
    }
  };
  for (const Piece& piece : moves_of(step, shape, mesh).pieces) {
    add(ranks[piece.sender].pack, step.from, piece.sender, piece.box);
    add(ranks[piece.receiver].unpack, step.to, piece.receiver, piece.box);
  }
  return ranks;
}

}  // namespace

Packing packing_of(const Step& step, const Shape& shape, const Mesh& mesh,
                   const compute::Device& device) {
  Packing most;
  for (const auto& [rank, copies] : copies_of(step, shape, mesh)) {
    const auto& [pack, unpack] = copies;
    const Time time = copy_time(pack, device) + copy_time(unpack, device);
    if (time > most.time) {
      const std::int64_t shortest = pack.block == 0     ? unpack.block
                                    : unpack.block == 0 ? pack.block
                                                        : std::min(pack.block, unpack.block);
      most = {.time = time, .blocks = pack.blocks + unpack.blocks, .block = Bytes(shortest)};
    }
  }
  return most;
}

Passes packing_passes(Operation operation, const Placement& from, const Placement& to) {
  const Mesh mesh{.axes = {{"axis", 2}}};
  const Shape shape{.extents = {4, 4, 4}, .element = Bytes(kSector)};
  const auto ranks = copies_of({.operation = operation, .from = {from}, .to = {to}}, shape, mesh);
  const auto passes = [](const Copies& copies) {
    return copies.bytes > 0 ? static_cast<double>(copies.moved) / static_cast<double>(copies.bytes)
                            : 0;
  };
  return ranks.empty()
             ? Passes()
             : Passes{passes(ranks.begin()->second.pack), passes(ranks.begin()->second.unpack)};
}

}  // namespace orrery::layout
