// SPDX-License-Identifier: Apache-2.0
/// The lowering passes, one .cc file per group, in the order in which they run.
#pragma once

#include <array>
#include <string_view>

#include "workload/parallel/draft.h"
#include "workload/parallel/lower.h"

namespace orrery::parallel {

namespace passes {
/// Makes stages, chunks, blocks and their operators; boundary sends and receives. pass_pipeline.cc
void pipeline(parallel::Draft& draft, const parallel::Context& context);
/// Blocks are cut over tp: messages between stages, sums of gradients that tp ranks hold whole.
/// pass_blocks.cc
void tensor(parallel::Draft& draft, const parallel::Context& context);
/// Experts are cut over ep and etp. pass_blocks.cc
void expert(parallel::Draft& draft, const parallel::Context& context);
/// Attention is cut over cp. pass_blocks.cc
void context(parallel::Draft& draft, const parallel::Context& context);
/// Makes the steps of the blocks of one rank, with the collectives that convert layouts
/// (workload/lower). pass_blocks.cc
void blocks(parallel::Draft& draft, const parallel::Context& context);
/// Sums over tp follow the tiles of the products before them, where asked for (tile_steps.h).
/// pass_overlap_tensor.cc
void overlap_tensor(parallel::Draft& draft, const parallel::Context& context);
/// Adds forward again before backward: of the layer, or of the attention core. pass_recompute.cc
void recompute(parallel::Draft& draft, const parallel::Context& context);
/// Marks what the host launches as graphs, and where it waits for the routing of tokens.
/// pass_capture.cc
void capture(parallel::Draft& draft, const parallel::Context& context);
/// Reductions of gradients over dp. pass_data.cc
void gradients(parallel::Draft& draft, const parallel::Context& context);
/// Adds all-gathers of ZeRO-sharded parameters that run beside the layers. pass_gather.cc
void zero(parallel::Draft& draft, const parallel::Context& context);
/// Adds parameters from the remote memory, gradients to it. pass_remote.cc
void remote(parallel::Draft& draft, const parallel::Context& context);
/// Adds copies of activations to and from the host. pass_offload.cc
void offload(parallel::Draft& draft, const parallel::Context& context);
/// Adds the all-reduce of the tied embedding's gradient between first and last stage.
/// pass_finish.cc
void embedding(parallel::Draft& draft, const parallel::Context& context);
/// Adds, for DualPipe, the sum of the gradients of a stage's two copies, an all-reduce of two
/// ranks: each sends one half of its gradients and gets it back summed. pass_pipeline.cc
void copies(parallel::Draft& draft, const parallel::Context& context);
/// Adds gradient norm and clip, Adam, gather of updated parameters. pass_finish.cc
void optimizer(parallel::Draft& draft, const parallel::Context& context);
/// Makes ZeRO's collectives travel as blocks of integers; a second copy of parameters.
/// pass_low_bandwidth.cc
void low_bandwidth(parallel::Draft& draft, const parallel::Context& context);
/// The end of a round of steps that workers take alone. pass_outer.cc
void outer(parallel::Draft& draft, const parallel::Context& context);
/// Puts several steps one after the other: the end of one, where the next may begin. pass_steps.cc
void steps(parallel::Draft& draft, const parallel::Context& context);
/// Notes what every piece of work allocates, and what stays during the step. pass_memory.cc
void memory(parallel::Draft& draft, const parallel::Context& context);
/// Makes sums that leave a stage shards on the way (collective/layout/fuse_workload.h), where asked
/// for. pass_communication.cc
graph::Workload communication(graph::Workload workload, const parallel::PassSetting& setting);
/// Consecutive compute nodes without outside dependants become one node, where kernels run as they
/// are issued. pass_fuse.cc
graph::Workload fuse(graph::Workload workload, const parallel::PassSetting& setting);
/// Roles whose ranks lie in several parts of the machine become a role for each, which runs its
/// program on the part's devices. pass_device_groups.cc
graph::Workload parts(graph::Workload workload, const parallel::PassSetting& setting);
}  // namespace passes

/// Exactly one of `draft` and `workload` is set; draft passes come first.
struct Pass {
  std::string_view name;
  std::string_view meaning;
  void (*draft)(Draft&, const Context&) = nullptr;
  graph::Workload (*workload)(graph::Workload, const PassSetting&) = nullptr;
  bool required = false;
};

inline constexpr std::array kPasses{
    Pass{.name = "pipeline",
         .meaning = "programs per stage; boundary sends and receives",
         .draft = passes::pipeline,
         .required = true},
    Pass{.name = "tensor",
         .meaning = "blocks are cut over tensor-parallel ranks",
         .draft = passes::tensor},
    Pass{.name = "expert", .meaning = "experts are cut over their ranks", .draft = passes::expert},
    Pass{.name = "context",
         .meaning = "attention is cut over the parts of a sequence",
         .draft = passes::context},
    Pass{.name = "blocks",
         .meaning = "kernels of one rank, collectives where layouts differ",
         .draft = passes::blocks,
         .required = true},
    Pass{.name = "overlap_tensor",
         .meaning = "with overlap_tensor: tp sums follow the tiles of their products",
         .draft = passes::overlap_tensor},
    Pass{.name = "recompute",
         .meaning = "forward again before backward",
         .draft = passes::recompute},
    Pass{.name = "capture",
         .meaning = "captured graphs, and where the host waits for the routing of tokens",
         .draft = passes::capture},
    Pass{.name = "gradients",
         .meaning = "data-parallel reduction of gradients",
         .draft = passes::gradients},
    Pass{.name = "zero",
         .meaning = "gathers of sharded parameters beside the layers",
         .draft = passes::zero},
    Pass{.name = "remote",
         .meaning = "parameters from the remote memory, gradients to it",
         .draft = passes::remote},
    Pass{.name = "offload",
         .meaning = "copies of activations to and from the host",
         .draft = passes::offload},
    Pass{.name = "embedding",
         .meaning = "tied embedding's gradient between first and last stage",
         .draft = passes::embedding},
    Pass{.name = "copies",
         .meaning = "sum of gradients over DualPipe's two copies of a stage",
         .draft = passes::copies},
    Pass{.name = "optimizer",
         .meaning = "gradient norm, update, gather of updated parameters",
         .draft = passes::optimizer},
    Pass{.name = "low_bandwidth",
         .meaning = "quantised collectives of ZeRO, backward gathers inside the node",
         .draft = passes::low_bandwidth},
    Pass{.name = "outer",
         .meaning = "averages of workers that step alone, at the end of a round",
         .draft = passes::outer},
    Pass{.name = "steps",
         .meaning = "of a run of several steps: the end of one, where the next may begin",
         .draft = passes::steps,
         .required = true},
    Pass{
        .name = "memory", .meaning = "allocations of every piece of work", .draft = passes::memory},
    Pass{.name = "communication",
         .meaning = "with --fuse: sums that leave a stage become slices on the way",
         .workload = passes::communication},
    Pass{.name = "fuse",
         .meaning = "consecutive compute nodes become one event",
         .workload = passes::fuse},
    Pass{.name = "parts",
         .meaning = "roles on several sorts of devices become one for each",
         .workload = passes::parts,
         .required = true},
};

}  // namespace orrery::parallel
