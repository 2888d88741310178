// SPDX-License-Identifier: Apache-2.0
/// Settings of BookSim 2 that do nothing here, or have one value.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace orrery::flit {

/// What files name that has no bearing on these results: output, other kinds of simulation.
inline const std::set<std::string, std::less<>> without_effect{"sim_type",
                                                               "print_activity",
                                                               "print_csv_results",
                                                               "viewer_trace",
                                                               "watch_file",
                                                               "watch_flits",
                                                               "watch_packets",
                                                               "watch_transactions",
                                                               "watch_all_packets",
                                                               "watch_out",
                                                               "stats_out",
                                                               "print_vc_stats",
                                                               "sim_power",
                                                               "power_output_file",
                                                               "tech_file",
                                                               "channel_width",
                                                               "channel_sweep",
                                                               "sim_count",
                                                               "deadlock_warn_timeout",
                                                               "include_queuing",

                                                               "noq",
                                                               "vc_shuffle_requests",
                                                               "vc_priority_donation",
                                                               "vc_prioritize_empty",
                                                               "vc_busy_when_full",
                                                               "st_prepare_delay",
                                                               "buffer_policy",
                                                               "buf_size",
                                                               "physical_subnetworks",
                                                               "priority",
                                                               "classes",
                                                               "use_read_write",
                                                               "output_buffer_size",
                                                               "routing_delay_lookahead",
                                                               "output_delay",
                                                               "link_failures",
                                                               "fail_seed",
                                                               "measure_stats",
                                                               "pair_stats",
                                                               "acc_warmup_thres",
                                                               "acc_stopping_thres",
                                                               "warmup_thres",
                                                               "subnets"};

/// Those of them, and others, that are right for one value only.
inline const std::map<std::string, std::vector<std::string>, std::less<>> only_values{
    {"sim_type", {"latency", "throughput", "batch"}},
    {"batch_count", {"1"}},
    {"router", {"iq"}},
    {"output_speedup", {"1"}},
    {"speculative", {"0"}},
    {"noq", {"0"}},
    {"vc_busy_when_full", {"0"}},
    {"vc_prioritize_empty", {"0"}},
    {"use_read_write", {"0"}},
    {"classes", {"1"}},
    {"subnets", {"1"}},
    {"buffer_policy", {"private"}},
    {"injection_process", {"bernoulli", "on_off"}},
    {"st_prepare_delay", {"0"}},
    {"link_failures", {"0"}},
    {"arb_type", {"round_robin"}},
    {"vc_alloc_arb_type", {"round_robin"}},
    {"sw_alloc_arb_type", {"round_robin"}},
    {"priority", {"none"}},
    {"include_queuing", {"1"}}};

}  // namespace orrery::flit
