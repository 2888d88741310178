// SPDX-License-Identifier: Apache-2.0
/// The tensors that the nodes of an `.et` file read and write. A TraceSet does not hold them: few
/// runs ask for them, and they are as large as all else together.
///
/// Two ways of naming them are read, of each node both:
///
///   attributes `inputs`, `outputs`   a string list of name, size in bytes, name, size ... (STAGE)
///   IOInfo `inputs`, `outputs`       `values` as PyTorch's observer writes them, a list in which
///                                    [tensor, storage, offset, elements, bytes each, 'device'] is
///                                    a tensor, also inside further lists; other values are no
///                                    tensors. What lives is the storage, which views share; its
///                                    size is that of the view that reaches furthest
///
/// Tensors of no bytes are left out.
/// Source: the schema; track-local-mem of ASTRA-sim reads the attributes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace orrery::chakra {

struct TensorUses {
  struct Tensor {
    std::string name;  ///< of a storage: "storage 7"
    Bytes size{0};
  };
  struct Use {
    std::uint64_t node = 0;    ///< id
    std::uint32_t tensor = 0;  ///< into tensors
    bool writes = false;
  };
  std::vector<Tensor> tensors;  ///< in order of first mention
  std::vector<Use> uses;        ///< in file order
};

/// Mistakes: those of the file's records (wire.h); a list of names and sizes that is not one; a
/// size that is no whole number or beyond 2^63; a name with two sizes.
Result<TensorUses> load_tensors(const std::string& path);
/// Returns the same of bytes in memory; `name` stands in messages.
Result<TensorUses> read_tensors(std::string_view bytes, const std::string& name);

}  // namespace orrery::chakra
