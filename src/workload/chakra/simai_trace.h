// SPDX-License-Identifier: Apache-2.0
/// Workloads of SimAI (and ASTRA-sim 1.0) as text: the layers of a training step, a line each.
#pragma once

#include <cstdint>
#include <string_view>

#include "workload/chakra/mistakes.h"
#include "workload/chakra/program_builder.h"

namespace orrery::chakra {

/// Reads what one rank of `ranks` does.
///
///   HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: T ep: E pp: 1 ... all_gpus: N ...
///   number of layers
///   name, dependency (unused), forward: time, collective, bytes; input gradient: the same; weight
///   gradient: the same; time of the update
///
/// Every layer's forward computes, then waits for its collective; backward, from the last layer on,
/// the input gradient does so too, the weight gradient computes, and its collective and the update
/// after it run beside what follows.
///
/// Units:   times in ns, read as whole microseconds of which the remainder is carried to the next;
///          bytes are those of the whole buffer, also of an all-gather.
/// Groups:  rank = dp T + tp. Collectives of forward and input gradient run over the T ranks of tp,
///          of the weight gradient over those of dp; _EP over E neighbours of dp, _DP_EP over the
///          rest of dp.
/// A missing key of the header counts as 1, checkpoints as 0, all_gpus as the number of ranks.
/// Ignores: ga (the layers of all microbatches are in the file), vpp, pp_comm; the update of a
///          layer whose weight gradient is not sent.
/// Mistakes, each with its line: other policies, other names in the header or one twice, stages,
/// checkpoints, all_gpus other than the ranks, T E that does not divide N; collectives other than
/// ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL and NONE; a line without 12 columns.
/// Source:  files as in SimAI's examples; its order of passes as in ASTRA-sim 1.0 (Rashidi et al.,
///          ISPASS 2020, section III-B).
void read_simai_trace(std::string_view text, std::int64_t rank, std::int64_t ranks,
                      ProgramBuilder& builder, Mistakes& mistakes);

}  // namespace orrery::chakra
