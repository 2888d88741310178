// SPDX-License-Identifier: Apache-2.0
#include "workload/zoo/hub_name.h"

#include <algorithm>
#include <array>

#include "base/letters.h"

namespace orrery::zoo {
namespace {

struct Alike {
  std::string_view name;
  std::string_view shipped;
};
/// Models of the same shape as a shipped one. Source: their config.json on the hub (recalled).
constexpr auto kAlike = std::to_array<Alike>({
    {"bloom", "bloom-176b"},
    {"deepseek-r1", "deepseek-v3"},
    {"deepseek-r1-0528", "deepseek-v3"},
    {"deepseek-r1-distill-llama-70b", "llama-3.1-70b"},
    {"deepseek-r1-distill-llama-8b", "llama-3.1-8b"},
    {"deepseek-v3-0324", "deepseek-v3"},
    {"deepseek-v3.1", "deepseek-v3"},
    {"deepseek-v3.1-terminus", "deepseek-v3"},
    {"deepseek-v3.2-exp", "deepseek-v3.2"},
    {"glm-4.6", "glm-4.5"},
    {"glm-4.7", "glm-4.5"},
    {"glm-5.1", "glm-5"},
    {"kimi-k2-thinking", "kimi-k2.5"},
    {"llama-3.3-70b", "llama-3.1-70b"},
    {"llama-4-maverick-17b-128e", "llama-4-maverick"},
    {"llama-4-scout-17b-16e", "llama-4-scout"},
    {"minimax-m2.1", "minimax-m2"},
    {"minimax-m2.5", "minimax-m2"},
    {"mistral-small-3.1-24b-instruct-2503", "mistral-small-3.1-24b"},
    {"nvidia-nemotron-3-nano-30b-a3b", "nemotron-3-nano"},
    {"qwen3-coder-30b-a3b", "qwen3-30b-a3b"},
    {"tinyllama-1.1b-chat-v1.0", "tinyllama"},
});

constexpr auto kSuffixes = std::to_array<std::string_view>(
    {"-instruct", "-chat", "-hf", "-base", "-it", "-pt", "-thinking", "-v0.1", "-2507", "-0905"});

struct Format {
  std::string_view end;  ///< of a name in lower case; longer ones first
  std::string_view type;
};
constexpr auto kFormats = std::to_array<Format>({
    {"-quantized.w4a16", "w4a16"},
    {"-quantized.w8a8", "w8a8"},
    {"-fp8-dynamic", "fp8"},
    {"-gptq-int4", "gptq"},
    {"-gptq-int8", "int8"},
    {"-awq-int4", "awq"},
    {"-bnb-4bit", "nf4"},
    {"-fp8", "fp8"},
    {"-awq", "awq"},
    {"-gptq", "gptq"},
    {"-nvfp4", "nvfp4"},
    {"-mxfp4", "mxfp4"},
    {"-fp4", "nvfp4"},
    {"-int4", "int4"},
    {"-int8", "int8"},
    {"-w4a16", "w4a16"},
    {"-w8a8", "w8a8"},
});

const Format* format_at_end(std::string_view name) {
  const std::string lower = lower_case(name);
  const auto* const format =
      std::ranges::find_if(kFormats, [&](const Format& each) { return lower.ends_with(each.end); });
  return format == kFormats.end() ? nullptr : format;
}

}  // namespace

std::string shipped_name(std::string_view hub_name) {
  std::string name = lower_case(hub_name.substr(hub_name.rfind('/') + 1));
  if (name.starts_with("meta-")) {
    name = name.substr(5);
  }
  for (bool shorter = true; shorter;) {
    const auto* const row = std::ranges::find(kAlike, name, &Alike::name);
    if (row != kAlike.end()) {
      return std::string(row->shipped);
    }
    const auto* const suffix = std::ranges::find_if(
        kSuffixes, [&](std::string_view each) { return name.ends_with(each); });
    shorter = suffix != kSuffixes.end();
    name.resize(name.size() - (shorter ? suffix->size() : 0));
  }
  return name;
}

std::string_view format_of(std::string_view name) {
  const Format* format = format_at_end(name);
  return format == nullptr ? "" : format->type;
}

std::string_view without_format(std::string_view name) {
  const Format* format = format_at_end(name);
  return format == nullptr ? name : name.substr(0, name.size() - format->end.size());
}

bool is_hub_name(std::string_view name) {
  return std::ranges::count(name, '/') <= 1 && !name.starts_with('.') && !name.starts_with('/') &&
         !name.ends_with('/') && !name.ends_with(".json") && !name.ends_with(".yaml");
}

}  // namespace orrery::zoo
