// SPDX-License-Identifier: Apache-2.0
#include "compat/calculon/execution.h"

#include <type_traits>

#include "base/reader.h"

namespace orrery::calculon {
namespace {

class Checker {
 public:
  void require(bool right, std::string_view field, std::string expected) {
    if (!right) {
      mistakes_.add(Mistake{{}, std::string(field), {}, std::move(expected)});
    }
  }
  Error take() && { return std::move(mistakes_); }

 private:
  Error mistakes_;
};

constexpr std::int64_t kMost = std::int64_t{1} << 20;  // products of three do not overflow

/// The rest counts on these.
Error counts_out_of_range(const Execution& execution) {
  Checker checker;
  Execution::fields([&](std::string_view name, auto member, std::string_view) {
    if constexpr (std::is_same_v<std::decay_t<decltype(execution.*member)>, std::int64_t>) {
      const bool is_network = name.ends_with("_net");
      const std::int64_t least = is_network ? 0 : 1;
      checker.require(execution.*member >= least && execution.*member <= kMost, name,
                      "a number from " + std::to_string(least) + " to " + std::to_string(kMost));
    }
  });
  return std::move(checker).take();
}

}  // namespace

Result<void> check(const Execution& execution, const Application& application) {
  if (Error counts = counts_out_of_range(execution); !counts.empty()) {
    return fail(std::move(counts));
  }
  const Execution& e = execution;
  const Application& a = application;
  Checker checker;
  checker.require(e.num_procs == e.tensor_par * e.pipeline_par * e.data_par, "num_procs",
                  "tensor_par x pipeline_par x data_par");
  checker.require(a.hidden % e.tensor_par == 0 && a.feedforward % e.tensor_par == 0 &&
                      a.attn_heads % e.tensor_par == 0,
                  "tensor_par", "a divisor of hidden, feedforward and attn_heads");
  checker.require(e.batch_size % (e.data_par * e.microbatch_size) == 0, "batch_size",
                  "a multiple of data_par x microbatch_size");
  checker.require(e.microbatch_size * a.seq_size % e.tensor_par == 0 ||
                      e.tensor_par_comm_type == TensorComm::ar,
                  "microbatch_size", "tokens that tensor_par divides");
  const std::int64_t blocks = (a.num_blocks + e.pipeline_par - 1) / e.pipeline_par;
  checker.require(
      blocks % e.pipeline_interleaving == 0 && (e.pipeline_par > 1 || e.pipeline_interleaving == 1),
      "pipeline_interleaving", "a divisor of a stage's blocks, 1 for one stage");
  checker.require(!e.optimizer_sharding || e.data_par > 1, "optimizer_sharding",
                  "data_par above 1");
  checker.require(!e.data_par_overlap || e.data_par > 1, "data_par_overlap", "data_par above 1");
  checker.require(e.tensor_par_overlap == TensorOverlap::none || e.tensor_par > 1,
                  "tensor_par_overlap", "tensor_par above 1");
  checker.require(
      !e.seq_par_ag_redo || (e.sequence_par() && e.activation_recompute != Recompute::full),
      "seq_par_ag_redo", "rs_ag without full recompute");
  if (Error mistakes = std::move(checker).take(); !mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return {};
}

Result<Application> load_application(const std::string& file) {
  return load_config(file).and_then([](const ConfigNode& node) {
    Reader read(node);
    Application application;
    read.ignore("name");
    Application::fields([&](std::string_view name, auto member, std::string_view) {
      application.*member = read.required<std::int64_t>(name);
      read.require(application.*member >= 1 && application.*member <= kMost, name,
                   "a number from 1 to " + std::to_string(kMost));
    });
    return read.finish(application);
  });
}

Result<Execution> load_execution(const std::string& file, const Application& application) {
  return load_config(file).and_then([&](const ConfigNode& node) -> Result<Execution> {
    Reader read(node);
    Execution execution;
    Execution::fields([&](std::string_view name, auto member, std::string_view) {
      execution.*member = read.required<std::decay_t<decltype(execution.*member)>>(name);
    });
    read.require(read.optional("training", true), "training", "true: inference is not modelled");
    read.require(read.optional("attention_type", std::string("multihead")) == "multihead",
                 "attention_type", "multihead");
    auto finished = read.finish(execution);
    if (!finished) {
      return finished;
    }
    if (auto checked = check(execution, application); !checked) {
      for (Mistake& mistake : checked.error().mistakes) {
        mistake.where = file;
      }
      return fail(std::move(checked.error()));
    }
    return finished;
  });
}

}  // namespace orrery::calculon
