// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/reader.h"
#include "machine/machine.h"

namespace orrery::machine {

/// Reads the field `origins` of a machine file, once the rest has been read: every name is that of
/// a field or the beginning of some.
void read_origins(Reader& read, Machine& machine);

}  // namespace orrery::machine
