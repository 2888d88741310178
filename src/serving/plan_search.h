// SPDX-License-Identifier: Apache-2.0
/// Says which engines are worth having: tokens per second of a device against tokens per second of
/// a user, over machines, formats, degrees and how many requests are served at once.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/metrics.h"
#include "serving/requests/generate.h"

namespace orrery::serving {

/// Formats of weights, GEMM operands and KV cache, by the names that checkpoints go by.
struct Format {
  std::string_view name;
  std::string_view sentence;
  graph::DataType weights;
  graph::DataType activations;
  graph::DataType kv;
  double scale_bits = 0;  ///< of a weight (step/quantization.h)
};
inline constexpr std::array kFormats{
    Format{"bf16", "nothing quantised", graph::DataType::bf16, graph::DataType::bf16,
           graph::DataType::bf16},
    Format{"w8a8", "8-bit weights and operands", graph::DataType::fp8, graph::DataType::fp8,
           graph::DataType::bf16},
    Format{"w8a8kv8", "8-bit weights, operands and cache", graph::DataType::fp8,
           graph::DataType::fp8, graph::DataType::fp8},
    Format{"w4a16", "4-bit weights, 16-bit operands", graph::DataType::fp4, graph::DataType::bf16,
           graph::DataType::bf16},
    Format{"w4a4kv8", "4-bit weights and operands, 8-bit cache", graph::DataType::fp4,
           graph::DataType::fp4, graph::DataType::fp8},
    Format{"fp8", "as w8a8: vLLM's --quantization fp8", graph::DataType::fp8, graph::DataType::fp8,
           graph::DataType::bf16},
    Format{"nvfp4", "4-bit weights and operands, an fp8 scale per 16", graph::DataType::fp4,
           graph::DataType::fp4, graph::DataType::bf16, 0.5},
    Format{"mxfp4", "4-bit weights, 16-bit operands, an exponent per 32", graph::DataType::fp4,
           graph::DataType::bf16, graph::DataType::bf16, 0.25},
    Format{"awq", "4-bit weights, 16-bit operands, scale and zero point per 128",
           graph::DataType::fp4, graph::DataType::bf16, graph::DataType::bf16, 0.15625},
    Format{"gptq", "as awq", graph::DataType::fp4, graph::DataType::bf16, graph::DataType::bf16,
           0.15625},
};
/// Returns "bf16, w8a8, ...", for messages.
std::string format_names();
/// Returns the engine with a format instead of its own and its checkpoint's.
Engine with_format(Engine engine, const Format& format);

struct PlanSearch {
  std::vector<machine::Machine> machines;  ///< at least one
  std::vector<Format> formats;             ///< none: as the engine says
  std::int64_t devices = 8;                ///< of an engine, at most
  requests::Generator load;                ///< lengths, shared prefixes and seed
  /// Given ones, all layouts serve them; else with objectives each has the rate that it keeps them
  /// at, without any as many requests at once as it has seats.
  std::vector<requests::Request> requests;
  double rate = 0;  ///< of `requests` per second, for a bound by formula; 0: none
  Objectives objectives;
  double attainment = 0.99;  ///< share of requests that must keep them
  std::function<void(double)> progress = {};
  std::function<bool()> go_on = {};  ///< asked between steps; false: what has not run is a loser

  bool goes_on() const { return !go_on || go_on(); }
};
inline constexpr std::string_view kEndedEarly = "not run: the search was ended early";

/// An engine, or pools of engines, without the number of seats.
struct Layout {
  Engine engine;
  std::string machine;
  std::string format;  ///< of kFormats; "": the engine's
  std::int64_t devices = 1;

  /// Returns "dgx-h100 w8a8 tp4 pp2", "dgx-h100 w8a8 prefill 2xtp1 decode 3xtp2"
  std::string name() const;
};

struct PlanPoint {
  std::size_t layout = 0;
  std::int64_t concurrency = 0;  ///< requests at once: seats that the engine needs
  double per_device = 0;         ///< output tokens/s of a device
  double per_user = 0;           ///< output tokens/s of a user
  double rate = 0;               ///< requests/s that keep the objectives; 0: not looked for
  bool simulated = false;        ///< else by steady_state()
  bool ahead = false;            ///< more tokens/s of a device than all that serve users as well
  double share = 0;              ///< of the most tokens/s of a device that such points have
  std::string breaks;            ///< which limit it does not keep; "": none
  Metrics metrics;               ///< if simulated
};

/// A Loser tells what became of a layout that no point of the front has.
struct Loser {
  std::size_t layout = 0;
  double share = 0;  ///< the best of its points'; 0: it does not run
  std::string reason;
};

struct PlansFound {
  std::vector<Layout> layouts;
  std::vector<PlanPoint> front;   ///< slowest users first
  std::vector<PlanPoint> beaten;  ///< simulated, not of the front
  std::vector<Loser> losers;      ///< the nearest first
  std::int64_t screened = 0;      ///< points by formula
  double screen_error = 0;        ///< mean |formula / simulation - 1| of tokens/s of a device
  double wall_s = 0;
};

/// Searches plans. Pools: for every tp of engines that compute prompts, tp of those that decode,
/// and seats of these, the numbers x and y of them, on as many devices as there may be, with the
/// largest
///   min(x prompts/s, y answers/s) / devices
/// by formula (rate matching: aiconfigurator). Degrees are the divisors of the devices (tp, pp, and
/// for experts dp = ep) that the model allows, seats powers of two up to 1024 a copy that the KV
/// cache holds. All are screened by steady_state(); points whose share is 0.9 or more are
/// simulated: five times as many requests as are served at once, each sent when another is
/// answered. With objectives or given requests the best point of each layout is simulated once,
/// with requests that come whatever is answered: at the largest rate that keeps the objectives (as
/// search_rate()), or the given ones. Front: no other
/// simulated point that keeps the objectives is better for both. A layout that was not simulated
/// loses by the formula.
PlansFound search_plans(const zoo::Model& model, const Engine& engine, const PlanSearch& search);

}  // namespace orrery::serving
