// SPDX-License-Identifier: Apache-2.0
/// The algorithms of collectives by name; steps.h and cost.h say what each costs.
#pragma once

#include <array>
#include <cstdint>

#include "base/names.h"

namespace orrery::collective {

enum class CollectiveAlgorithm : std::uint8_t {
  automatic,
  ring,
  direct,
  halving_doubling,
  double_binary_tree,
  pairwise,
  in_switch,
  rail,
  hierarchical,
  themis,
  one_shot,
  two_shot,
  custom,
  custom_eager,
  custom_trtllm
};
constexpr auto named_values(CollectiveAlgorithm) {
  return std::to_array<Named<CollectiveAlgorithm>>({
      {CollectiveAlgorithm::automatic, "auto",
       "the fastest of what NCCL has: ring, tree, in_switch; direct, pairwise, rail"},
      {CollectiveAlgorithm::ring, "ring", "2(p-1) steps of S/p, one ring through all dimensions"},
      {CollectiveAlgorithm::direct, "direct", "2 steps, p-1 messages of S/p each"},
      {CollectiveAlgorithm::halving_doubling, "halving_doubling", "2 log2 p steps, halving sizes"},
      {CollectiveAlgorithm::double_binary_tree, "double_binary_tree",
       "two pipelined trees, S/2 each"},
      {CollectiveAlgorithm::pairwise, "pairwise", "all-to-all: p-1 exchanges"},
      {CollectiveAlgorithm::in_switch, "in_switch",
       "the switch adds up (NVLS): 2 steps, S(1 + 1/p)"},
      {CollectiveAlgorithm::rail, "rail",
       "all-to-all over nodes: to the receiver's rail inside, then one message per rail peer "
       "(PXN)"},
      {CollectiveAlgorithm::hierarchical, "hierarchical", "dimension by dimension, auto in each"},
      {CollectiveAlgorithm::themis, "themis",
       "hierarchical in chunks, each in the order that keeps all dimensions busy"},
      {CollectiveAlgorithm::one_shot, "one_shot",
       "serving kernel: every rank reads all others' buffers, S(p-1)"},
      {CollectiveAlgorithm::two_shot, "two_shot",
       "serving kernel: direct reduce-scatter and all-gather, 2S(p-1)/p"},
      {CollectiveAlgorithm::custom, "custom",
       "vLLM in CUDA graphs: the fastest of one_shot, two_shot and auto"},
      {CollectiveAlgorithm::custom_eager, "custom_eager",
       "the same launched one by one by the host, out of place"},
      {CollectiveAlgorithm::custom_trtllm, "custom_trtllm", "the same with TensorRT-LLM's kernels"},
  });
}

}  // namespace orrery::collective
