// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace orrery::sweep {

/// Returns 32 hexadecimal digits of the 128-bit FNV-1a hash: the same on every machine, for names
/// of inputs that nobody forges. Of a billion inputs two are alike with a chance below 1e-20.
/// Source: Fowler, Noll, Vo and Eastlake, RFC 9923 (prime 2^88 + 0x13b).
std::string input_hash(std::string_view text);

}  // namespace orrery::sweep
