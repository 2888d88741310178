// SPDX-License-Identifier: Apache-2.0
/// Settings of BookSim 2 that do nothing here, or have one value.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/words.h"

namespace orrery::flit {

/// Files may name these keys, which have no bearing on these results: output, other kinds of
/// simulation.
inline const std::vector<std::string_view> without_effect = words_of(
    "sim_type print_activity print_csv_results viewer_trace watch_file watch_flits watch_packets "
    "watch_transactions watch_all_packets watch_out stats_out print_vc_stats sim_power "
    "power_output_file tech_file channel_width channel_sweep sim_count deadlock_warn_timeout "
    "in_ports out_ports express_channels max_held_slots feedback_aging_scale feedback_offset "
    "private_bufs private_buf_size private_buf_start_vc private_buf_end_vc flow_out "
    "include_queuing noq vc_shuffle_requests vc_priority_donation st_prepare_delay buffer_policy "
    "buf_size physical_subnetworks routing_delay_lookahead output_delay link_failures fail_seed "
    "alloc_iters arb_type measure_stats pair_stats acc_warmup_thres warmup_thres subnets",
    " ");

/// These keys are right for one value only.
inline const std::map<std::string, std::vector<std::string>, std::less<>> only_values{
    {"sim_type", {"latency", "throughput", "batch"}},
    {"batch_count", {"1"}},
    {"router", {"iq"}},
    {"noq", {"0"}},
    {"subnets", {"1"}},
    {"buffer_policy", {"private"}},
    {"st_prepare_delay", {"0"}},
    {"link_failures", {"0"}},
    {"limit", {"0"}},
    {"channel_file", {""}},
    {"vc_alloc_arb_type", {"round_robin"}},
    {"sw_alloc_arb_type", {"round_robin"}},
    {"include_queuing", {"1"}}};

/// Keys that other fields than those of their names have (settings.h, open_loop.h, experiment.h).
inline constexpr auto kOurNames = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"num_vcs", "vcs"},
    {"vc_buf_size", "buffer"},
    {"routing_function", "routing"},
    {"traffic", "pattern"},
    {"packet_size", "packet"},
    {"injection_rate", "rate"},
    {"latency_thres", "latency_limit"},
    {"stopping_thres", "stopping_threshold"},
    {"acc_stopping_thres", "throughput_threshold"},
    {"batch_size", "batch"},
    {"max_outstanding_requests", "outstanding"},
});

}  // namespace orrery::flit
