// SPDX-License-Identifier: Apache-2.0
/// One image on many devices: the rows of the latent image in n patches, one a device, for each
/// branch of classifier-free guidance. After warm-up steps with synchronous exchange every layer
/// uses the other patches' activations of the step before (displaced patch parallelism).
///
/// Received per device, step and branch, elements of 2 bytes:
///
///   KV   = sum over attention blocks of tokens 2 C       halo = sum over convolutions of 2 width C
///   norm = 2 groups norms                                nb   = 2 (n - 1) / n neighbours (mean)
///
///   distrifusion   (n - 1) / n KV + (n - 1) (halo + norm)        all-gathers
///   pcpp           nb / n KV + (n - 1) (halo + norm)             whole patches of neighbours
///   portion        nb portion / n KV + (n - 1) (halo + norm)     the part that is attended to
///   portion_halo   nb portion / n KV + nb halo + (n - 1) norm    halos to neighbours only
///
/// Time of a step on the device with most neighbours (2 from three patches on):
///
///   compute  = (others / n + scores / n KVfraction) / (peak gemm_peak_share), a lone kernel
///   scores   = sum of 4 tokens^2 C, KVfraction = min(1, (1 + nb portion) / n), distrifusion 1
///   exchange = collectives of the machine: all-gathers, messages to and from neighbours, in
///              batches of `checkpoint` layers
///   step     = compute + max(0, exchange - compute); a warm-up step compute + exchange of
///              distrifusion
///   image    = its steps + `serial` of one device's image: text encoders, decoder, an input
///
/// Ignores:  kernels that small patches leave idle, spare time of patches at an edge, quality
///           (tests/serving/toy_diffusion_test.cc measures a toy's).
/// Source:   DistriFusion (Li et al., CVPR 2024); PCPP (arXiv 2412.02962) and its code, which sends
///           whole K and V to neighbours.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "machine/machine.h"

namespace orrery::serving {

enum class PatchScheme : std::uint8_t { distrifusion, pcpp, portion, portion_halo };
constexpr auto named_values(PatchScheme) {
  return std::to_array<Named<PatchScheme>>({
      {PatchScheme::distrifusion, "distrifusion", "everything to everybody"},
      {PatchScheme::pcpp, "pcpp", "whole keys and values to neighbours, as PCPP's code"},
      {PatchScheme::portion, "portion", "only the part of them that is attended to"},
      {PatchScheme::portion_halo, "portion_halo", "and halos to neighbours only"},
  });
}

struct PatchQuery {
  std::string network = "sdxl";
  std::int64_t resolution = 1024;
  std::int64_t devices = 8;
  bool split_guidance = true;
  double portion = 0.3;
  std::int64_t steps = 50;
  std::int64_t warmup = 4;
  std::int64_t checkpoint = 60;
  double serial = 0;

  template <class V>
  static void fields(V&& visit) {
    using Q = PatchQuery;
    visit("network", &Q::network, "sdxl (default) or dit-xl");
    visit("resolution", &Q::resolution, "pixels of a side; default 1024");
    visit("devices", &Q::devices, "default 8");
    visit("split_guidance", &Q::split_guidance, "each branch has half of the devices; default");
    visit("portion", &Q::portion, "of a neighbour's patch that is attended to; default 0.3");
    visit("steps", &Q::steps, "of an image; default 50");
    visit("warmup", &Q::warmup, "synchronous ones; default 4");
    visit("checkpoint", &Q::checkpoint, "layers of one batch of messages; default 60");
    visit("serial", &Q::serial, "share of the single image that is not divided; default 0");
  }
};

/// A PatchRow has the figures of one scheme.
struct PatchRow {
  PatchScheme scheme = PatchScheme::distrifusion;
  Bytes keys_values{0};
  Bytes halo{0};
  Bytes norm{0};
  Bytes received{0};
  double saved = 0;
  double score_tflop = 0;
  Time compute{0};
  Time exchange{0};
  Time step{0};
  Time image{0};
  double speedup = 0;

  template <class V>
  static void fields(V&& visit) {
    using R = PatchRow;
    visit("scheme", &R::scheme, "what is exchanged");
    visit("keys_values", &R::keys_values, "received per device, step and branch");
    visit("halo", &R::halo, "of convolutions, the same");
    visit("norm", &R::norm, "moments, the same");
    visit("received", &R::received, "all of it");
    visit("saved", &R::saved, "share of distrifusion's");
    visit("score_tflop", &R::score_tflop, "of attention's products, per device");
    visit("compute", &R::compute, "of a step");
    visit("exchange", &R::exchange, "of a step");
    visit("step", &R::step, "after warm-up");
    visit("image", &R::image, "all steps");
    visit("speedup", &R::speedup, "over one device");
  }
};

struct PatchRun {
  std::int64_t patches = 1;  ///< n, of a branch
  Time single_image{0};      ///< one device, both branches
  std::vector<PatchRow> rows;
};

/// Runs all schemes. Mistakes: an unknown network, numbers out of range, a height that n does not
/// divide (8 n pixels), devices that the machine has not, one that computes in neither bf16 nor
/// fp16.
Result<PatchRun> patch_parallel(const machine::Machine& machine, const PatchQuery& query);

}  // namespace orrery::serving
