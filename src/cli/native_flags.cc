// SPDX-License-Identifier: Apache-2.0
#include "cli/native_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/reader.h"
#include "compat/astra/native.h"

namespace orrery {
namespace {

template <class E>
void check_name(const char* flag, const std::optional<std::string>& text, bool native,
                Error& mistakes) {
  if (!text) {
    return;
  }
  if (!value_of<E>(*text)) {
    mistakes.add(
        wrong_value(flag, *text, "one of " + all_names<E>() + did_you_mean(*text, names_of<E>())));
  } else if (!native) {
    mistakes.add(wrong_value(flag, *text, "--native beside it"));
  }
}

template <class E>
E named(const std::optional<std::string>& text) {
  return text ? value_of<E>(*text).value_or(E{}) : E{};
}

/// One entry per dimension. Requires a list of equal entries, or one that fits.
Result<void> stretch(astra::System& system, std::size_t dimensions) {
  Error mistakes;
  for (const auto& operation : kNames<astra::Operation>) {
    auto& list = system.implementation[static_cast<std::size_t>(operation.value)];
    const bool equal = std::all_of(list.begin(), list.end(),
                                   [&](const auto& entry) { return entry == list.front(); });
    if (!equal && list.size() != dimensions) {
      mistakes.add(Error(fmt::format(
          "{}-implementation: found {} entries, expected {} as the machine has dimensions",
          operation.name, list.size(), dimensions)));
    } else if (!list.empty()) {
      list.resize(dimensions, list.front());
    }
  }
  return mistakes.empty() ? Result<void>() : fail(std::move(mistakes));
}

}  // namespace

void NativeFlags::declare(Options& options) {
  options.group("Native");
  options.flag("--native", native_,
               "also with link occupancy in all dimensions and no quirk, side by side");
  options.value("--machine", machine_, "NAME|FILE",
                "native run on this machine instead of the network file's links");
  options.value("--forwarding", forwarding_, "NAME",
                all_names<Forwarding>() + "; default cut_through");
  options.value("--sharing", sharing_, "NAME",
                "of links: " + all_names<astra::Sharing>() + "; default fifo");
}

void NativeFlags::check(Error& mistakes) const {
  check_name<Forwarding>("--forwarding", forwarding_, native_, mistakes);
  check_name<astra::Sharing>("--sharing", sharing_, native_, mistakes);
  if (machine_ && !native_) {
    mistakes.add(wrong_value("--machine", *machine_, "--native beside it"));
  }
}

Result<astra::RunInput> NativeFlags::on_machine(const astra::RunInput& input,
                                                astra::NativeNetworkOptions& network) const {
  Error mistakes;
  const Machine loaded = load_named("--machine", machine_.value_or(""), load_machine, mistakes);
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  auto machine = with_devices(loaded, input.traces.ranks());
  if (!machine) {
    return fail(std::move(machine.error()));
  }
  network.dimensions = astra::message_dimensions(*machine);
  network.reach = SwitchReach::everywhere;
  astra::RunInput moved = input;
  moved.network = astra::astra_dimensions(network.dimensions);
  if (auto fits = stretch(moved.system, moved.network.size()); !fits) {
    return fail(std::move(fits.error()));
  }
  return moved;
}

Result<NativeReport> NativeFlags::run(const astra::RunInput& input,
                                      const astra::RunOptions& options,
                                      const std::string& network_file) const {
  NativeReport report;
  report.backend = name_of(options.backend);
  report.machine = machine_.value_or(network_file);
  report.network = {.dimensions = astra::native_dimensions(input.network),
                    .forwarding = named<Forwarding>(forwarding_),
                    .sharing = named<astra::Sharing>(sharing_)};
  if (auto compat = astra::run(input, options)) {
    report.compat = std::move(*compat);
  } else {
    report.compat_failure = compat.error().to_string();
  }
  astra::RunOptions native = options;
  native.quirks = astra::Quirks::none();
  Result<astra::RunResult> result = fail("not run");
  if (machine_) {
    const auto moved = on_machine(input, report.network);
    if (!moved) {
      return fail(moved.error());
    }
    native.native = report.network;
    result = astra::run(*moved, native);
  } else {
    native.native = report.network;
    result = astra::run(input, native);
  }
  if (!result) {
    return fail(std::move(result.error()));
  }
  report.native = std::move(*result);
  return report;
}

}  // namespace orrery
