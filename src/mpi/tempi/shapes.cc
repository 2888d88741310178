// SPDX-License-Identifier: Apache-2.0
#include "mpi/tempi/shapes.h"

#include <algorithm>
#include <array>
#include <random>

namespace orrery::tempi {
namespace {

/// Takes over `type` and gives it up once `made` of it.
MPI_Datatype committed(MPI_Datatype made, MPI_Datatype of = MPI_DATATYPE_NULL) {
  MPI_Type_commit(&made);
  if (of != MPI_DATATYPE_NULL) {
    MPI_Type_free(&of);
  }
  return made;
}

MPI_Datatype vector_of(int count, int length, int stride, MPI_Datatype old) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_vector(count, length, stride, old, &made);
  return made;
}

MPI_Datatype box(const std::vector<int>& sizes, const std::vector<int>& subsizes,
                 const std::vector<int>& starts, MPI_Datatype old) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_subarray(static_cast<int>(sizes.size()), sizes.data(), subsizes.data(),
                           starts.data(), MPI_ORDER_C, old, &made);
  return committed(made);
}

MPI_Datatype bytes_vector(int count, int length, int stride) {
  return committed(vector_of(count, length, stride, MPI_BYTE));
}

MPI_Datatype nested(int count, MPI_Aint stride, MPI_Datatype inner) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_hvector(count, 1, stride, inner, &made);
  return committed(made, inner);
}

/// Four levels of 16 x 1 doubles, every second one of its level.
MPI_Datatype four_levels() {
  MPI_Datatype type = vector_of(16, 1, 2, MPI_DOUBLE);
  MPI_Aint stride = 256;  // 32 doubles
  for (int level = 0; level < 2; ++level) {
    type = nested(16, 2 * stride, type);
    stride *= 32;
  }
  return nested(2, 2 * stride, type);
}

MPI_Datatype transpose(int side) {
  MPI_Datatype column = vector_of(side, 1, side, MPI_DOUBLE);
  return nested(side, sizeof(double), column);
}

MPI_Datatype resized_vector() {
  MPI_Datatype inner = vector_of(8, 1, 2, MPI_DOUBLE);
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(inner, 0, 16 * sizeof(double), &made);
  return committed(made, inner);
}

MPI_Datatype vector_of_quads() {
  MPI_Datatype quad = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(4, MPI_FLOAT, &quad);
  return committed(vector_of(256, 8, 16, quad), quad);
}

MPI_Datatype contiguous_bytes(int bytes) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(bytes, MPI_BYTE, &made);
  return committed(made);
}

/// Random parts of a constructor.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  int of(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  MPI_Datatype basic() {
    const std::array<MPI_Datatype, 9> types{MPI_BYTE,       MPI_CHAR,      MPI_SHORT,
                                            MPI_INT,        MPI_FLOAT,     MPI_DOUBLE,
                                            MPI_DOUBLE_INT, MPI_SHORT_INT, MPI_2INT};
    return types[static_cast<std::size_t>(of(0, 8))];
  }

 private:
  std::mt19937_64 random_;
};

MPI_Datatype random_subarray(Draw& draw, MPI_Datatype old) {
  const int dimensions = draw.of(1, 3);
  std::array<int, 3> sizes{};
  std::array<int, 3> subsizes{};
  std::array<int, 3> starts{};
  for (std::size_t d = 0; d < static_cast<std::size_t>(dimensions); ++d) {
    sizes[d] = draw.of(1, 4);
    subsizes[d] = draw.of(1, sizes[d]);
    starts[d] = draw.of(0, sizes[d] - subsizes[d]);
  }
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_subarray(dimensions, sizes.data(), subsizes.data(), starts.data(),
                           draw.of(0, 1) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old, &made);
  return made;
}

MPI_Datatype random_list(Draw& draw, MPI_Datatype old) {
  const int entries = draw.of(1, 4);
  std::array<int, 4> lengths{};
  std::array<int, 4> displacements{};
  std::array<MPI_Aint, 4> addresses{};
  std::array<MPI_Datatype, 4> types{};
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(old, &lower, &extent);
  int at = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(entries); ++i) {
    lengths[i] = draw.of(0, 2);
    displacements[i] = at + draw.of(0, 1);
    at = displacements[i] + lengths[i];
    addresses[i] = displacements[i] * extent;
    types[i] = old;
  }
  MPI_Datatype made = MPI_DATATYPE_NULL;
  switch (draw.of(0, 3)) {
    case 0:
      MPI_Type_indexed(entries, lengths.data(), displacements.data(), old, &made);
      break;
    case 1:
      MPI_Type_create_hindexed(entries, lengths.data(), addresses.data(), old, &made);
      break;
    case 2:
      MPI_Type_create_struct(entries, lengths.data(), addresses.data(), types.data(), &made);
      break;
    default: {
      std::reverse(displacements.begin(), displacements.begin() + entries);
      MPI_Type_create_indexed_block(entries, 1, displacements.data(), old, &made);
      break;
    }
  }
  return made;
}

MPI_Datatype random_constructor(Draw& draw, MPI_Datatype old) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(old, &lower, &extent);
  MPI_Datatype made = MPI_DATATYPE_NULL;
  const int length = draw.of(1, 3);
  switch (draw.of(0, 5)) {
    case 0:
      MPI_Type_contiguous(length, old, &made);
      break;
    case 1:
      MPI_Type_vector(draw.of(0, 4), length, length + draw.of(0, 2), old, &made);
      break;
    case 2:  // rows, forwards or backwards, or interleaved: a stride below the length
      MPI_Type_create_hvector(draw.of(1, 4), 1, 2 * extent * (draw.of(0, 2) - 1) + extent / 2, old,
                              &made);
      break;
    case 3:
      return random_subarray(draw, old);
    case 4:
      return random_list(draw, old);
    default:
      MPI_Type_create_resized(old, lower - draw.of(0, 8), extent + draw.of(8, 16), &made);
      break;
  }
  return made;
}

}  // namespace

std::vector<Shape> measured_shapes() {
  MPI_Datatype row = vector_of(64, 1, 4, MPI_FLOAT);
  return {
      {"contiguous_1MiB", contiguous_bytes(1 << 20)},
      {"vector_64Ki_8of16", bytes_vector(1 << 16, 8, 16)},
      {"vector_16Ki_4of512", bytes_vector(1 << 14, 4, 512)},
      {"vector_1Ki_1of512", bytes_vector(1 << 10, 1, 512)},
      {"vector_16Ki_64of128", bytes_vector(1 << 14, 64, 128)},
      {"vector_4Ki_256of512", bytes_vector(1 << 12, 256, 512)},
      {"x_face_r3_128cubed", box({128, 128, 128}, {128, 128, 3}, {0, 0, 3}, MPI_DOUBLE)},
      {"edge_r3_128cubed", box({128, 128, 128}, {3, 122, 3}, {3, 3, 3}, MPI_DOUBLE)},
      {"y_face_r3_128cubed", box({128, 128, 128}, {128, 3, 128}, {0, 3, 0}, MPI_DOUBLE)},
      {"block_100x13x47", box({100, 256, 512}, {47, 13, 100}, {0, 3, 5}, MPI_BYTE)},
      {"hvector_of_vector", nested(64, 1024, row)},
      {"four_dimensions", four_levels()},
      {"transpose_256", transpose(256)},
      {"vector_of_4_floats", vector_of_quads()},
      {"kv_slice_4of32_heads", box({32, 1024, 128}, {4, 128, 128}, {4, 256, 0}, MPI_SHORT)},
      {"tp_columns_512of4096", box({4096, 4096}, {4096, 512}, {0, 512}, MPI_SHORT)},
      {"resized_vector_x4096", resized_vector(), 4096},
  };
}

Shape random_shape(std::uint64_t seed) {
  constexpr MPI_Aint kMostReach = 10000;
  Draw draw(seed);
  Shape shape{"random_" + std::to_string(seed), MPI_DATATYPE_NULL, draw.of(1, 3)};
  MPI_Type_dup(draw.basic(), &shape.type);
  const int levels = draw.of(1, 4);
  for (int level = 0; level < levels; ++level) {
    MPI_Datatype next = random_constructor(draw, shape.type);
    MPI_Aint lower = 0;
    MPI_Aint extent = 0;
    MPI_Type_get_true_extent(next, &lower, &extent);
    const MPI_Aint true_reach = std::max(std::abs(lower), std::abs(lower + extent));
    MPI_Type_get_extent(next, &lower, &extent);
    if (std::max(true_reach, std::abs(lower) + std::abs(extent)) > kMostReach / shape.count) {
      MPI_Type_free(&next);
      break;
    }
    MPI_Type_free(&shape.type);
    shape.type = next;
  }
  MPI_Type_commit(&shape.type);
  return shape;
}

}  // namespace orrery::tempi
