// SPDX-License-Identifier: Apache-2.0
#include "workload/zoo/hub_name.h"

#include <algorithm>
#include <array>

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

}  // namespace

std::string shipped_name(std::string_view hub_name) {
  std::string name(hub_name.substr(hub_name.rfind('/') + 1));
  std::ranges::transform(name, name.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
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

bool is_hub_name(std::string_view name) {
  return std::ranges::count(name, '/') == 1 && name.front() != '.' && name.front() != '/' &&
         name.back() != '/' && !name.ends_with(".json") && !name.ends_with(".yaml");
}

}  // namespace orrery::zoo
