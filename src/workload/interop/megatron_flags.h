// SPDX-License-Identifier: Apache-2.0
/// Vocabulary of Megatron-LM that becomes no plan field. Internal to this folder.
/// Source: the arguments of megatron/training/arguments.py (core 0.14) and of earlier releases.
#pragma once

#include <span>
#include <string_view>

namespace orrery::interop {

struct Flag {
  std::string_view name;
  std::string_view why;
};

/// RenamedFlag is another program's or an earlier release's name of a flag.
struct RenamedFlag {
  std::string_view name;
  std::string_view as;
};

/// Changes neither time nor memory of a step as it is modelled.
std::span<const std::string_view> megatron_ignored();
/// Returns the same, of Megatron-DeepSpeed, patches and earlier releases.
std::span<const std::string_view> megatron_others_ignored();
std::span<const RenamedFlag> megatron_renamed();
/// Changes a little that no plan states; accepted with a remark.
std::span<const Flag> megatron_noted();
/// Changes what no plan can state.
std::span<const Flag> megatron_refused();

}  // namespace orrery::interop
