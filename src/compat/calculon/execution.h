// SPDX-License-Identifier: Apache-2.0
/// Calculon's applications and executions: what is trained, and how. Names of fields are those of
/// its files.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/names.h"
#include "base/result.h"
#include "compat/calculon/system.h"

namespace orrery::calculon {

/// A GPT by its blocks; embedding and head are not part of it.
struct Application {
  std::int64_t hidden = 0;
  std::int64_t feedforward = 0;
  std::int64_t seq_size = 0;
  std::int64_t attn_heads = 0;
  std::int64_t attn_size = 0;
  std::int64_t num_blocks = 0;

  template <class V>
  static void fields(V&& visit) {
    using A = Application;
    visit("hidden", &A::hidden, "elements of a token");
    visit("feedforward", &A::feedforward, "elements between the products of the MLP");
    visit("seq_size", &A::seq_size, "tokens of a sequence");
    visit("attn_heads", &A::attn_heads, "heads");
    visit("attn_size", &A::attn_size, "elements of a head");
    visit("num_blocks", &A::num_blocks, "blocks, each attention and MLP");
  }
};

enum class Recompute : std::uint8_t { full, attn_only, none };
constexpr auto named_values(Recompute) {
  return std::to_array<Named<Recompute>>({
      {Recompute::full, "full", "whole blocks run again"},
      {Recompute::attn_only, "attn_only", "the core of attention runs again"},
      {Recompute::none, "none", "nothing runs again"},
  });
}

enum class TensorComm : std::uint8_t { ar, p2p_rs_ag, rs_ag };
constexpr auto named_values(TensorComm) {
  return std::to_array<Named<TensorComm>>({
      {TensorComm::ar, "ar", "all-reduce"},
      {TensorComm::p2p_rs_ag, "p2p_rs_ag",
       "all-reduce; reduce-scatter and all-gather at a chunk's end"},
      {TensorComm::rs_ag, "rs_ag", "reduce-scatter and all-gather: sequence parallelism"},
  });
}

enum class TensorOverlap : std::uint8_t { none, ring, pipe };
constexpr auto named_values(TensorOverlap) {
  return std::to_array<Named<TensorOverlap>>({
      {TensorOverlap::none, "none", "a product, then its communication"},
      {TensorOverlap::ring, "ring", "in tiles; the first tile is there"},
      {TensorOverlap::pipe, "pipe", "in tiles; one tile of communication first"},
  });
}

struct Execution {
  std::int64_t num_procs = 1;
  std::int64_t tensor_par = 1;
  std::int64_t pipeline_par = 1;
  std::int64_t data_par = 1;
  std::int64_t tensor_par_net = 0;
  std::int64_t pipeline_par_net = 0;
  std::int64_t data_par_net = 0;
  std::int64_t batch_size = 1;
  std::int64_t microbatch_size = 1;
  NumberType datatype = NumberType::float16;
  bool fused_activation = true;
  Recompute activation_recompute = Recompute::none;
  std::int64_t pipeline_interleaving = 1;
  bool optimizer_sharding = false;
  TensorComm tensor_par_comm_type = TensorComm::ar;
  TensorOverlap tensor_par_overlap = TensorOverlap::none;
  bool seq_par_ag_redo = false;
  bool data_par_overlap = false;
  bool weight_offload = false;
  bool activations_offload = false;
  bool optimizer_offload = false;

  std::int64_t microbatches() const { return batch_size / data_par / microbatch_size; }
  bool sequence_par() const { return tensor_par_comm_type == TensorComm::rs_ag; }

  template <class V>
  static void fields(V&& visit) {
    using E = Execution;
    visit("num_procs", &E::num_procs, "devices");
    visit("tensor_par", &E::tensor_par, "tensor parallel degree");
    visit("pipeline_par", &E::pipeline_par, "stages");
    visit("data_par", &E::data_par, "replicas");
    visit("tensor_par_net", &E::tensor_par_net, "network of tensor parallelism");
    visit("pipeline_par_net", &E::pipeline_par_net, "network between stages");
    visit("data_par_net", &E::data_par_net, "network between replicas");
    visit("batch_size", &E::batch_size, "sequences of a step");
    visit("microbatch_size", &E::microbatch_size, "sequences of a microbatch");
    visit("datatype", &E::datatype, "of weights and activations");
    visit("fused_activation", &E::fused_activation, "GeLU keeps nothing");
    visit("activation_recompute", &E::activation_recompute, "what runs again in the backward pass");
    visit("pipeline_interleaving", &E::pipeline_interleaving, "chunks of a stage");
    visit("optimizer_sharding", &E::optimizer_sharding, "optimizer over the replicas: ZeRO-1");
    visit("tensor_par_comm_type", &E::tensor_par_comm_type, "collectives of tensor parallelism");
    visit("tensor_par_overlap", &E::tensor_par_overlap, "of products and their communication");
    visit("seq_par_ag_redo", &E::seq_par_ag_redo, "gather again instead of keeping");
    visit("data_par_overlap", &E::data_par_overlap, "of gradients and the backward pass");
    visit("weight_offload", &E::weight_offload, "weights in the lower memory");
    visit("activations_offload", &E::activations_offload, "activations there");
    visit("optimizer_offload", &E::optimizer_offload, "optimizer there");
  }
};

/// Reads an application file (JSON), unchanged. Mistakes: unknown and missing fields, extents below
/// 1.
Result<Application> load_application(const std::string& file);

/// Reads an execution file (JSON), unchanged: of training with multi-head attention. Mistakes:
/// those of check().
Result<Execution> load_execution(const std::string& file, const Application& application);

/// Checks that the degrees divide what they cut, and that options have what they need. Mistakes:
/// all of these.
Result<void> check(const Execution& execution, const Application& application);

}  // namespace orrery::calculon
