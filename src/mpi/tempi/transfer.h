// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <vector>

#include "datatype/packer.h"
#include "datatype/profile.h"

namespace orrery::tempi {

/// A Transfer moves elements of one datatype between two ranks that hold the same Transfer and name
/// the same method: messages of a pipelined one are chunks. Keeps a buffer of the packed bytes.
///
/// Requires a type that from_mpi reads. One transfer at a time.
class Transfer {
 public:
  Transfer(MPI_Datatype type, int count, datatype::Packer packer);

  const datatype::Packer& packer() const { return packer_; }
  void send(datatype::Method method, const void* buffer, int peer);
  void receive(datatype::Method method, void* buffer, int peer);

 private:
  struct Chunk {
    datatype::Packer packer;
    std::int64_t offset = 0;
  };

  MPI_Datatype type_;
  int count_;
  datatype::Packer packer_;
  std::vector<Chunk> chunks_;
  std::vector<std::byte> packed_;
  std::vector<MPI_Request> requests_;
};

}  // namespace orrery::tempi
