// SPDX-License-Identifier: Apache-2.0
/// A change of layout between the processes of an MPI job, one rank of the mesh each.
#pragma once

#include <vector>

#include "collective/layout/move.h"

namespace orrery::mpi {

/// An Exchange is what one rank does for a sequence of steps, made once and run often.
///
/// Every piece that a step moves (layout::moves_of) is one message, all of a step at once
/// (MPI_Isend, MPI_Irecv); an all_reduce is its two halves. What arrives is added in the order of
/// ranks, so the result equals layout::move() bit for bit, which MPI's own reductions do not
/// promise.
///
/// Of tensors of two dimensions and double precision. Requires: as many processes in
/// MPI_COMM_WORLD as ranks in the mesh, steps that layout::move() accepts.
class Exchange {
 public:
  Exchange(const layout::Problem& problem, const std::vector<layout::Step>& steps, int rank);

  struct Result {
    layout::Part held;
    double seconds = 0;  ///< of the steps, the work between left out
  };
  /// Runs on all ranks of the job together.
  Result run(layout::Part mine, const layout::Compute& compute) const;

 private:
  struct Piece {
    int peer = 0;
    int tag = 0;
    layout::Box box;
  };
  /// A Turn is what a rank sends and gets at once.
  struct Turn {
    bool is_work = false;
    layout::Box after;         ///< what it holds then
    std::vector<Piece> sends;  ///< to others
    std::vector<Piece> gets;   ///< in the order in which sums add, its own pieces included
  };
  void add_turn(const std::vector<layout::Piece>& pieces);
  layout::Part deliver(const layout::Part& mine, const Turn& turn) const;

  int rank_;
  std::vector<Turn> turns_;
};

}  // namespace orrery::mpi
