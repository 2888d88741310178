// SPDX-License-Identifier: Apache-2.0
/// The library's own MPI_Pack, MPI_Unpack and bounds say what is right.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstring>
#include <vector>

#include "datatype/packer.h"
#include "mpi/tempi/from_mpi.h"
#include "mpi/tempi/shapes.h"

namespace orrery::tempi {
namespace {

constexpr std::size_t kMiddle = 20000;  // random shapes reach 10,000 bytes on either side

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    made[i] = static_cast<std::byte>((i * 2654435761U + seed) >> 9U);
  }
  return made;
}

void expect_equal_bounds(const datatype::Datatype& nest, MPI_Datatype type) {
  int size = 0;
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_size(type, &size);
  EXPECT_EQ(nest.size(), size);
  MPI_Type_get_extent(type, &lower, &extent);
  EXPECT_EQ(nest.bounds, (datatype::Bounds{lower, extent}));
}

void expect_equal_bytes(const datatype::Datatype& nest, const Shape& shape,
                        const std::vector<std::byte>& buffer, std::size_t origin) {
  const datatype::Packer packer(nest, shape.count);
  const int size = static_cast<int>(packer.bytes());
  std::vector<std::byte> expected(static_cast<std::size_t>(size) + 1);  // OpenMPI wants an address
  std::vector<std::byte> found(expected.size());
  int position = 0;
  MPI_Pack(buffer.data() + origin, shape.count, shape.type, expected.data(), size, &position,
           MPI_COMM_WORLD);
  ASSERT_EQ(position, packer.bytes());
  packer.pack(buffer.data() + origin, found.data());
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size()), 0);

  std::vector<std::byte> target(buffer.size(), std::byte{7});
  std::vector<std::byte> unpacked = target;
  position = 0;
  MPI_Unpack(expected.data(), size, &position, target.data() + origin, shape.count, shape.type,
             MPI_COMM_WORLD);
  packer.unpack(found.data(), unpacked.data() + origin);
  EXPECT_EQ(std::memcmp(unpacked.data(), target.data(), target.size()), 0);

  if (packer.pieces() > 1) {  // two slices are the whole
    const std::int64_t cut = packer.pieces() / 2;
    const datatype::Packer first = packer.slice(0, cut);
    std::vector<std::byte> sliced(found.size());
    first.pack(buffer.data() + origin, sliced.data());
    packer.slice(cut, packer.pieces()).pack(buffer.data() + origin, sliced.data() + first.bytes());
    EXPECT_EQ(std::memcmp(sliced.data(), found.data(), found.size()), 0);
  }
}

TEST(Tempi, TenThousandRandomTypesPackAndUnpackAsTheLibraryDoes) {
  const std::vector<std::byte> buffer = pattern(2 * kMiddle, 1);
  int with_bytes = 0;
  for (std::uint64_t seed = 0; seed < 10000 && !HasFailure(); ++seed) {
    Shape shape = random_shape(seed);
    const auto nest = from_mpi(shape.type);
    ASSERT_TRUE(nest) << shape.name;
    SCOPED_TRACE(shape.name);
    expect_equal_bounds(*nest, shape.type);
    expect_equal_bytes(*nest, shape, buffer, kMiddle);
    with_bytes += nest->size() > 0 ? 1 : 0;
    MPI_Type_free(&shape.type);
  }
  EXPECT_GT(with_bytes, 8000);
}

TEST(Tempi, MeasuredShapesPackAndUnpackAsTheLibraryDoes) {
  for (Shape& shape : measured_shapes()) {
    const auto nest = from_mpi(shape.type);
    ASSERT_TRUE(nest) << shape.name;
    SCOPED_TRACE(shape.name);
    expect_equal_bounds(*nest, shape.type);
    const auto reach = static_cast<std::size_t>(nest->bounds.upper() * shape.count);
    expect_equal_bytes(*nest, shape, pattern(reach, 1), 0);
    MPI_Type_free(&shape.type);
  }
}

// Whatever has no nest of few blocks is the library's: a cyclic distribution, 5000 irregular
// blocks.
TEST(Tempi, TypesWithoutANestAreLeftToTheLibrary) {
  const int size = 12;
  const int distribution = MPI_DISTRIBUTE_CYCLIC;
  const int argument = MPI_DISTRIBUTE_DFLT_DARG;
  const int processes = 2;
  MPI_Datatype cyclic = MPI_DATATYPE_NULL;
  MPI_Type_create_darray(2, 0, 1, &size, &distribution, &argument, &processes, MPI_ORDER_C, MPI_INT,
                         &cyclic);
  EXPECT_FALSE(from_mpi(cyclic));
  MPI_Type_free(&cyclic);

  std::vector<int> displacements(5000);
  for (std::size_t i = 0; i < displacements.size(); ++i) {
    displacements[i] = static_cast<int>(i * i % 7919 + i * 2);
  }
  MPI_Datatype scattered = MPI_DATATYPE_NULL;
  MPI_Type_create_indexed_block(5000, 1, displacements.data(), MPI_INT, &scattered);
  EXPECT_FALSE(from_mpi(scattered));
  MPI_Type_free(&scattered);
}

}  // namespace
}  // namespace orrery::tempi

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  const int status = RUN_ALL_TESTS();
  MPI_Finalize();
  return status;
}
