// SPDX-License-Identifier: Apache-2.0
#include "datatype/packer.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace orrery::datatype {
namespace {

/// Blocks of these sizes have a kernel of their own: a call of memcpy costs more than the copy.
constexpr std::array<std::int64_t, 16> kSizes{1,  2,  3,  4,  6,  8,  12, 16,
                                              20, 24, 32, 40, 48, 64, 96, 128};
/// Iterations of the outer stream in a tile: two cache lines of doubles.
constexpr std::int64_t kTile = 16;

template <bool kPack>
void copy(std::byte* typed, std::byte* packed, std::int64_t bytes) {
  if constexpr (kPack) {
    std::memcpy(packed, typed, static_cast<std::size_t>(bytes));
  } else {
    std::memcpy(typed, packed, static_cast<std::size_t>(bytes));
  }
}

}  // namespace

template <bool kPack>
struct Packer::Kernels {
  /// Blocks of kBytes, or of any size where it is 0, row by row.
  template <std::int64_t kBytes>
  static void rows(std::byte* typed, std::byte* packed, const Packer& packer) {
    const std::int64_t bytes = kBytes > 0 ? kBytes : packer.type_.blocks[0].bytes;
    const Stream outer = packer.outer_;
    const Stream inner = packer.inner_;
    for (std::int64_t o = 0; o < outer.count; ++o) {
      std::byte* at = typed + o * outer.stride;
      for (std::int64_t i = 0; i < inner.count; ++i) {
        copy<kPack>(at, packed, kBytes > 0 ? kBytes : bytes);
        at += inner.stride;
        packed += bytes;
      }
    }
  }

  /// The same, a tile of the outer stream at a time.
  template <std::int64_t kBytes>
  static void tiles(std::byte* typed, std::byte* packed, const Packer& packer) {
    const std::int64_t bytes = kBytes > 0 ? kBytes : packer.type_.blocks[0].bytes;
    const Stream outer = packer.outer_;
    const Stream inner = packer.inner_;
    const std::int64_t row = inner.count * bytes;
    for (std::int64_t first = 0; first < outer.count; first += kTile) {
      const std::int64_t last = std::min(first + kTile, outer.count);
      for (std::int64_t i = 0; i < inner.count; ++i) {
        for (std::int64_t o = first; o < last; ++o) {
          copy<kPack>(typed + o * outer.stride + i * inner.stride, packed + o * row + i * bytes,
                      kBytes > 0 ? kBytes : bytes);
        }
      }
    }
  }

  /// Several blocks of their own sizes.
  static void blocks(std::byte* typed, std::byte* packed, const Packer& packer) {
    for (std::int64_t o = 0; o < packer.outer_.count; ++o) {
      for (std::int64_t i = 0; i < packer.inner_.count; ++i) {
        std::byte* at = typed + o * packer.outer_.stride + i * packer.inner_.stride;
        for (const Block& block : packer.type_.blocks) {
          copy<kPack>(at + block.offset, packed, block.bytes);
          packed += block.bytes;
        }
      }
    }
  }

  template <std::size_t... kAt>
  static Kernel sized(std::int64_t bytes, bool tiled, std::index_sequence<kAt...> /*all*/) {
    Kernel kernel = tiled ? &tiles<0> : &rows<0>;
    ((kSizes[kAt] == bytes ? kernel = (tiled ? &tiles<kSizes[kAt]> : &rows<kSizes[kAt]>) : kernel),
     ...);
    return kernel;
  }
};

Packer::Packer(const Datatype& type, std::int64_t count) : type_(canonical(repeated(count, type))) {
  choose();
}

void Packer::choose() {
  bytes_ = type_.size();
  const std::size_t depth = type_.streams.size();
  inner_ = depth > 0 ? type_.streams[depth - 1] : Stream{};
  outer_ = depth > 1 ? type_.streams[depth - 2] : Stream{};
  walked_ = depth > 2 ? depth - 2 : 0;
  inner_bytes_ = bytes_;
  for (std::size_t level = 0; level < walked_; ++level) {
    inner_bytes_ /= std::max<std::int64_t>(type_.streams[level].count, 1);
  }
  if (type_.blocks.size() > 1) {
    pack_ = &Kernels<true>::blocks;
    unpack_ = &Kernels<false>::blocks;
    return;
  }
  const bool tiled = outer_.count > 1 && std::abs(outer_.stride) < std::abs(inner_.stride);
  constexpr std::make_index_sequence<kSizes.size()> kAll;
  pack_ = Kernels<true>::sized(block(), tiled, kAll);
  unpack_ = Kernels<false>::sized(block(), tiled, kAll);
}

std::int64_t Packer::block() const {
  return type_.blocks.empty() ? 0 : type_.blocks.back().bytes;
}

std::int64_t Packer::pieces() const {
  return type_.streams.empty() ? 1 : type_.streams.front().count;
}

Packer Packer::slice(std::int64_t first, std::int64_t last) const {
  assert(0 <= first && first < last && last <= pieces());
  Packer cut = *this;
  if (!type_.streams.empty()) {
    for (Block& block : cut.type_.blocks) {
      block.offset += first * type_.streams.front().stride;
    }
    cut.type_.streams.front().count = last - first;
  }
  cut.choose();
  return cut;
}

std::byte* Packer::walk(Kernel kernel, std::size_t level, std::byte* typed,
                        std::byte* packed) const {
  if (level == walked_) {
    kernel(typed, packed, *this);
    return packed + inner_bytes_;
  }
  const Stream stream = type_.streams[level];
  for (std::int64_t i = 0; i < stream.count; ++i) {
    packed = walk(kernel, level + 1, typed + i * stream.stride, packed);
  }
  return packed;
}

void Packer::pack(const std::byte* typed, std::byte* packed) const {
  if (bytes_ > 0) {
    const std::int64_t offset = type_.blocks.size() > 1 ? 0 : type_.blocks[0].offset;
    walk(pack_, 0, const_cast<std::byte*>(typed) + offset, packed);  // read only: kPack
  }
}

void Packer::unpack(const std::byte* packed, std::byte* typed) const {
  if (bytes_ > 0) {
    const std::int64_t offset = type_.blocks.size() > 1 ? 0 : type_.blocks[0].offset;
    walk(unpack_, 0, typed + offset, const_cast<std::byte*>(packed));  // read only
  }
}

}  // namespace orrery::datatype
