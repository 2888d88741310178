// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/message_ends.h"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::chakra {

MessageEnds::MessageEnds(const TraceSet& traces) : traces_(traces) {
  for (const Program& program : traces.programs) {
    for (const Node& node : program.nodes) {
      if (is_message(node)) {
        channels_.try_emplace({node.tag, node.size}, 0);
      }
    }
  }
  std::uint32_t number = 0;
  for (auto& [tag_and_size, channel] : channels_) {
    channel = number++;
  }
  for (const Program& program : traces.programs) {
    ends_.push_back(ends_of(program));
    std::vector<std::int64_t>& peers = peers_.emplace_back();
    for (const auto& [end, uses] : ends_.back()) {
      if (peers.empty() || peers.back() != end.peer) {
        peers.push_back(end.peer);
      }
    }
  }
}

std::uint32_t MessageEnds::channel(const Node& message) const {
  return channels_.at({message.tag, message.size});
}

MessageEnds::Ends MessageEnds::ends_of(const Program& program) const {
  Ends ends;
  for (std::uint32_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    if (is_message(node)) {
      Uses& uses = ends[{node.peer, node.type == NodeType::comm_send, channel(node)}];
      uses.first = uses.count++ == 0 ? i : uses.first;
    }
  }
  return ends;
}

/// Two ranks at a distance are looked at once for every two programs that meet there.
void MessageEnds::check(Mistakes& mistakes) const {
  std::set<std::tuple<std::uint32_t, std::int64_t, std::int64_t>> seen;
  for (std::int64_t rank = 0; rank < traces_.ranks(); ++rank) {
    const std::uint32_t program = traces_.program_of[static_cast<std::size_t>(rank)];
    for (const std::int64_t peer : peers_[program]) {
      const std::int64_t other = rank + peer;
      const bool exists = other >= 0 && other < traces_.ranks();
      const std::int64_t theirs =
          exists ? traces_.program_of[static_cast<std::size_t>(other)] : std::int64_t{-1};
      if (!seen.insert({program, peer, theirs}).second) {
        continue;
      }
      const Ends& ends = ends_[program];
      for (auto end = ends.lower_bound({peer, false, 0});
           end != ends.end() && end->first.peer == peer; ++end) {
        check_end(rank, end->first, end->second, mistakes);
      }
    }
  }
}

void MessageEnds::check_end(std::int64_t rank, const End& end, const Uses& uses,
                            Mistakes& mistakes) const {
  const Program& program = traces_.program(rank);
  const Node& node = program.nodes[uses.first];
  const std::int64_t other = rank + end.peer;
  const std::string label = node_label(node.id, program.name_of(node));
  mistakes.name(fmt::format("rank {}", rank));
  if (end.peer == 0) {
    mistakes.add(label, "", "a message to its own rank; expected another");
    return;
  }
  if (other < 0 || other >= traces_.ranks()) {
    mistakes.add(label, fmt::format("rank {}", other),
                 fmt::format("a rank below {}", traces_.ranks()));
    return;
  }
  const Ends& theirs = ends_[traces_.program_of[static_cast<std::size_t>(other)]];
  const auto found = theirs.find({-end.peer, !end.sends, end.channel});
  const std::size_t count = found == theirs.end() ? 0 : found->second.count;
  if (count != uses.count) {
    const std::string_view own = end.sends ? "sends to" : "receives from";
    const std::string_view back = end.sends ? "receives" : "sends";
    mistakes.add(label, "",
                 fmt::format("{} messages of tag {} and {} bytes that it {} rank {}, which {} {}",
                             uses.count, node.tag, node.size.value(), own, other, back, count));
  }
}

}  // namespace orrery::chakra
