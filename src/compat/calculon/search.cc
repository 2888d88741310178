// SPDX-License-Identifier: Apache-2.0
#include "compat/calculon/search.h"

#include <algorithm>
#include <array>
#include <utility>

namespace orrery::calculon {
namespace {

std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 1; i * i <= number; ++i) {
    if (number % i == 0) {
      all.push_back(i);
      if (i * i != number) {
        all.push_back(number / i);
      }
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// True first, where it can be.
std::vector<bool> choices(bool possible) {
  return possible ? std::vector<bool>{true, false} : std::vector<bool>{false};
}

/// Returns where an execution stands in the order in which the published search tries them.
std::array<std::int64_t, 16> order_of(const Execution& e) {
  const auto first = [](bool value) { return std::int64_t{value ? 0 : 1}; };
  return {e.tensor_par,
          e.pipeline_par,
          e.pipeline_interleaving,
          static_cast<std::int64_t>(e.activation_recompute),
          first(e.optimizer_sharding),
          static_cast<std::int64_t>(e.tensor_par_comm_type),
          first(e.seq_par_ag_redo),
          first(e.data_par_overlap),
          static_cast<std::int64_t>(e.tensor_par_overlap),
          first(e.weight_offload),
          first(e.activations_offload),
          first(e.optimizer_offload),
          e.microbatch_size,
          e.tensor_par_net,
          e.pipeline_par_net,
          e.data_par_net};
}

bool better(const Found& a, const Found& b) {
  const double less = b.run.step.sample_rate - a.run.step.sample_rate;
  return less != 0 ? less < 0 : order_of(a.execution) < order_of(b.execution);
}

class Search {
 public:
  Search(const Application& application, const System& system, const Space& space, std::size_t top,
         const std::function<void(double)>& progress)
      : a_(application),
        system_(system),
        space_(space),
        most_(top),
        progress_(progress),
        networks_(static_cast<std::int64_t>(system.networks.size())) {}

  SearchResult run() && {
    const std::vector<Execution> degrees = splits();
    for (std::size_t i = 0; i < degrees.size(); ++i) {
      if (progress_) {
        progress_(static_cast<double>(i) / static_cast<double>(degrees.size()));
      }
      kinds_of_block(degrees[i]);
    }
    return std::move(result_);
  }

 private:
  std::vector<Execution> splits() const {
    std::vector<Execution> all;
    for (const std::int64_t tp : divisors(space_.devices)) {
      if (a_.hidden % tp != 0 || a_.attn_heads % tp != 0 || a_.feedforward % tp != 0) {
        continue;
      }
      const std::int64_t rest = space_.devices / tp;
      for (const std::int64_t pp : divisors(std::min(rest, a_.num_blocks))) {
        const std::int64_t dp = rest / pp;
        if (rest % pp == 0 && a_.num_blocks % pp == 0 && dp <= space_.batch) {
          all.push_back({.num_procs = space_.devices,
                         .tensor_par = tp,
                         .pipeline_par = pp,
                         .data_par = dp,
                         .batch_size = space_.batch / dp * dp,
                         .datatype = system_.type});
        }
      }
    }
    return all;
  }

  /// Everything that a block depends on.
  void kinds_of_block(Execution e) {
    for (const auto& recompute : kNames<Recompute>) {
      e.activation_recompute = recompute.value;
      for (const bool sharding : choices(e.data_par > 1)) {
        e.optimizer_sharding = sharding;
        communications(e);
      }
    }
  }

  void communications(Execution e) {
    for (const auto& comm : kNames<TensorComm>) {
      e.tensor_par_comm_type = comm.value;
      const bool may_redo =
          comm.value == TensorComm::rs_ag && e.activation_recompute != Recompute::full;
      for (const bool redo : choices(may_redo)) {
        e.seq_par_ag_redo = redo;
        overlaps(e);
      }
    }
  }

  void overlaps(Execution e) {
    for (const auto& overlap : kNames<TensorOverlap>) {
      if (overlap.value != TensorOverlap::none && e.tensor_par == 1) {
        continue;
      }
      e.tensor_par_overlap = overlap.value;
      for (const std::int64_t microbatch : divisors(e.batch_size / e.data_par)) {
        if (microbatch * a_.seq_size % e.tensor_par == 0) {
          e.microbatch_size = microbatch;
          blocks(e);
        }
      }
    }
  }

  void blocks(Execution e) {
    std::vector<Block> by_network;
    for (e.tensor_par_net = 0; e.tensor_par_net < (e.tensor_par > 1 ? networks_ : 1);
         ++e.tensor_par_net) {
      by_network.push_back(block_of(a_, system_, e));
    }
    for (const std::int64_t chunks :
         divisors(e.pipeline_par > 1 ? a_.num_blocks / e.pipeline_par : 1)) {
      e.pipeline_interleaving = chunks;
      offloads(e, by_network);
    }
  }

  void offloads(Execution e, const std::vector<Block>& by_network) {
    const bool lower = system_.lower_memory.capacity > Bytes(0);
    for (const bool weights : choices(lower)) {
      e.weight_offload = weights;
      for (const bool activations : choices(lower && e.activation_recompute != Recompute::full)) {
        e.activations_offload = activations;
        for (const bool states : choices(lower)) {
          e.optimizer_offload = states;
          networks(e, by_network);
        }
      }
    }
  }

  /// Memory once, then every assignment of networks.
  void networks(Execution e, const std::vector<Block>& by_network) {
    const std::size_t overlaps = choices(e.data_par > 1).size();
    const std::int64_t stages = e.pipeline_par > 1 ? networks_ : 1;
    const std::int64_t replicas = e.data_par > 1 ? networks_ : 1;
    result_.distinct += overlaps;
    result_.executions +=
        overlaps * by_network.size() * static_cast<std::size_t>(stages * replicas);
    const Footprint footprint = footprint_of(a_, e, by_network.front());
    if (!fits(system_, footprint)) {
      return;
    }
    for (std::size_t tensor = 0; tensor < by_network.size(); ++tensor) {
      e.tensor_par_net = static_cast<std::int64_t>(tensor);
      for (e.pipeline_par_net = 0; e.pipeline_par_net < stages; ++e.pipeline_par_net) {
        for (e.data_par_net = 0; e.data_par_net < replicas; ++e.data_par_net) {
          steps(e, by_network[tensor], footprint);
        }
      }
    }
  }

  void steps(Execution e, const Block& block, const Footprint& footprint) {
    if (!can_run(a_, system_, e)) {
      return;
    }
    for (const bool overlap : choices(e.data_par > 1)) {
      e.data_par_overlap = overlap;
      add({e, {step_of(a_, system_, e, block), footprint}});
    }
  }

  void add(const Found& found) {
    ++result_.feasible;
    if (result_.top.size() == most_ && (most_ == 0 || !better(found, result_.top.back()))) {
      return;
    }
    result_.top.insert(std::upper_bound(result_.top.begin(), result_.top.end(), found, better),
                       found);
    result_.top.resize(std::min(result_.top.size(), most_));
  }

  const Application& a_;
  const System& system_;
  const Space& space_;
  std::size_t most_;
  const std::function<void(double)>& progress_;
  std::int64_t networks_;
  SearchResult result_;
};

}  // namespace

SearchResult search(const Application& application, const System& system, const Space& space,
                    std::size_t top, const std::function<void(double)>& progress) {
  return Search(application, system, space, top, progress).run();
}

}  // namespace orrery::calculon
