// SPDX-License-Identifier: Apache-2.0
/// A halo exchange as stencil codes do it, of MPI alone: 8 quantities of doubles, radius 3, all 26
/// neighbours of a periodic grid of ranks. Every direction is packed from its datatype, sent, and
/// unpacked; every cell of the halo is then compared with what its owner holds.
///
///   halo [EDGE [ROUNDS]]   cells of a rank along each edge (64), exchanges (20)
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kQuantities = 8;
constexpr int kRadius = 3;
constexpr int kDirections = 27;  // the middle one is the rank itself
using Vector = std::array<int, 3>;

Vector direction_of(int number) {
  return {number / 9 - 1, number / 3 % 3 - 1, number % 3 - 1};
}

class Field {
 public:
  explicit Field(int edge) : edge_(edge), side_(edge + 2 * kRadius) {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    MPI_Dims_create(ranks_, 3, grid_.data());
    const Vector periodic{1, 1, 1};
    MPI_Cart_create(MPI_COMM_WORLD, 3, grid_.data(), periodic.data(), 0, &cart_);
    int rank = 0;
    MPI_Comm_rank(cart_, &rank);
    MPI_Cart_coords(cart_, rank, 3, place_.data());
    for (auto& quantity : cells_) {
      quantity.assign(static_cast<std::size_t>(side_) * side_ * side_, -1.0);
    }
    for_each_cell(false, [&](int q, const Vector& at, double& cell) { cell = value(q, at); });
    for (int d = 0; d < kDirections; ++d) {
      add_direction(direction_of(d), static_cast<std::size_t>(d));
    }
  }

  ~Field() {
    for (int d = 0; d < kDirections; ++d) {
      MPI_Type_free(&inside_[d]);
      MPI_Type_free(&halo_[d]);
    }
    MPI_Comm_free(&cart_);
  }
  Field(const Field&) = delete;
  Field& operator=(const Field&) = delete;

  void exchange() {
    std::array<MPI_Request, 2 * kDirections> requests;
    requests.fill(MPI_REQUEST_NULL);
    for (int d = 0; d < kDirections; ++d) {
      if (d != kDirections / 2) {
        MPI_Irecv(in_[d].data(), static_cast<int>(in_[d].size()), MPI_PACKED, neighbour_[d],
                  kDirections - 1 - d, cart_, &requests[d]);
      }
    }
    for (int d = 0; d < kDirections; ++d) {
      if (d != kDirections / 2) {
        int position = 0;
        for (auto& quantity : cells_) {
          MPI_Pack(quantity.data(), 1, inside_[d], out_[d].data(), static_cast<int>(out_[d].size()),
                   &position, cart_);
        }
        MPI_Isend(out_[d].data(), position, MPI_PACKED, neighbour_[d], d, cart_,
                  &requests[kDirections + d]);
      }
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (int d = 0; d < kDirections; ++d) {
      if (d != kDirections / 2) {
        int position = 0;
        for (auto& quantity : cells_) {
          MPI_Unpack(in_[d].data(), static_cast<int>(in_[d].size()), &position, quantity.data(), 1,
                     halo_[d], cart_);
        }
      }
    }
  }

  long long wrong() {
    long long count = 0;
    for_each_cell(true, [&](int q, const Vector& at, double& cell) {
      count += cell == value(q, at) ? 0 : 1;
    });
    return count;
  }

 private:
  /// What the owner of a cell holds there; `at` counts from the rank's first own cell.
  double value(int quantity, const Vector& at) const {
    long long number = quantity;
    for (int i = 0; i < 3; ++i) {
      const int whole = grid_[i] * edge_;
      number = number * whole + (place_[i] * edge_ + at[i] + whole) % whole;
    }
    return static_cast<double>(number);
  }

  template <class Visit>
  void for_each_cell(bool with_halo, Visit&& visit) {
    const int first = with_halo ? -kRadius : 0;
    const int last = with_halo ? edge_ + kRadius : edge_;
    for (int q = 0; q < kQuantities; ++q) {
      for (int x = first; x < last; ++x) {
        for (int y = first; y < last; ++y) {
          for (int z = first; z < last; ++z) {
            const auto row = static_cast<std::size_t>(x + kRadius) * side_ + (y + kRadius);
            visit(q, {x, y, z}, cells_[static_cast<std::size_t>(q)][row * side_ + (z + kRadius)]);
          }
        }
      }
    }
  }

  void add_direction(const Vector& direction, std::size_t d) {
    Vector sizes{side_, side_, side_};
    Vector extents{};
    Vector inside{};
    Vector halo{};
    Vector towards{};
    for (int i = 0; i < 3; ++i) {
      extents[i] = direction[i] == 0 ? edge_ : kRadius;
      inside[i] = direction[i] > 0 ? edge_ : kRadius;
      halo[i] = direction[i] > 0 ? edge_ + kRadius : direction[i] < 0 ? 0 : kRadius;
      towards[i] = (place_[i] + direction[i] + grid_[i]) % grid_[i];
    }
    MPI_Type_create_subarray(3, sizes.data(), extents.data(), inside.data(), MPI_ORDER_C,
                             MPI_DOUBLE, &inside_[d]);
    MPI_Type_create_subarray(3, sizes.data(), extents.data(), halo.data(), MPI_ORDER_C, MPI_DOUBLE,
                             &halo_[d]);
    MPI_Type_commit(&inside_[d]);
    MPI_Type_commit(&halo_[d]);
    MPI_Cart_rank(cart_, towards.data(), &neighbour_[d]);
    int bytes = 0;
    MPI_Pack_size(1, inside_[d], cart_, &bytes);
    out_[d].resize(static_cast<std::size_t>(bytes) * kQuantities);
    in_[d].resize(out_[d].size());
  }

  int edge_;
  int side_;
  int ranks_ = 1;
  Vector grid_{};
  Vector place_{};
  MPI_Comm cart_ = MPI_COMM_NULL;
  std::array<std::vector<double>, kQuantities> cells_;
  std::array<MPI_Datatype, kDirections> inside_{};  ///< of each direction: what goes there
  std::array<MPI_Datatype, kDirections> halo_{};    ///< and where what comes from there goes
  std::array<int, kDirections> neighbour_{};
  std::array<std::vector<char>, kDirections> out_;
  std::array<std::vector<char>, kDirections> in_;
};

int run(int edge, int rounds) {
  Field field(edge);
  std::vector<double> seconds;
  for (int round = 0; round <= rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    field.exchange();
    double took = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (round > 0) {  // the first one touches its buffers for the first time
      seconds.push_back(took);
    }
  }
  long long wrong = field.wrong();
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    std::sort(seconds.begin(), seconds.end());
    std::printf("halo of %d cells: median %.3f ms, least %.3f ms, %lld wrong cells\n", edge,
                seconds[seconds.size() / 2] * 1e3, seconds[0] * 1e3, wrong);
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int edge = argc > 1 ? std::atoi(argv[1]) : 64;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 20;
  const int status = edge >= kRadius && rounds > 0 ? run(edge, rounds) : 2;
  MPI_Finalize();
  return status;
}
