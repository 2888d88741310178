// SPDX-License-Identifier: Apache-2.0
#include "compat/calculon/to_plan.h"

#include <string>
#include <utility>

namespace orrery::calculon {

Result<plan::Plan> to_plan(const Application& application, const Execution& execution) {
  const Execution& e = execution;
  Error mistakes;
  for (const auto& [given, field] : {std::pair{e.weight_offload, "weight_offload"},
                                     {e.seq_par_ag_redo, "seq_par_ag_redo"},
                                     {e.datatype == NumberType::float8, "datatype float8"}}) {
    if (given) {
      mistakes.add(Error(std::string(field) + " is no part of a plan"));
    }
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  plan::Plan plan;
  plan.tp = e.tensor_par;
  plan.pp = e.pipeline_par;
  plan.dp = e.data_par;
  plan.sequence_parallel = e.sequence_par();
  plan.schedule =
      e.pipeline_interleaving > 1 ? plan::Schedule::interleaved : plan::Schedule::one_f_one_b;
  plan.chunks = e.pipeline_interleaving;
  plan.microbatch = e.microbatch_size;
  plan.global_batch = e.batch_size;
  plan.sequence = application.seq_size;
  plan.zero = e.optimizer_sharding ? 1 : 0;
  plan.recompute = e.activation_recompute == Recompute::full        ? plan::Recompute::full
                   : e.activation_recompute == Recompute::attn_only ? plan::Recompute::selective
                                                                    : plan::Recompute::none;
  plan.offload_optimizer = e.optimizer_offload ? plan::Offload::cpu : plan::Offload::none;
  plan.offload_activations = e.activations_offload ? 1 : 0;
  plan.tp_chunks = e.tensor_par_overlap == TensorOverlap::none ? 1 : e.tensor_par;
  plan.overlap_grad_reduce = e.data_par_overlap;
  plan.pipeline_send = e.tensor_par_comm_type == TensorComm::p2p_rs_ag
                           ? plan::PipelineSend::scatter_gather
                           : plan::PipelineSend::whole;
  plan.compute_type = e.datatype == NumberType::float32   ? graph::DataType::fp32
                      : e.datatype == NumberType::float16 ? graph::DataType::fp16
                                                          : graph::DataType::bf16;
  return plan;
}

}  // namespace orrery::calculon
