// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/chunk_queues.h"

namespace orrery::astra {

ChunkQueues::ChunkQueues(std::size_t ranks, const Rules& rules)
    : rules_(rules), queues_(ranks * rules.per_rank) {}

void ChunkQueues::link(Blocks<Stream>& streams, StreamQueue& queue, std::uint32_t stream,
                       std::uint32_t after) {
  const std::uint32_t before = after == kNone ? queue.head : streams[after].next;
  streams[stream].previous = after;
  streams[stream].next = before;
  (after == kNone ? queue.head : streams[after].next) = stream;
  (before == kNone ? queue.tail : streams[before].previous) = stream;
}

std::uint32_t ChunkQueues::take(Blocks<Stream>& streams, std::size_t index) {
  StreamQueue& queue = queues_[index];
  if (queue.running >= rules_.active || queue.head == kNone) {
    return kNone;
  }
  return unlink_head(streams, queue);
}

std::vector<std::uint32_t> ChunkQueues::take_from_all(Blocks<Stream>& streams) {
  std::vector<std::uint32_t> taken;
  for (StreamQueue& queue : queues_) {
    if (queue.head != kNone) {
      taken.push_back(unlink_head(streams, queue));
    }
  }
  return taken;
}

std::uint32_t ChunkQueues::unlink_head(Blocks<Stream>& streams, StreamQueue& queue) {
  const std::uint32_t stream = queue.head;
  queue.head = streams[stream].next;
  (queue.head == kNone ? queue.tail : streams[queue.head].previous) = kNone;
  streams[stream].next = kNone;
  ++queue.running;
  return stream;
}

}  // namespace orrery::astra
