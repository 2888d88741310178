// SPDX-License-Identifier: Apache-2.0
#include "cli/engine_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/plain_fields.h"
#include "cli/request_flags.h"
#include "cli/step_flags.h"
#include "serving/plan_search.h"

namespace orrery::cli {
namespace {

constexpr std::array<std::string_view, 6> kOwn{"--fuse",    "--overlap-tensor", "--replicas",
                                               "--prefill", "--router",         "--kernels-tables"};

}  // namespace

void EngineFlags::declare(Options& options) {
  options.value("--devices", devices_, "INT",
                "of the engine; default: its tp x cp x dp x pp. --search plan: at most, default 8");
  options.value("--engine", engine_, "NAME|FILE", "default: vllm@0.20, with its host's time");
  options.value("--kernels", kernels_, "FILES",
                "CSV tables, by commas, of kernels measured on the card: they replace formulas");
  options.value("--replicas", replicas_, "INT", "engines alike; with --prefill those to decode");
  options.value("--prefill", prefill_, "INT", "engines that compute prompts only");
  options.value("--router", router_, "NAME",
                "round_robin (default), least_requests, least_tokens or prefix_aware");
  options.flag("--fuse", fuse_, "with tp: sums become slices where faster; says the gain");
  options.flag("--ideal-host", ideal_host_,
               "the best case: no time of the host, of the front end and of launches");
  options.value("--overlap-tensor", overlap_tensor_, "NAME", "a plan's, where that is faster");
  declare_fields(options);
}

void EngineFlags::declare_fields(Options& options) {
  options.group("Fields of the engine's file (orrery show engine)");
  fields_.clear();
  serving::Engine::fields([&](std::string_view section, std::string_view field, auto, auto) {
    fields_.push_back({std::string(section), std::string(field), {}});
  });
  std::size_t at = 0;
  serving::Engine::fields([&](std::string_view section, std::string_view field, auto member,
                              std::string_view sentence) {
    FieldFlag& its = fields_[at++];
    const std::string flag = serving::flag_of_field(section, field);
    if (std::ranges::count(kOwn, flag) == 0) {
      declare_field(options, flag, its.text, member, sentence);
    }
  });
  for (const serving::ForeignFlag& foreign : serving::foreign_flags()) {
    const auto its = std::ranges::find_if(fields_, [&](const FieldFlag& field) {
      return serving::flag_of_field(field.section, field.field) == foreign.own;
    });
    if (foreign.negates) {
      options.flag(foreign.flag, its->negated, "as " + foreign.own + " false");
    } else {
      options.alias(foreign.flag, foreign.own);
    }
  }
  options.alias("--kv-cache-dtype", "--kv");
  options.value("--quantization", quantization_, "NAME",
                "of weights and operands, instead of the checkpoint's: " + serving::format_names());
  options.flag("--enforce-eager", eager_, "as --graphs-largest 0");
  options.flag("--enable-expert-parallel", all_experts_, "as --ep of tp x dp");
}

void EngineFlags::add_format(std::vector<serving::StatedField>& fields, Error& mistakes) const {
  if (!quantization_) {
    return;
  }
  const auto* const format =
      std::ranges::find(serving::kFormats, *quantization_, &serving::Format::name);
  if (format == serving::kFormats.end()) {
    mistakes.add(
        wrong_value("--quantization", *quantization_, "one of " + serving::format_names()));
    return;
  }
  const std::string flag = "--quantization";
  fields.push_back({"precision", "weights", std::string(name_of(format->weights)), flag});
  fields.push_back({"precision", "activations", std::string(name_of(format->activations)), flag});
  fields.push_back({"precision", "kv", std::string(name_of(format->kv)), flag});
  fields.push_back({"precision", "narrow", "all", flag});
  fields.push_back({"precision", "block_scaled", "false", flag});
  fields.push_back({"precision", "experts_fp4", "false", flag});
  fields.push_back({"precision", "scale_bits", fmt::format("{}", format->scale_bits), flag});
}

std::vector<serving::StatedField> EngineFlags::stated(Error& mistakes) const {
  std::vector<serving::StatedField> fields;
  add_format(fields, mistakes);
  for (const FieldFlag& field : fields_) {
    const std::string flag = serving::flag_of_field(field.section, field.field);
    std::string text = field.text.value_or("");
    if (field.text && field.negated) {
      mistakes.add({flag, {}, *field.text, "none beside the switch that says it is false"});
    }
    if (flag == "--kv" && text == "auto") {
      continue;  // the engine's
    }
    if (flag == "--kv" && text.starts_with("fp8_")) {
      text = "fp8";  // e4m3 and e5m2 take the same time
    }
    if (field.text || field.negated) {
      fields.push_back({field.section, field.field, field.negated ? "false" : text, flag});
    }
  }
  if (eager_) {
    fields.push_back({"graphs", "largest", "0", "--enforce-eager"});
  }
  return fields;
}

ServedModel EngineFlags::read(const std::optional<std::string>& model, Error& mistakes,
                              Error& of_files) const {
  ServedModel served = load_served(model, engine_, of_files, stated(mistakes));
  serving::Engine& engine = served.engine;
  engine.fuse = engine.fuse || fuse_;
  if (ideal_host_) {
    engine.front_end = engine.step = engine.per_request = engine.gap = engine.launch = Time(0);
    engine.handover = Time(0);
  }
  engine.ep = all_experts_ ? engine.tp * engine.dp : engine.ep;
  take("--overlap-tensor", overlap_tensor_, engine.overlap_tensor, mistakes);
  engine.kernels = kernels_.value_or(engine.kernels);
  return served;
}

void EngineFlags::place(serving::Engine& engine, Error& mistakes) const {
  constexpr std::int64_t kMostEngines = 4096;
  engine.replicas = whole_number("--replicas", replicas_, engine.replicas, kMostEngines, mistakes);
  engine.prefill = whole_number("--prefill", prefill_, engine.prefill, kMostEngines, mistakes);
  take("--router", router_, engine.router, mistakes);
  const bool alone = std::max(engine.replicas, engine.most_replicas) == 1 && engine.prefill < 2;
  if (router_ && alone && !replicas_) {  // a script may go through numbers from 1
    mistakes.add({"--router", {}, {}, "is for several engines: --replicas above 1"});
  }
  if (!devices_) {
    return;
  }
  const std::int64_t devices = whole_number("--devices", devices_, 1, kMostRequests, mistakes);
  const std::int64_t engines = engine.replicas + engine.prefill;
  if (engine.devices() == engines && devices % engines == 0) {
    engine.tp = devices / engines;
    engine.ep = all_experts_ ? engine.tp * engine.dp : engine.ep;
  } else if (engine.devices() != devices) {
    mistakes.add(wrong_value(
        "--devices", *devices_,
        fmt::format("{} of the engine: {} x tp x cp x dp x pp of {} x {} x {} x {}{}{}",
                    engine.devices(), engine.replicas, engine.tp, engine.cp, engine.dp, engine.pp,
                    engine.ffn > 0 ? fmt::format(" and ffn {}", engine.ffn) : std::string(),
                    engine.prefill > 0 ? fmt::format(" and {} for prompts", engine.prefill)
                                       : std::string())));
  }
}

void EngineFlags::refuse_fleet(const std::string& reason, Error& mistakes) const {
  refuse_given({{"--replicas", replicas_}, {"--prefill", prefill_}, {"--router", router_}}, reason,
               mistakes);
}

}  // namespace orrery::cli
