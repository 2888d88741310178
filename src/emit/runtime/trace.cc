// SPDX-License-Identifier: Apache-2.0
#include "emit/runtime/trace.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

namespace {

std::vector<std::string> all_lines;
std::vector<double> all_starts;

void note(std::string line) {
  all_lines.push_back(std::move(line));
  all_starts.push_back(MPI_Wtime());
}

void note_collective(const char* kind, MPI_Comm comm, int count) {
  std::array<char, MPI_MAX_OBJECT_NAME> name{};
  int length = 0;
  MPI_Comm_get_name(comm, name.data(), &length);
  note(std::string(kind) + " " + name.data() + " " + std::to_string(count));
}

void note_message(const char* kind, int peer, int count) {
  note(std::string(kind) + " " + std::to_string(peer) + " " + std::to_string(count));
}

}  // namespace

namespace trace {

long long differences(const std::string& file, int rank, int repeat) {
  std::ifstream stream(file);
  std::vector<std::string> expected;
  for (std::string line; std::getline(stream, line);) {
    const std::size_t space = line.find(' ');
    if (space != std::string::npos && std::atoi(line.c_str()) == rank) {
      expected.push_back(line.substr(space + 1));
    }
  }
  const std::size_t size = expected.size() * static_cast<std::size_t>(repeat);
  long long different = all_lines.size() == size ? 0 : 1;
  for (std::size_t i = 0; i < std::min(size, all_lines.size()); ++i) {
    if (all_lines[i] != expected[i % expected.size()]) {
      if (different++ == 0) {
        std::fprintf(stderr, "rank %d, call %zu: found '%s', expected '%s'\n", rank, i,
                     all_lines[i].c_str(), expected[i % expected.size()].c_str());
      }
    }
  }
  return different;
}

void write(const std::string& prefix, int rank, double begin) {
  std::ofstream file(prefix + "." + std::to_string(rank) + ".txt");
  for (std::size_t i = 0; i < all_lines.size(); ++i) {
    file << all_starts[i] - begin << ' ' << all_lines[i] << '\n';
  }
}

}  // namespace trace

extern "C" {

int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  note_collective("all_reduce", comm, count);
  return PMPI_Iallreduce(from, to, count, type, op, comm, request);
}

int MPI_Iallgather(const void* from, int sent, MPI_Datatype type, void* to, int received,
                   MPI_Datatype other, MPI_Comm comm, MPI_Request* request) {
  note_collective("all_gather", comm, sent);
  return PMPI_Iallgather(from, sent, type, to, received, other, comm, request);
}

int MPI_Ireduce_scatter_block(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm, MPI_Request* request) {
  note_collective("reduce_scatter", comm, count);
  return PMPI_Ireduce_scatter_block(from, to, count, type, op, comm, request);
}

int MPI_Ialltoall(const void* from, int sent, MPI_Datatype type, void* to, int received,
                  MPI_Datatype other, MPI_Comm comm, MPI_Request* request) {
  note_collective("all_to_all", comm, sent);
  return PMPI_Ialltoall(from, sent, type, to, received, other, comm, request);
}

int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request) {
  note_collective("broadcast", comm, count);
  return PMPI_Ibcast(buffer, count, type, root, comm, request);
}

/// A ring shift sends in its group's communicator; other messages go from rank to rank.
int MPI_Isend(const void* from, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  if (comm == MPI_COMM_WORLD) {
    note_message("send", peer, count);
  } else {
    note_collective("ring_shift", comm, count);
  }
  return PMPI_Isend(from, count, type, peer, tag, comm, request);
}

int MPI_Irecv(void* to, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  if (comm == MPI_COMM_WORLD) {
    note_message("receive", peer, count);
  }
  return PMPI_Irecv(to, count, type, peer, tag, comm, request);
}

}  // extern "C"
