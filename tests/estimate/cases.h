// SPDX-License-Identifier: Apache-2.0
/// Plans of published runs, for comparing the estimate with the simulation.
#pragma once

#include <string>
#include <vector>

#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::testing {

struct Case {
  std::string name;
  std::string machine;
  zoo::Model model;
  plan::Plan plan;
};

struct Shape {
  std::int64_t layers, hidden, heads, tp, pp, dp, chunks, global_batch, microbatch;
};

inline Case gpt_case(std::string name, std::string machine, const Shape& s,
                     std::int64_t sequence = 2048) {
  Case c{std::move(name),
         std::move(machine),
         zoo::gpt_model("GPT", s.layers, s.hidden, s.heads, sequence, 51200),
         {}};
  c.plan.tp = s.tp;
  c.plan.pp = s.pp;
  c.plan.dp = s.dp;
  c.plan.chunks = s.chunks;
  c.plan.schedule = s.chunks > 1 ? plan::Schedule::interleaved : plan::Schedule::one_f_one_b;
  c.plan.global_batch = s.global_batch;
  c.plan.microbatch = s.microbatch;
  c.plan.compute_type = graph::DataType::fp16;
  c.plan.pipeline_send = plan::PipelineSend::scatter_gather;
  c.plan.host_dispatch = 44_us;
  c.plan.p2p_host_sync = true;
  c.plan.host_sync = true;
  c.plan.batch_kernels = 14;
  c.plan.overlap_tp = false;
  return c;
}

/// Narayanan et al., SC'21 (arXiv:2104.04473), table 1; full recompute.
inline std::vector<Case> sc21_cases() {
  std::vector<Case> cases;
  for (const Shape& s :
       {Shape{24, 2304, 24, 1, 1, 32, 1, 512, 16}, Shape{30, 3072, 32, 2, 1, 32, 1, 512, 16},
        Shape{36, 4096, 32, 4, 1, 32, 1, 512, 16}, Shape{40, 6144, 48, 8, 1, 32, 1, 1024, 8},
        Shape{48, 8192, 64, 8, 2, 32, 1, 1536, 4}, Shape{60, 10240, 80, 8, 4, 32, 3, 1792, 2},
        Shape{80, 12288, 96, 8, 8, 24, 2, 2304, 2}, Shape{96, 16384, 128, 8, 16, 15, 2, 2160, 1},
        Shape{105, 20480, 128, 8, 35, 9, 3, 2520, 1},
        Shape{128, 25600, 160, 8, 64, 6, 1, 3072, 1}}) {
    Case c = gpt_case("SC'21 " + std::to_string(s.hidden), "selene", s);
    c.plan.grad_type = c.plan.grad_reduce_type = graph::DataType::fp16;
    c.plan.recompute = plan::Recompute::full;
    cases.push_back(std::move(c));
  }
  return cases;
}

/// Korthikanti et al. 2022 (arXiv:2205.05198), table 5: full recompute, and sequence parallelism
/// with selective recompute.
inline std::vector<Case> korthikanti_cases() {
  std::vector<Case> cases;
  for (const Shape& s :
       {Shape{48, 6144, 64, 8, 1, 1, 1, 4, 4}, Shape{96, 12288, 96, 8, 8, 1, 3, 64, 1},
        Shape{105, 20480, 128, 8, 35, 1, 3, 280, 1}, Shape{128, 25600, 160, 8, 64, 1, 1, 512, 1}}) {
    Case c = gpt_case("Korthikanti " + std::to_string(s.hidden) + " full", "selene", s);
    c.plan.fused_grad_accumulation = true;
    c.plan.recompute = plan::Recompute::full;
    cases.push_back(c);
    c.name = "Korthikanti " + std::to_string(s.hidden) + " selective";
    c.plan.recompute = plan::Recompute::selective;
    c.plan.sequence_parallel = true;
    cases.push_back(std::move(c));
  }
  return cases;
}

/// Rows of the measurements published with vTrain (VIA-Research/vTrain, data/), several nodes.
inline std::vector<Case> vtrain_multi_cases() {
  std::vector<Case> cases;
  for (const Shape& s :
       {Shape{30, 3072, 32, 1, 1, 64, 1, 512, 2}, Shape{30, 3072, 32, 1, 2, 32, 1, 512, 8},
        Shape{30, 3072, 32, 4, 1, 16, 1, 512, 8}, Shape{30, 3072, 32, 16, 1, 4, 1, 512, 8},
        Shape{40, 6144, 48, 8, 2, 16, 1, 1024, 2}, Shape{40, 6144, 48, 1, 8, 32, 1, 1024, 4},
        Shape{48, 8192, 64, 2, 8, 32, 1, 1536, 3}, Shape{48, 8192, 64, 4, 16, 8, 1, 1536, 4},
        Shape{96, 12288, 96, 4, 16, 8, 1, 1536, 4}, Shape{96, 12288, 96, 8, 8, 8, 1, 1536, 2}}) {
    Case c = gpt_case("vTrain " + std::to_string(s.hidden) + " tp " + std::to_string(s.tp) +
                          " pp " + std::to_string(s.pp),
                      "vtrain-a100", s);
    c.plan.grad_type = c.plan.grad_reduce_type = graph::DataType::fp16;
    c.plan.recompute = plan::Recompute::full;
    cases.push_back(std::move(c));
  }
  return cases;
}

/// The same, one node; small models that the host cannot keep busy.
inline std::vector<Case> vtrain_single_cases() {
  std::vector<Case> cases;
  for (const Shape& s :
       {Shape{20, 1024, 16, 1, 1, 2, 1, 4, 1}, Shape{16, 2048, 16, 1, 1, 2, 1, 16, 2},
        Shape{20, 2048, 16, 2, 1, 4, 1, 64, 8}, Shape{16, 1024, 16, 2, 4, 1, 1, 4, 1},
        Shape{24, 1024, 16, 1, 2, 2, 1, 32, 2}, Shape{24, 2048, 16, 2, 4, 1, 1, 16, 4},
        Shape{20, 1024, 16, 4, 1, 2, 1, 4, 1}, Shape{24, 1024, 16, 2, 1, 4, 1, 32, 1}}) {
    Case c = gpt_case("vTrain node " + std::to_string(s.hidden) + " tp " + std::to_string(s.tp) +
                          " pp " + std::to_string(s.pp),
                      "vtrain-a100", s, 1024);
    c.plan.grad_type = c.plan.grad_reduce_type = graph::DataType::fp16;
    c.plan.recompute = plan::Recompute::full;
    cases.push_back(std::move(c));
  }
  return cases;
}

/// Plans that planners try and no table lists: every overlap, ZeRO stage, schedule and order.
inline std::vector<Case> planner_cases() {
  std::vector<Case> cases;
  const auto add = [&](std::string name, const Shape& shape, auto&& change) {
    Case c = gpt_case("planner " + name, "selene", shape);
    c.plan.compute_type = graph::DataType::bf16;
    c.plan.pipeline_send = plan::PipelineSend::whole;
    c.plan.host_dispatch = Time(0);
    c.plan.p2p_host_sync = c.plan.host_sync = false;
    c.plan.batch_kernels = 0;
    c.plan.overlap_tp = true;
    change(c.plan);
    cases.push_back(std::move(c));
  };
  const Shape piped{96, 12288, 96, 8, 8, 4, 1, 256, 1};
  const Shape chunked{96, 12288, 96, 8, 8, 4, 3, 256, 1};
  const Shape flat{40, 6144, 48, 4, 1, 16, 1, 256, 1};
  add("1f1b", piped, [](plan::Plan&) {});
  add("1f1b tp-pp-dp", piped, [](plan::Plan& p) { p.order = "tp-pp-dp"; });
  add("1f1b overlap_p2p", piped, [](plan::Plan& p) { p.overlap_p2p = true; });
  add("1f1b few microbatches", piped, [](plan::Plan& p) { p.global_batch = 16; });
  add("gpipe", piped, [](plan::Plan& p) { p.schedule = plan::Schedule::gpipe; });
  add("interleaved", chunked, [](plan::Plan&) {});
  add("interleaved overlap_p2p", chunked, [](plan::Plan& p) { p.overlap_p2p = true; });
  add("interleaved sequence parallel", chunked, [](plan::Plan& p) {
    p.sequence_parallel = true;
    p.recompute = plan::Recompute::selective;
  });
  add("zero 1", piped, [](plan::Plan& p) { p.zero = 1; });
  add("grad reduce beside", piped, [](plan::Plan& p) { p.overlap_grad_reduce = true; });
  add("zero 1 all beside", piped, [](plan::Plan& p) {
    p.zero = 1;
    p.overlap_grad_reduce = p.overlap_param_gather = true;
  });
  add("interleaved zero 1 all beside", chunked, [](plan::Plan& p) {
    p.zero = 1;
    p.overlap_grad_reduce = p.overlap_param_gather = p.overlap_p2p = true;
  });
  add("uneven stages", piped, [](plan::Plan& p) { p.stage_layers = "10,12,13,13,13,13,12,10"; });
  add("tp 1 pp 8", Shape{40, 6144, 48, 1, 8, 8, 1, 128, 2}, [](plan::Plan&) {});
  add("tp 1 pp 8 overlap_p2p", Shape{40, 6144, 48, 1, 8, 8, 1, 128, 2},
      [](plan::Plan& p) { p.overlap_p2p = true; });
  add("flat", flat, [](plan::Plan&) {});
  add("flat overlap", flat, [](plan::Plan& p) { p.overlap_grad_reduce = true; });
  for (const std::int64_t zero : {1, 2, 3}) {
    add("flat zero " + std::to_string(zero), flat, [&](plan::Plan& p) { p.zero = zero; });
    add("flat beside zero " + std::to_string(zero), flat, [&](plan::Plan& p) {
      p.zero = zero;
      p.overlap_grad_reduce = p.overlap_param_gather = true;
    });
  }
  return cases;
}

}  // namespace orrery::testing
