// SPDX-License-Identifier: Apache-2.0
#include "machine/read_fabric.h"

#include <fmt/format.h>

#include <utility>

#include "base/fields.h"

namespace orrery::machine {

flit::FabricSettings read_flit(Reader& machine, const ConfigNode& node) {
  Reader read(node);
  flit::FabricSettings settings;
  read_fields(read, settings);
  read.require(settings.flit > Bytes(0) && settings.flit <= 1_MiB, "flit", "1 B to 1 MiB");
  read.require(settings.packet > Bytes(0) && settings.packet <= 1_MiB, "packet", "1 B to 1 MiB");
  read.require(settings.cycle >= Time(0) && settings.cycle <= 1_ms, "cycle", "0 ps to 1 ms");
  read.require(settings.vcs >= 1 && settings.vcs <= flit::kMostVcs, "vcs",
               fmt::format("1 to {}", flit::kMostVcs));
  read.require(settings.buffer >= 0 && settings.buffer <= flit::kMostBuffer, "buffer",
               fmt::format("0 to {} flits", flit::kMostBuffer));
  for (const char* name : {"routing_delay", "credit_delay"}) {
    const int delay =
        name == std::string_view("routing_delay") ? settings.routing_delay : settings.credit_delay;
    read.require(delay >= 0 && delay <= flit::kMostDelay, name,
                 fmt::format("0 to {} cycles", flit::kMostDelay));
  }
  return machine.absorb(read.finish(settings));
}

Result<network::PacketOptions> parse_packet(const ConfigNode& node) {
  constexpr std::int64_t kMostCount = 1'000'000;
  Reader read(node);
  network::PacketOptions options;
  read_fields(read, options);
  read.require(options.header > Bytes(0) && options.header <= 1_KiB, "header", "1 B to 1 KiB");
  read.require(options.wire == Bytes(0) || (options.wire > options.header && options.wire <= 1_MiB),
               "wire", "0 B, or more than a header up to 1 MiB");
  for (const auto& [name, count] :
       {std::pair("queue", options.queue), std::pair("window", options.window),
        std::pair("pause", options.pause)}) {
    read.require(count >= 0 && count <= kMostCount, name,
                 fmt::format("0 to {} packets", kMostCount));
  }
  read.require(options.resume >= 0 && options.resume <= options.pause, "resume",
               "0 up to `pause` packets");
  read.require(options.pause == 0 || options.resume > 0, "resume", "1 or more beside `pause`");
  read.require(options.paths >= 0 && options.paths <= network::kMostPaths, "paths",
               fmt::format("0 to {}", network::kMostPaths));
  read.require(options.switch_delay >= Time(0) && options.switch_delay <= 1_ms, "switch_delay",
               "0 ps to 1 ms");
  return read.finish(options);
}

}  // namespace orrery::machine
