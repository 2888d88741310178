// SPDX-License-Identifier: Apache-2.0
#include "neural/matrix.h"

namespace orrery::neural {

// The innermost loop adds a scaled row to a row: the compiler makes vectors of it without changing
// the order of any sum.
void add_product(const Extents& e, const double* a, const double* b, double* c) {
  for (std::size_t r = 0; r < e.rows; ++r) {
    double* const row = c + r * e.columns;
    for (std::size_t k = 0; k < e.inner; ++k) {
      const double factor = a[r * e.inner + k];
      const double* const other = b + k * e.columns;
      for (std::size_t j = 0; j < e.columns; ++j) {
        row[j] += factor * other[j];
      }
    }
  }
}

void add_transposed_product(const Extents& e, const double* a, const double* b, double* c) {
  for (std::size_t k = 0; k < e.inner; ++k) {
    const double* const other = b + k * e.columns;
    for (std::size_t r = 0; r < e.rows; ++r) {
      const double factor = a[k * e.rows + r];
      double* const row = c + r * e.columns;
      for (std::size_t j = 0; j < e.columns; ++j) {
        row[j] += factor * other[j];
      }
    }
  }
}

std::vector<double> transposed(std::size_t rows, std::size_t columns, const double* a) {
  std::vector<double> result(rows * columns);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      result[c * rows + r] = a[r * columns + c];
    }
  }
  return result;
}

}  // namespace orrery::neural
