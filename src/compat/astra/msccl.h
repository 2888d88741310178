// SPDX-License-Identifier: Apache-2.0
/// Programs of MSCCL's runtime (what MSCCLang compiles to) -> CustomCollective.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "compat/astra/custom.h"

namespace orrery::astra {

///   <algo nchunksperloop="8" ngpus="8" coll="allreduce" ...>
///     <gpu id="0" ...>
///       <tb id="0" send="1" recv="7" chan="0">
///         <step s="0" type="s" cnt="1" depid="-1" deps="-1" .../>
///
/// The buffer (all-gather: the gathered one) is cut in nchunksperloop parts; a step moves `cnt` of
/// them, so a program serves any size. A thread block runs its steps one after the other, after
/// step `deps` of block `depid` if that is given; blocks run at once. Its messages carry its
/// channel as tag.
///
///   s     send                      rcs        receive, send on
///   r     receive                   rrc        receive, reduce
///   cpy   local copy, costs nothing rrcs, rrs  receive, reduce, send on
///   re    local reduction           nop        waits for its dependency only
///
/// A send keeps its block until delivered, as in ASTRA-sim's converter from MSCCL; the endpoint
/// delay counts as in native algorithms, so an imported ring takes exactly as long as the native.
/// Ignored: protocol, offsets of buffers, inplace, minBytes, maxBytes, and the limits of the GPU.
///
/// Mistakes, with file and line: XML that does not parse; missing or wrong numbers; unknown step
/// types; gpu ids other than 0 .. ngpus-1; a send or receive in a block without that peer; a
/// dependency on a step that does not exist; cycles; messages without their counterpart.
///
/// Source: Cowan et al., "MSCCLang: Microsoft Collective Communication Language", ASPLOS 2023,
/// section 5; programs that its compiler writes.
Result<CustomCollective> parse_msccl(std::string_view text, const std::string& file);

}  // namespace orrery::astra
