// SPDX-License-Identifier: Apache-2.0
#include "mpi/exchange.h"

#include <mpi.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace orrery::mpi {
namespace {

using layout::Box;
using layout::Part;

std::size_t width_of(const Box& box) {
  return static_cast<std::size_t>(box.end[1] - box.begin[1]);
}

/// Visits the rows of `part`: where each begins in what holds it, and its place in `part`.
template <class Visit>
void for_each_row(const Box& holder, const Box& part, Visit visit) {
  std::size_t in_part = 0;
  for (std::int64_t row = part.begin[0]; row < part.end[0]; ++row) {
    const auto above = static_cast<std::size_t>(row - holder.begin[0]);
    const auto left = static_cast<std::size_t>(part.begin[1] - holder.begin[1]);
    visit(above * width_of(holder) + left, in_part);
    in_part += width_of(part);
  }
}

std::vector<double> packed(const Part& from, const Box& part) {
  std::vector<double> values(static_cast<std::size_t>(part.elements()));
  for_each_row(from.box, part, [&](std::size_t held, std::size_t place) {
    std::copy_n(from.values.data() + held, width_of(part), values.data() + place);
  });
  return values;
}

/// The first to arrive at an element is put there, later ones are added.
void add_to(Part& held, std::vector<bool>& has_row, const Box& part,
            const std::vector<double>& values) {
  for_each_row(held.box, part, [&](std::size_t at, std::size_t place) {
    double* const into = held.values.data() + at;
    const double* const from = values.data() + place;
    // Pieces of a sum have one box, others do not overlap: a row's first element tells.
    if (has_row[at]) {
      std::transform(into, into + width_of(part), from, into, std::plus<>());
    } else {
      std::copy_n(from, width_of(part), into);
      has_row[at] = true;
    }
  });
}

}  // namespace

Exchange::Exchange(const layout::Problem& problem, const std::vector<layout::Step>& steps, int rank)
    : rank_(rank) {
  for (const layout::Step& step : steps) {
    if (step.operation == layout::Operation::apply) {
      turns_.push_back({.is_work = true,
                        .after = held(problem.work->shape, problem.mesh, step.from, rank),
                        .sends = {},
                        .gets = {}});
      continue;
    }
    const layout::Moves moves = moves_of(step, layout::shape_of(problem, step), problem.mesh);
    add_turn(moves.pieces);
    if (!moves.second.empty()) {
      add_turn(moves.second);
    }
  }
}

void Exchange::add_turn(const std::vector<layout::Piece>& pieces) {
  Turn turn;
  std::map<std::pair<std::int64_t, std::int64_t>, int> tags;
  for (const layout::Piece& piece : pieces) {
    const int tag = tags[{piece.sender, piece.receiver}]++;
    if (piece.receiver == rank_) {
      turn.gets.push_back({static_cast<int>(piece.sender), tag, piece.box});
      Box& box = turn.after;
      for (std::size_t d = 0; d < box.begin.size(); ++d) {
        const bool first = turn.gets.size() == 1;
        box.begin[d] = first ? piece.box.begin[d] : std::min(box.begin[d], piece.box.begin[d]);
        box.end[d] = first ? piece.box.end[d] : std::max(box.end[d], piece.box.end[d]);
      }
    } else if (piece.sender == rank_) {
      turn.sends.push_back({static_cast<int>(piece.receiver), tag, piece.box});
    }
  }
  turns_.push_back(std::move(turn));
}

Part Exchange::deliver(const Part& mine, const Turn& turn) const {
  std::vector<std::vector<double>> out;
  std::vector<std::vector<double>> in;
  std::vector<MPI_Request> requests;
  const auto count = [](const std::vector<double>& values) {
    return static_cast<int>(values.size());
  };
  in.reserve(turn.gets.size());
  for (const Piece& piece : turn.gets) {
    in.emplace_back();
    if (piece.peer != rank_) {
      in.back().resize(static_cast<std::size_t>(piece.box.elements()));
      requests.emplace_back();
      MPI_Irecv(in.back().data(), count(in.back()), MPI_DOUBLE, piece.peer, piece.tag,
                MPI_COMM_WORLD, &requests.back());
    }
  }
  out.reserve(turn.sends.size());
  for (const Piece& piece : turn.sends) {
    out.push_back(packed(mine, piece.box));
    requests.emplace_back();
    MPI_Isend(out.back().data(), count(out.back()), MPI_DOUBLE, piece.peer, piece.tag,
              MPI_COMM_WORLD, &requests.back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  Part after{turn.after, std::vector<double>(static_cast<std::size_t>(turn.after.elements()))};
  std::vector<bool> has_row(after.values.size());
  for (std::size_t i = 0; i < turn.gets.size(); ++i) {
    const Piece& piece = turn.gets[i];
    add_to(after, has_row, piece.box, piece.peer == rank_ ? packed(mine, piece.box) : in[i]);
  }
  return after;
}

Exchange::Result Exchange::run(Part mine, const layout::Compute& compute) const {
  Result result{std::move(mine), 0};
  for (const Turn& turn : turns_) {
    if (turn.is_work) {
      result.held = worked_on(result.held, turn.after, compute);
      continue;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    result.held = deliver(result.held, turn);
    result.seconds += MPI_Wtime() - start;
  }
  return result;
}

}  // namespace orrery::mpi
