// SPDX-License-Identifier: Apache-2.0
#include "datatype/datatype.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace orrery::datatype {
namespace {

bool is_empty(const Datatype& type) {
  return type.size() == 0;
}

/// Returns the bounds of copies of `old` at displacements between the least and the most.
Bounds spread(std::int64_t least, std::int64_t most, const Bounds& old) {
  return {least + old.lower, most - least + old.extent};
}

/// Adds the blocks of an element at `displacement`; false where there are too many.
bool append_blocks(const Datatype& type, std::int64_t displacement, std::vector<Block>& blocks) {
  std::vector<std::int64_t> origins{displacement};
  for (const Stream& stream : type.streams) {
    if (stream.count * static_cast<std::int64_t>(origins.size()) > kMostBlocks) {
      return false;
    }
    std::vector<std::int64_t> next;
    next.reserve(origins.size() * static_cast<std::size_t>(stream.count));
    for (const std::int64_t origin : origins) {
      for (std::int64_t i = 0; i < stream.count; ++i) {
        next.push_back(origin + i * stream.stride);
      }
    }
    origins = std::move(next);
  }
  for (const std::int64_t origin : origins) {
    for (const Block& block : type.blocks) {
      blocks.push_back({origin + block.offset, block.bytes});
    }
  }
  return static_cast<std::int64_t>(blocks.size()) <= kMostBlocks;
}

/// Returns whether all lengths are one, and all displacements equally far apart.
bool is_vector(std::span<const std::int64_t> lengths, std::span<const std::int64_t> displacements) {
  for (std::size_t i = 1; i < lengths.size(); ++i) {
    if (lengths[i] != lengths[0] ||
        displacements[i] - displacements[i - 1] != displacements[1] - displacements[0]) {
      return false;
    }
  }
  return !lengths.empty();
}

void shift(Datatype& type, std::int64_t displacement) {
  for (Block& block : type.blocks) {
    block.offset += displacement;
  }
}

bool drop_empty(Datatype& type) {
  if (std::erase_if(type.blocks, [](const Block& block) { return block.bytes == 0; }) > 0) {
    return true;
  }
  const bool none =
      type.blocks.empty() || std::any_of(type.streams.begin(), type.streams.end(),
                                         [](const Stream& stream) { return stream.count == 0; });
  if (!none || (type.blocks.empty() && type.streams.empty())) {
    return false;
  }
  type.blocks.clear();
  type.streams.clear();
  return true;
}

bool elide(Datatype& type) {
  return std::erase_if(type.streams, [](const Stream& stream) { return stream.count == 1; }) > 0;
}

bool merge(Datatype& type) {
  std::vector<Block> merged;
  for (const Block& block : type.blocks) {
    if (!merged.empty() && merged.back().offset + merged.back().bytes == block.offset) {
      merged.back().bytes += block.bytes;
    } else {
      merged.push_back(block);
    }
  }
  const bool changed = merged.size() < type.blocks.size();
  type.blocks = std::move(merged);
  return changed;
}

bool make_regular(Datatype& type) {
  const std::vector<Block>& blocks = type.blocks;
  if (blocks.size() < 2) {
    return false;
  }
  const std::int64_t stride = blocks[1].offset - blocks[0].offset;
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].bytes != blocks[0].bytes || blocks[i].offset - blocks[i - 1].offset != stride) {
      return false;
    }
  }
  type.streams.push_back({stride, static_cast<std::int64_t>(blocks.size())});
  type.blocks.resize(1);
  return true;
}

bool fold(Datatype& type) {
  if (type.streams.empty() || type.blocks.size() != 1 ||
      type.streams.back().stride != type.blocks[0].bytes) {
    return false;
  }
  type.blocks[0].bytes *= type.streams.back().count;
  type.streams.pop_back();
  return true;
}

bool flatten(Datatype& type) {
  for (std::size_t i = 0; i + 1 < type.streams.size(); ++i) {
    const Stream inner = type.streams[i + 1];
    if (type.streams[i].stride == inner.stride * inner.count) {
      type.streams[i] = {inner.stride, type.streams[i].count * inner.count};
      type.streams.erase(type.streams.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return true;
    }
  }
  return false;
}

}  // namespace

std::int64_t Datatype::size() const {
  std::int64_t bytes = 0;
  for (const Block& block : blocks) {
    bytes += block.bytes;
  }
  for (const Stream& stream : streams) {
    bytes *= stream.count;
  }
  return bytes;
}

Datatype named(std::int64_t bytes, std::int64_t extent) {
  return {{0, extent}, {}, {{0, bytes}}};
}

Datatype contiguous(std::int64_t count, const Datatype& old) {
  return hvector(1, count, 0, old);
}

Datatype hvector(std::int64_t count, std::int64_t length, std::int64_t stride,
                 const Datatype& old) {
  if (count == 0 || length == 0) {
    return {};
  }
  Datatype made = old;
  made.streams.insert(made.streams.begin(), {{stride, count}, {old.bounds.extent, length}});
  const std::int64_t outer = (count - 1) * stride;
  const std::int64_t inner = (length - 1) * old.bounds.extent;
  made.bounds =
      spread(std::min<std::int64_t>(outer, 0) + std::min<std::int64_t>(inner, 0),
             std::max<std::int64_t>(outer, 0) + std::max<std::int64_t>(inner, 0), old.bounds);
  return made;
}

Datatype subarray(std::span<const int> sizes, std::span<const int> subsizes,
                  std::span<const int> starts, ArrayOrder order, const Datatype& old) {
  assert(sizes.size() == subsizes.size() && sizes.size() == starts.size());
  Datatype made = old;
  std::int64_t stride = old.bounds.extent;
  std::int64_t start = 0;
  for (std::size_t step = 0; step < sizes.size(); ++step) {
    const std::size_t d = order == ArrayOrder::c ? sizes.size() - 1 - step : step;
    made.streams.insert(made.streams.begin(), {stride, subsizes[d]});
    start += starts[d] * stride;
    stride *= sizes[d];
  }
  shift(made, start);
  made.bounds = {0, stride};
  return made;
}

Datatype resized(Bounds bounds, Datatype old) {
  old.bounds = bounds;
  return old;
}

std::optional<Datatype> hindexed(std::span<const std::int64_t> lengths,
                                 std::span<const std::int64_t> displacements, const Datatype& old) {
  if (is_vector(lengths, displacements)) {
    const std::int64_t stride = lengths.size() > 1 ? displacements[1] - displacements[0] : 0;
    Datatype made = hvector(static_cast<std::int64_t>(lengths.size()), lengths[0], stride, old);
    if (lengths[0] > 0) {
      shift(made, displacements[0]);
      made.bounds.lower += displacements[0];
    }
    return made;
  }
  const std::vector<Datatype> types(lengths.size(), old);
  return structure(lengths, displacements, types);
}

std::optional<Datatype> structure(std::span<const std::int64_t> lengths,
                                  std::span<const std::int64_t> displacements,
                                  std::span<const Datatype> types) {
  Datatype made;
  std::int64_t lower = INT64_MAX;
  std::int64_t upper = INT64_MIN;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] == 0) {
      continue;
    }
    const Datatype part = canonical(contiguous(lengths[i], types[i]));
    lower = std::min(lower, displacements[i] + part.bounds.lower);
    upper = std::max(upper, displacements[i] + part.bounds.upper());
    if (!is_empty(part) && !append_blocks(part, displacements[i], made.blocks)) {
      return std::nullopt;
    }
  }
  if (lower <= upper) {
    made.bounds = {lower, upper - lower};
  }
  return made;
}

Datatype repeated(std::int64_t count, const Datatype& type) {
  return contiguous(count, type);
}

Datatype canonical(Datatype type) {
  while (drop_empty(type) || elide(type) || merge(type) || make_regular(type) || fold(type) ||
         flatten(type)) {
  }
  return type;
}

}  // namespace orrery::datatype
