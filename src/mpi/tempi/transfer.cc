// SPDX-License-Identifier: Apache-2.0
#include "mpi/tempi/transfer.h"

#include <algorithm>

namespace orrery::tempi {
namespace {

constexpr int kTag = 0;

}  // namespace

Transfer::Transfer(MPI_Datatype type, int count, datatype::Packer packer)
    : type_(type),
      count_(count),
      packer_(std::move(packer)),
      packed_(static_cast<std::size_t>(packer_.bytes())) {
  const std::int64_t pieces = packer_.pieces();
  const std::int64_t wanted = (packer_.bytes() + datatype::kChunkBytes - 1) / datatype::kChunkBytes;
  const std::int64_t chunks = std::clamp<std::int64_t>(wanted, 1, pieces);
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < chunks; ++i) {
    chunks_.push_back({packer_.slice(i * pieces / chunks, (i + 1) * pieces / chunks), offset});
    offset += chunks_.back().packer.bytes();
  }
  requests_.resize(chunks_.size());
}

void Transfer::send(datatype::Method method, const void* buffer, int peer) {
  const auto* const typed = static_cast<const std::byte*>(buffer);
  switch (method) {
    case datatype::Method::library:
      MPI_Send(buffer, count_, type_, peer, kTag, MPI_COMM_WORLD);
      return;
    case datatype::Method::packed:
      packer_.pack(typed, packed_.data());
      MPI_Send(packed_.data(), static_cast<int>(packer_.bytes()), MPI_BYTE, peer, kTag,
               MPI_COMM_WORLD);
      return;
    case datatype::Method::pipelined:
      for (std::size_t i = 0; i < chunks_.size(); ++i) {
        const Chunk& chunk = chunks_[i];
        chunk.packer.pack(typed, packed_.data() + chunk.offset);
        MPI_Isend(packed_.data() + chunk.offset, static_cast<int>(chunk.packer.bytes()), MPI_BYTE,
                  peer, kTag, MPI_COMM_WORLD, &requests_[i]);
      }
      MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }
}

void Transfer::receive(datatype::Method method, void* buffer, int peer) {
  auto* const typed = static_cast<std::byte*>(buffer);
  switch (method) {
    case datatype::Method::library:
      MPI_Recv(buffer, count_, type_, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      return;
    case datatype::Method::packed:
      MPI_Recv(packed_.data(), static_cast<int>(packer_.bytes()), MPI_BYTE, peer, kTag,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      packer_.unpack(packed_.data(), typed);
      return;
    case datatype::Method::pipelined:
      for (std::size_t i = 0; i < chunks_.size(); ++i) {
        MPI_Irecv(packed_.data() + chunks_[i].offset, static_cast<int>(chunks_[i].packer.bytes()),
                  MPI_BYTE, peer, kTag, MPI_COMM_WORLD, &requests_[i]);
      }
      for (std::size_t i = 0; i < chunks_.size(); ++i) {
        MPI_Wait(&requests_[i], MPI_STATUS_IGNORE);
        chunks_[i].packer.unpack(packed_.data() + chunks_[i].offset, typed);
      }
  }
}

}  // namespace orrery::tempi
