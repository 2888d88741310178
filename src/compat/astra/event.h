// SPDX-License-Identifier: Apache-2.0
/// What happens in a run: plain data in one queue.
#pragma once

#include <cstdint>

#include "engine/bucket_queue.h"

namespace orrery::astra {

struct Event {
  enum class Kind : std::uint8_t {
    // of collectives; subject: a stream
    begin,      ///< the first messages of a phase are ready to go
    arrive,     ///< message `step` of phase `phase` is there
    ready,      ///< rendezvous: the receiver of message `step` is ready
    processed,  ///< a received message has been copied or reduced
    // of custom collectives; subject: a collective
    custom_begin,  ///< member `step` starts
    custom_ready,  ///< rendezvous: the receiver of step `step` is ready
    custom_sent,   ///< the message of step `step` is there
    custom_done,   ///< step `step` is over
    // of programs; subject: a rank (representative)
    node_done,  ///< node `step`
    // of messages between two ranks; subject: a post
    sent,        ///< is there
    post_ready,  ///< rendezvous: its receiver is ready
    // of the network; subject and step: its own
    hop
  };
  std::uint32_t subject = 0;
  std::uint32_t step = 0;
  std::uint16_t phase = 0;
  Kind kind = Kind::begin;
};

using Events = engine::BucketQueue<Event>;

}  // namespace orrery::astra
