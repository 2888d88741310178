// SPDX-License-Identifier: Apache-2.0
/// A model on small devices at home, one request: tensor parallel over unequal devices, all-reduce
/// of the fastest algorithm per message, weights streamed from disks through a window.
///
///   share p_i   power_i / sum of powers: of the heads and of the MLP's width; unless stated the
///               power of devices of their own kinds is their peak, of equal ones the same
///   block       max(FLOPs / peak, bytes / memory bandwidth) of the first tier, as a lone kernel;
///               an all-reduce waits for the last device
///   load        bytes p_i / bandwidth of the second tier, the disk
///   all-reduce  tokens x hidden x bytes (collective/gateway.h), two of a layer
///   token       weight_window.h with the slowest device's blocks; the output head, which the
///               master keeps, after them
///   memory      peak_elements x bytes
///
/// The window: the stated one, or that which decodes fastest and fits every device; of equally fast
/// ones the smallest.
///
/// Ignores:  whole heads (shares are of elements); the cache of keys and values; what a framework
///           takes beside the weights, for which the published figures have 0.305 GiB + 38 %.
/// Source:   TPI-LLM (arXiv 2410.00531).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "collective/gateway.h"
#include "machine/machine.h"
#include "serving/step/weight_window.h"
#include "workload/zoo/model.h"

namespace orrery::serving {

struct Home {
  std::int64_t devices = 8;
  std::int64_t window = 0;
  std::int64_t retain = 0;
  std::int64_t input = 16;
  std::int64_t output = 20;
  std::string powers;
  std::string all_reduce = "auto";

  template <class V>
  static void fields(V&& visit) {
    visit("devices", &Home::devices, "tensor parallel; default 8");
    visit("window", &Home::window, "blocks in memory, half a layer each; default: the best");
    visit("retain", &Home::retain, "keep the MLP of every N-th layer; default none");
    visit("input", &Home::input, "tokens of the prompt; default 16");
    visit("output", &Home::output, "tokens of the answer; default 20");
    visit("powers", &Home::powers, "of the devices, master first, such as 2,1,1; default equal");
    visit("all_reduce", &Home::all_reduce, "star, tree, ring; default auto: the fastest");
  }
};

struct HomeRun {
  std::int64_t window = 0;
  collective::GatewayAlgorithm prompt_all_reduce = collective::GatewayAlgorithm::star;
  collective::GatewayAlgorithm token_all_reduce = collective::GatewayAlgorithm::star;
  Bytes message{0};
  Time attention{0};
  Time mlp{0};
  Time all_reduce{0};
  Time load_attention{0};
  Time load_mlp{0};
  bool loose = false;
  bool tight = false;
  Time first_token{0};
  Time next_token{0};
  Time stall{0};
  Time resident_token{0};
  Bytes master_memory{0};
  Bytes worker_memory{0};
  Bytes resident_memory{0};

  template <class V>
  static void fields(V&& visit) {
    using H = HomeRun;
    visit("window", &H::window, "blocks in memory");
    visit("prompt_all_reduce", &H::prompt_all_reduce, "algorithm for the prompt");
    visit("token_all_reduce", &H::token_all_reduce, "algorithm for a token");
    visit("message", &H::message, "an all-reduce of one token");
    visit("attention", &H::attention, "one token, slowest device");
    visit("mlp", &H::mlp, "one token, slowest device");
    visit("all_reduce", &H::all_reduce, "one token");
    visit("load_attention", &H::load_attention, "from disk, slowest device");
    visit("load_mlp", &H::load_mlp, "from disk, slowest device");
    visit("loose", &H::loose, "no token but the first waits for loads, on the whole");
    visit("tight", &H::tight, "none waits, for certain");
    visit("first_token", &H::first_token, "prompt, with an empty window");
    visit("next_token", &H::next_token, "mean of the others");
    visit("stall", &H::stall, "of all tokens, waiting for loads");
    visit("resident_token", &H::resident_token, "if all weights were in memory");
    visit("master_memory", &H::master_memory, "weights at once");
    visit("worker_memory", &H::worker_memory, "weights at once, largest share");
    visit("resident_memory", &H::resident_memory, "of the master without a window");
  }
};

/// The machine's device is the master's and every worker's, its power times their shares of the
/// mean; its second tier the disk, its first network dimension the way between two of them. Weights
/// in the widest format that the device computes in (fp32 before bf16).
/// Mistakes: numbers out of range, powers, a machine without a second tier, models with experts, a
/// window that does not fit.
Result<HomeRun> serve_at_home(const zoo::Model& model, const machine::Machine& machine,
                              const Home& home);
/// Serves on devices of their own kinds, the master first: each is the device of its machine,
/// behind the first dimension of its network. `devices` of `home` is their number. Mistakes: as
/// above, of each; no format in which all compute.
Result<HomeRun> serve_at_home(const zoo::Model& model, std::span<const machine::Machine> machines,
                              const Home& home);

}  // namespace orrery::serving
