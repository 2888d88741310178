// SPDX-License-Identifier: Apache-2.0
/// Products of row-major matrices of double.
///
/// Every element is summed in ascending order of the inner index, whatever the shape, so that a
/// sample's numbers are the same bit for bit in any batch, on any thread and on any processor.
/// A tuned BLAS promises none of that.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace orrery::neural {

struct Extents {
  std::size_t rows = 0;
  std::size_t inner = 0;
  std::size_t columns = 0;
};

/// Computes c[rows, columns] += a[rows, inner] b[inner, columns].
void add_product(const Extents& e, const double* a, const double* b, double* c);
/// Computes c[rows, columns] += a[inner, rows]^T b[inner, columns].
void add_transposed_product(const Extents& e, const double* a, const double* b, double* c);
/// Returns a[rows, columns] as [columns, rows].
std::vector<double> transposed(std::size_t rows, std::size_t columns, const double* a);

}  // namespace orrery::neural
