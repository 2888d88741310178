// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "emit/program.h"

namespace orrery::emit {

/// Returns a program in C as one writes it by hand: a function per list, in which every call of MPI
/// stands in a line of its own, without tables. It does the same work and the same communication,
/// in the same order, as the tables of write.h, checks every element that arrives, and needs MPI
/// and a C compiler. The text depends on the program and its title alone: `orrery mpi complete`
/// makes it again from the plan. Products are plain loops.
std::string listing_of(const Program& program, const std::string& title);

}  // namespace orrery::emit
