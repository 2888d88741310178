// SPDX-License-Identifier: Apache-2.0
#include "serving/patches.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include "collective/cost.h"
#include "machine/compute/compute_model.h"
#include "machine/dimensions_only.h"
#include "serving/within.h"

namespace orrery::serving {
namespace {

constexpr double kElementBytes = 2;
constexpr std::int64_t kPixelsPerLatent = 8;

/// `count` layers on an image `shrink` times smaller than the latent one, `channels` wide.
struct Layers {
  double count = 0;
  double shrink = 1;
  double channels = 0;
};

/// flops: of one pass at 1024 x 1024 without the products of scores; they grow with the area.
struct Network {
  std::string_view name;
  std::span<const Layers> attention;
  std::span<const Layers> convolutions;
  double norms = 0;
  double other_flops = 0;
};

constexpr std::array<Layers, 2> kSdxlAttention{{{10, 2, 640}, {60, 4, 1280}}};
constexpr std::array<Layers, 3> kSdxlConvolutions{{{10, 1, 320}, {10, 2, 640}, {14, 4, 1280}}};
constexpr std::array<Layers, 1> kDitAttention{{{28, 2, 1152}}};
/// SDXL: 2.98e12 multiply-accumulates of its UNet (recalled: DistriFusion counts them so) less
/// scores. DiT-XL/2: 28 layers of 12 C^2 parameters, two FLOPs each for each of 4,096 tokens.
constexpr std::array<Network, 2> kNetworks{
    {{"sdxl", kSdxlAttention, kSdxlConvolutions, 104, 5.96e12 - 0.75e12},
     {"dit-xl", kDitAttention, {}, 0, 2.0 * 4096 * 28 * 12 * 1152 * 1152}}};
constexpr double kGroups = 32;

struct Sizes {
  double keys_values = 0;
  double halo = 0;
  double norm = 0;
  double scores = 0;  ///< FLOPs
  double others = 0;
};

Sizes sizes_of(const Network& network, std::int64_t resolution) {
  const auto latent = static_cast<double>(resolution) / kPixelsPerLatent;
  Sizes sizes;
  for (const Layers& layers : network.attention) {
    const double side = std::floor(latent / layers.shrink);
    sizes.keys_values += layers.count * side * side * 2 * layers.channels;
    sizes.scores += layers.count * 4 * side * side * side * side * layers.channels;
  }
  for (const Layers& layers : network.convolutions) {
    sizes.halo += layers.count * 2 * std::floor(latent / layers.shrink) * layers.channels;
  }
  sizes.norm = 2 * kGroups * network.norms;
  sizes.others = network.other_flops * (latent / 128) * (latent / 128);
  return sizes;
}

/// Returns, of the two 16-bit formats, the first that the device computes in.
graph::DataType type_of(const machine::Machine& machine) {
  const auto bf16 = static_cast<std::size_t>(graph::DataType::bf16);
  return machine.device.peak[bf16] > FlopRate(0) ? graph::DataType::bf16 : graph::DataType::fp16;
}

Bytes in_bytes(double elements) {
  return Bytes(std::llround(elements * kElementBytes));
}

class Patches {
 public:
  Patches(const machine::Machine& machine, const PatchQuery& query, const Network& network)
      : machine_(machine),
        query_(query),
        sizes_(sizes_of(network, query.resolution)),
        layers_(std::accumulate(network.attention.begin(), network.attention.end(), 0.0,
                                [](double sum, const Layers& l) { return sum + l.count; })),
        n_(query.split_guidance && query.devices > 1 ? query.devices / 2 : query.devices) {}

  std::int64_t patches() const { return n_; }
  /// Branches that a device computes.
  std::int64_t branches() const { return query_.split_guidance && query_.devices > 1 ? 1 : 2; }

  Time compute(double patches, double fraction) const {
    graph::Operator op{
        .name = {}, .kind = graph::OperatorKind::opaque, .type = type_of(machine_), .gemm = {}};
    op.flops = Flops(sizes_.others / patches + sizes_.scores / patches * fraction);
    return compute::kernel_time(op, machine_.device).alone;
  }

  PatchRow row(PatchScheme scheme) const {
    const auto n = static_cast<double>(n_);
    const double neighbours = 2 * (n - 1) / n;
    const bool gathers = scheme == PatchScheme::distrifusion;
    const bool whole = scheme == PatchScheme::pcpp;
    PatchRow row{.scheme = scheme};
    const double sent = whole ? 1 : query_.portion;
    const double kv =
        gathers ? (n - 1) / n * sizes_.keys_values : neighbours * sent / n * sizes_.keys_values;
    const double halo = (scheme == PatchScheme::portion_halo ? neighbours : n - 1) * sizes_.halo;
    row.keys_values = in_bytes(kv);
    row.halo = in_bytes(halo);
    row.norm = in_bytes((n - 1) * sizes_.norm);
    row.received = row.keys_values + row.halo + row.norm;
    const double seen = gathers ? 1 : std::min(1.0, (1 + neighbours * query_.portion) / n);
    row.score_tflop = sizes_.scores / n * seen / 1e12;
    row.compute = compute(n, seen) * branches();
    row.exchange = exchange(scheme, sent) * branches();
    row.step = row.compute + std::max(Time(0), row.exchange - row.compute);
    return row;
  }

 private:
  Time exchange(PatchScheme scheme, double sent) const {
    if (n_ == 1) {
      return Time(0);
    }
    const auto group = collective::extents_of(1, n_, machine_);
    const double batches =
        std::max(1.0, std::ceil(layers_ / static_cast<double>(query_.checkpoint)));
    const auto timed = [&](graph::CollectiveKind kind, double elements) {
      const Bytes size = in_bytes(elements / batches);
      return size == Bytes(0)
                 ? Time(0)
                 : collective::collective_time(
                       kind, size, group, collective::CollectiveAlgorithm::automatic, machine_) *
                       batches;
    };
    const auto gathered = [&](double elements) {
      return timed(graph::CollectiveKind::all_gather, elements);
    };
    const auto n = static_cast<double>(n_);
    const double most = n_ > 2 ? 2 : 1;  // neighbours
    const double shared =
        n * sizes_.norm + (scheme == PatchScheme::portion_halo ? 0 : n * sizes_.halo);
    if (scheme == PatchScheme::distrifusion) {
      return gathered(sizes_.keys_values + shared);
    }
    const double halo = scheme == PatchScheme::portion_halo ? sizes_.halo : 0;
    return gathered(shared) +
           timed(graph::CollectiveKind::send_recv, most * (sent * sizes_.keys_values / n + halo));
  }

  const machine::Machine& machine_;
  const PatchQuery& query_;
  Sizes sizes_;
  double layers_;
  std::int64_t n_;
};

Error check(const PatchQuery& query) {
  Error error;
  require_within(error, "resolution", query.resolution, 64, 1 << 16);
  require_within(error, "devices", query.devices, 1, 1024);
  require_within(error, "steps", query.steps, 1, 100'000);
  require_within(error, "warmup", query.warmup, 0, query.steps);
  require_within(error, "checkpoint", query.checkpoint, 1, 100'000);
  if (!(query.portion >= 0 && query.portion <= 1)) {
    error.add({"", "portion", fmt::format("{}", query.portion), "a share from 0 to 1"});
  }
  if (!(query.serial >= 0 && query.serial < 1)) {
    error.add({"", "serial", fmt::format("{}", query.serial), "a share from 0 on, below 1"});
  }
  if (error.empty() && query.split_guidance && query.devices > 1 && query.devices % 2 != 0) {
    error.add(
        {"", "devices", std::to_string(query.devices), "an even number, or split_guidance: false"});
  }
  return error;
}

}  // namespace

Result<PatchRun> patch_parallel(const machine::Machine& machine, const PatchQuery& query) {
  Error error = check(query);
  const auto network = std::find_if(kNetworks.begin(), kNetworks.end(), [&](const Network& known) {
    return known.name == query.network;
  });
  if (network == kNetworks.end()) {
    error.add({"", "network", query.network, "sdxl or dit-xl"});
  }
  if (machine.device.peak[static_cast<std::size_t>(type_of(machine))] == FlopRate(0)) {
    error.add({"", "machine", machine.name, "a device that computes in bf16 or fp16"});
  }
  if (auto known = machine::check_dimensions_only(machine, "patches"); !known) {
    error.add(std::move(known.error()));
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  auto sized = machine::with_devices(machine, query.devices);
  if (!sized) {
    return fail(std::move(sized.error()));
  }
  const Patches patches(*sized, query, *network);
  const std::int64_t n = patches.patches();
  if (query.resolution % (kPixelsPerLatent * n) != 0) {
    return fail(Error(Mistake{"", "resolution", std::to_string(query.resolution),
                              fmt::format("a multiple of 8 n = {}", kPixelsPerLatent * n)}));
  }
  PatchRun run;
  run.patches = n;
  run.single_image = patches.compute(1, 1) * 2 * query.steps * (1 / (1 - query.serial));
  const PatchRow full = patches.row(PatchScheme::distrifusion);
  for (const Named<PatchScheme>& scheme : kNames<PatchScheme>) {
    PatchRow row = patches.row(scheme.value);
    row.saved = full.received > Bytes(0) ? 1 - row.received / full.received : 0;
    row.image = query.warmup * (full.compute + full.exchange) +
                (query.steps - query.warmup) * row.step + run.single_image * query.serial;
    row.speedup = run.single_image / row.image;
    if (error = beyond_time(row); !error.empty()) {
      return fail(std::move(error));
    }
    run.rows.push_back(row);
  }
  return run;
}

}  // namespace orrery::serving
