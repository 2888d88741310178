// SPDX-License-Identifier: Apache-2.0
#include "mpi/two_hop.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <functional>

namespace orrery::mpi {
namespace {

constexpr unsigned kNibble = 4;
constexpr unsigned kLow = 0xf;

std::size_t wire_bytes(std::size_t elements, int bits, std::int64_t block) {
  const auto count = static_cast<std::int64_t>(elements);
  return bits == 0
             ? elements * sizeof(float)
             : static_cast<std::size_t>(collective::quantized_bytes(count, bits, block).value());
}

std::vector<std::byte> sent_bytes(std::span<const float> values, int bits, std::int64_t block) {
  if (bits > 0) {
    return to_wire(collective::quantize(values, bits, block));
  }
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

std::vector<float> received(std::span<const std::byte> wire, std::size_t elements, int bits,
                            std::int64_t block) {
  if (bits > 0) {
    return dequantize(from_wire(wire, elements, bits, block));
  }
  std::vector<float> values(elements);
  std::memcpy(values.data(), wire.data(), wire.size());
  return values;
}

int size_of(MPI_Comm comm) {
  int size = 1;
  MPI_Comm_size(comm, &size);
  return size;
}

}  // namespace

std::vector<std::byte> to_wire(const collective::QuantizedBlocks& blocks) {
  const std::size_t count = blocks.values.size();
  std::vector<std::byte> wire;
  wire.reserve(wire_bytes(count, blocks.bits, blocks.block));
  const std::size_t together = blocks.bits == 8 ? 1 : 2;
  for (std::size_t i = 0; i < count; i += together) {
    unsigned byte = static_cast<std::uint8_t>(blocks.values[i]);
    if (together == 2) {
      const unsigned next =
          i + 1 < count ? static_cast<std::uint8_t>(blocks.values[i + 1]) & kLow : 0U;
      byte = (byte & kLow) | (next << kNibble);
    }
    wire.push_back(static_cast<std::byte>(byte));
  }
  const auto scales = std::as_bytes(std::span(blocks.scales));
  wire.insert(wire.end(), scales.begin(), scales.end());
  return wire;
}

collective::QuantizedBlocks from_wire(std::span<const std::byte> wire, std::size_t elements,
                                      int bits, std::int64_t block) {
  collective::QuantizedBlocks blocks{.bits = bits, .block = block, .values = {}, .scales = {}};
  blocks.values.reserve(elements);
  const auto signed_of = [](unsigned four) {
    return static_cast<std::int8_t>(static_cast<int>(four ^ 8U) - 8);
  };
  for (std::size_t i = 0; i < elements; ++i) {
    if (bits == 8) {
      blocks.values.push_back(static_cast<std::int8_t>(wire[i]));
      continue;
    }
    const auto byte = static_cast<unsigned>(wire[i / 2]);
    blocks.values.push_back(signed_of(i % 2 == 0 ? byte & kLow : byte >> kNibble));
  }
  const std::size_t values = bits == 8 ? elements : (elements + 1) / 2;
  blocks.scales.resize((wire.size() - values) / sizeof(float));
  std::memcpy(blocks.scales.data(), wire.data() + values, wire.size() - values);
  return blocks;
}

TwoLevels::TwoLevels(int near, std::int64_t block) : block_(block), near_ranks_(near) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  ranks_ = size_of(MPI_COMM_WORLD);
  assert(ranks_ % near == 0 && "nodes of equal size");
  MPI_Comm_split(MPI_COMM_WORLD, rank / near, rank, &near_);
  MPI_Comm_split(MPI_COMM_WORLD, rank % near, rank, &across_);
}

TwoLevels::~TwoLevels() {
  MPI_Comm_free(&near_);
  MPI_Comm_free(&across_);
}

std::vector<float> TwoLevels::exchanged_sum(const std::vector<std::vector<float>>& parts, int bits,
                                            MPI_Comm comm, std::int64_t& bytes) const {
  const std::size_t elements = parts.front().size();
  const std::size_t each = wire_bytes(elements, bits, block_);
  std::vector<std::byte> out;
  for (const std::vector<float>& part : parts) {
    const std::vector<std::byte> wire = sent_bytes(part, bits, block_);
    out.insert(out.end(), wire.begin(), wire.end());
  }
  bytes += static_cast<std::int64_t>(out.size());
  std::vector<std::byte> in(out.size());
  MPI_Alltoall(out.data(), static_cast<int>(each), MPI_BYTE, in.data(), static_cast<int>(each),
               MPI_BYTE, comm);
  std::vector<float> sum(elements);
  for (std::size_t from = 0; from < parts.size(); ++from) {
    const auto wire = std::span(in).subspan(from * each, each);
    const std::vector<float> more = received(wire, elements, bits, block_);
    std::ranges::transform(sum, more, sum.begin(), std::plus<>());
  }
  return sum;
}

std::vector<float> TwoLevels::reduce(std::span<const float> values, int bits) {
  const auto near = static_cast<std::size_t>(near_ranks_);
  const std::size_t shard = values.size() / static_cast<std::size_t>(ranks_);
  std::vector<std::vector<float>> places(near);
  for (std::size_t first = 0; first < values.size(); first += shard) {
    std::vector<float>& place = places[first / shard % near];
    const auto part = values.subspan(first, shard);
    place.insert(place.end(), part.begin(), part.end());
  }
  const std::vector<float> of_node = exchanged_sum(places, bits, near_, near_bytes_);
  std::vector<std::vector<float>> nodes;
  for (std::size_t first = 0; first < of_node.size(); first += shard) {
    nodes.emplace_back(of_node.data() + first, of_node.data() + first + shard);
  }
  return exchanged_sum(nodes, bits, across_, far_bytes_);
}

std::vector<float> TwoLevels::gather(std::span<const float> part, int bits) {
  const std::vector<std::byte> wire = sent_bytes(part, bits, block_);
  far_bytes_ += static_cast<std::int64_t>(wire.size());
  std::vector<std::byte> in(wire.size() * static_cast<std::size_t>(ranks_));
  const int each = static_cast<int>(wire.size());
  MPI_Allgather(wire.data(), each, MPI_BYTE, in.data(), each, MPI_BYTE, MPI_COMM_WORLD);
  std::vector<float> all;
  for (std::size_t from = 0; from < in.size(); from += wire.size()) {
    const auto one = std::span(in).subspan(from, wire.size());
    const std::vector<float> values = received(one, part.size(), bits, block_);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::vector<float> TwoLevels::second(std::span<const float> own) {
  std::vector<float> all(own.size() * static_cast<std::size_t>(near_ranks_));
  near_bytes_ += static_cast<std::int64_t>(own.size_bytes());
  const int each = static_cast<int>(own.size());
  MPI_Allgather(own.data(), each, MPI_FLOAT, all.data(), each, MPI_FLOAT, near_);
  return all;
}

}  // namespace orrery::mpi
