// SPDX-License-Identifier: Apache-2.0
/// libtempi_openmpi.so and libtempi_mpich.so: faster MPI_Pack, MPI_Unpack, MPI_Send and MPI_Recv of
/// derived datatypes for a program that is not compiled again.
///
///   LD_PRELOAD=libtempi_openmpi.so mpirun ... program
///
/// Every function is that of MPI with the same bytes in the same order; what has no packer goes to
/// the next library that defines it. A message is packed and sent as MPI_PACKED only where the
/// profile named by TEMPI_PROFILE predicts that it is faster, without one never: the receiver may
/// be any, since packed and typed bytes are equal between equal machines. TEMPI_REPORT=1 prints at
/// MPI_Finalize how many calls were taken over. Nonblocking and collective calls pass through.
#include <dlfcn.h>
#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "datatype/packer.h"
#include "datatype/profile.h"
#include "mpi/tempi/from_mpi.h"

namespace orrery::tempi {
namespace {

using PackerPointer = std::shared_ptr<const datatype::Packer>;

/// Plans keep the packers of committed datatypes, each for the count it was last used with.
class Plans {
 public:
  /// Returns nothing for what the library does as well: contiguous, without bytes, without a nest.
  PackerPointer of(MPI_Datatype type, int count) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = plans_.find(type);
      if (found != plans_.end() && (found->second.count == count || !found->second.type)) {
        return found->second.packer;
      }
    }
    return make(type, count);
  }
  void forget(MPI_Datatype type) {
    const std::lock_guard lock(mutex_);
    plans_.erase(type);
  }

 private:
  struct Plan {
    std::optional<datatype::Datatype> type;
    int count = 0;
    PackerPointer packer;
  };
  /// Makes a packer without holding the lock while MPI is asked: MPI frees handles, which forget()
  /// hears of.
  PackerPointer make(MPI_Datatype type, int count) {
    Plan plan{from_mpi(type), count, nullptr};
    if (plan.type && plan.type->streams.empty() && plan.type->blocks.size() < 2 &&
        plan.type->bounds.extent == plan.type->size()) {
      plan.type.reset();
    }
    if (plan.type) {
      plan.packer = std::make_shared<const datatype::Packer>(*plan.type, count);
    }
    const std::lock_guard lock(mutex_);
    return plans_.insert_or_assign(type, std::move(plan)).first->second.packer;
  }

  std::mutex mutex_;
  std::map<MPI_Datatype, Plan> plans_;
};

Plans& plans() {
  static Plans all;
  return all;
}

struct Counts {
  std::atomic<long> pack{0};
  std::atomic<long> unpack{0};
  std::atomic<long> send{0};
  std::atomic<long> receive{0};
};
Counts counts;

const datatype::Profile& profile() {
  static const datatype::Profile measured = [] {
    const char* const file = std::getenv("TEMPI_PROFILE");
    if (file == nullptr) {
      return datatype::Profile{};
    }
    datatype::ReadProfile read = datatype::load_profile(file);
    for (const std::string& mistake : read.mistakes) {
      std::fprintf(stderr, "tempi: %s; sends are the library's\n", mistake.c_str());
    }
    return std::move(read.profile);
  }();
  return measured;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

/// Returns whether a message is better packed; the buffer's address must be one.
bool is_packed(const void* buffer, const datatype::Packer& packer) {
  return buffer != MPI_BOTTOM && packer.bytes() > 0 && packer.bytes() <= INT32_MAX &&
         profile().best(packer.bytes(), packer.block(), false) == datatype::Method::packed;
}

std::byte* scratch(std::int64_t bytes) {
  thread_local std::unique_ptr<std::byte[]> buffer;
  thread_local std::int64_t size = 0;
  if (size < bytes) {
    buffer.reset(new std::byte[static_cast<std::size_t>(bytes)]);
    size = bytes;
  }
  return buffer.get();
}

/// Unpacks a message that may be shorter than the receive allows: whole elements, then the
/// beginning of one more, of which the rest stays as it is.
void unpack_received(const std::byte* packed, std::int64_t bytes, MPI_Datatype type, int count,
                     const datatype::Packer& packer, std::byte* typed) {
  if (bytes == packer.bytes()) {
    packer.unpack(packed, typed);
    return;
  }
  const auto nest = from_mpi(type);
  const std::int64_t element = packer.bytes() / count;
  const std::int64_t whole = bytes / element;
  if (whole > 0) {
    datatype::Packer(*nest, whole).unpack(packed, typed);
  }
  if (bytes % element != 0) {
    const datatype::Packer one(*nest, 1);
    std::byte* const at = typed + whole * nest->bounds.extent;
    const auto held = std::make_unique<std::byte[]>(static_cast<std::size_t>(element));
    one.pack(at, held.get());
    std::memcpy(held.get(), packed + whole * element, static_cast<std::size_t>(bytes % element));
    one.unpack(held.get(), at);
  }
}

}  // namespace
}  // namespace orrery::tempi

namespace tempi = orrery::tempi;

extern "C" {

int MPI_Pack(const void* inbuf, int incount, MPI_Datatype datatype, void* outbuf, int outsize,
             int* position, MPI_Comm comm) {
  static const auto library = tempi::next<decltype(&MPI_Pack)>("MPI_Pack");
  const auto packer = incount > 0 ? tempi::plans().of(datatype, incount) : nullptr;
  if (!packer || inbuf == MPI_BOTTOM || outsize - *position < packer->bytes()) {
    return library(inbuf, incount, datatype, outbuf, outsize, position, comm);
  }
  packer->pack(static_cast<const std::byte*>(inbuf), static_cast<std::byte*>(outbuf) + *position);
  *position += static_cast<int>(packer->bytes());
  ++tempi::counts.pack;
  return MPI_SUCCESS;
}

int MPI_Unpack(const void* inbuf, int insize, int* position, void* outbuf, int outcount,
               MPI_Datatype datatype, MPI_Comm comm) {
  static const auto library = tempi::next<decltype(&MPI_Unpack)>("MPI_Unpack");
  const auto packer = outcount > 0 ? tempi::plans().of(datatype, outcount) : nullptr;
  if (!packer || outbuf == MPI_BOTTOM || insize - *position < packer->bytes()) {
    return library(inbuf, insize, position, outbuf, outcount, datatype, comm);
  }
  packer->unpack(static_cast<const std::byte*>(inbuf) + *position, static_cast<std::byte*>(outbuf));
  *position += static_cast<int>(packer->bytes());
  ++tempi::counts.unpack;
  return MPI_SUCCESS;
}

int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  static const auto library = tempi::next<decltype(&MPI_Send)>("MPI_Send");
  const auto packer =
      count > 0 && dest != MPI_PROC_NULL ? tempi::plans().of(datatype, count) : nullptr;
  if (!packer || !tempi::is_packed(buf, *packer)) {
    return library(buf, count, datatype, dest, tag, comm);
  }
  std::byte* const packed = tempi::scratch(packer->bytes());
  packer->pack(static_cast<const std::byte*>(buf), packed);
  ++tempi::counts.send;
  return library(packed, static_cast<int>(packer->bytes()), MPI_PACKED, dest, tag, comm);
}

int MPI_Recv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
             MPI_Status* status) {
  static const auto library = tempi::next<decltype(&MPI_Recv)>("MPI_Recv");
  const auto packer =
      count > 0 && source != MPI_PROC_NULL ? tempi::plans().of(datatype, count) : nullptr;
  if (!packer || !tempi::is_packed(buf, *packer)) {
    return library(buf, count, datatype, source, tag, comm, status);
  }
  std::byte* const packed = tempi::scratch(packer->bytes());
  MPI_Status own;
  const int result =
      library(packed, static_cast<int>(packer->bytes()), MPI_PACKED, source, tag, comm, &own);
  if (result == MPI_SUCCESS) {
    int bytes = 0;
    MPI_Get_count(&own, MPI_PACKED, &bytes);
    tempi::unpack_received(packed, bytes, datatype, count, *packer, static_cast<std::byte*>(buf));
    ++tempi::counts.receive;
  }
  if (status != MPI_STATUS_IGNORE) {
    *status = own;
  }
  return result;
}

int MPI_Type_free(MPI_Datatype* datatype) {
  static const auto library = tempi::next<decltype(&MPI_Type_free)>("MPI_Type_free");
  tempi::plans().forget(*datatype);
  return library(datatype);
}

int MPI_Finalize() {
  static const auto library = tempi::next<decltype(&MPI_Finalize)>("MPI_Finalize");
  const char* const report = std::getenv("TEMPI_REPORT");
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (report != nullptr && std::strcmp(report, "1") == 0) {
    std::fprintf(stderr, "tempi: rank %d: %ld packs, %ld unpacks, %ld sends, %ld receives\n", rank,
                 tempi::counts.pack.load(), tempi::counts.unpack.load(), tempi::counts.send.load(),
                 tempi::counts.receive.load());
  }
  return library();
}

}  // extern "C"
