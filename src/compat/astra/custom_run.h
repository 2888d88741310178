// SPDX-License-Identifier: Apache-2.0
/// Custom collectives of all ranks, step by step.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "compat/astra/communicators.h"
#include "compat/astra/custom.h"
#include "compat/astra/event.h"
#include "compat/astra/mailboxes.h"
#include "compat/astra/network.h"
#include "compat/astra/phase.h"
#include "compat/astra/planner.h"
#include "compat/astra/traffic.h"

namespace orrery::astra {

/// Runs the custom collectives that ranks issue; the loop uses it as it uses Collectives. Every
/// rank is simulated, position i is member i of the communicator.
///
/// Messages of one collective match by (source, destination, tag, size) in order. With rendezvous a
/// ready message of 8 KiB goes from the receiver to the sender when the send is due, whether or not
/// the receive is posted: waiting for it would stop programs that send before they receive.
/// Ignored: a shared bus (Bus), for which the endpoint delay stands.
class CustomRuns {
 public:
  struct Finished {
    std::uint32_t rank;
    std::uint32_t node;
  };

  CustomRuns(const Communicators& communicators, const Planner& planner, Network& network,
             Events& events, bool rendezvous, Traffic* traffic)
      : communicators_(communicators),
        planner_(planner),
        network_(network),
        events_(events),
        rendezvous_(rendezvous),
        traffic_(traffic) {}

  /// Node `index` of `rank`, which is `node`, issues its next collective in the communicator of
  /// `membership`. Requires as many members as `collective` has programs.
  void issue(std::uint32_t rank, std::uint32_t index, Communicators::Membership& membership,
             const CustomCollective& collective, const chakra::Node& node);

  /// Handles events of the custom_ kinds. Subject: a collective, step: counted over all its
  /// programs; but of custom_begin and custom_done, which may be a rank's own, it names what is
  /// due.
  void handle(const Event& event);

  bool any_finished() const { return !finished_.empty(); }
  std::vector<Finished>& finished() { return finished_; }
  std::uint64_t messages() const { return messages_; }

 private:
  using Kind = CustomStep::Kind;
  static constexpr Bytes kReadyMessage{8192};

  struct Member {
    std::uint32_t rank = 0;
    std::uint32_t node = 0;
    std::uint32_t first_step = 0;  ///< counted over all programs
    std::uint32_t unfinished = 0;  ///< steps
    bool finished = false;
  };
  struct Step {
    std::uint32_t member = 0;
    std::uint32_t missing = 0;  ///< dependencies
    std::vector<std::uint32_t> next;
  };
  /// Source, destination, tag, bytes.
  using Address = std::tuple<std::int64_t, std::int64_t, std::uint32_t, std::int64_t>;
  struct Mailbox {
    std::uint32_t arrived = 0;           ///< messages without a receive
    std::deque<std::uint32_t> receives;  ///< steps without a message
  };
  struct Due {
    std::uint32_t run = 0;
    std::uint32_t what = 0;  ///< a member that starts, a step that is over
  };
  struct Run {
    const CustomCollective* collective = nullptr;
    Bytes buffer{0};
    Ends ends;
    std::uint32_t communicator = 0;
    std::uint32_t sequence = 0;
    std::vector<Member> members;
    std::vector<Step> steps;
    std::map<Address, Mailbox> mail;
    std::uint32_t unfinished = 0;  ///< members
  };

  std::uint32_t open(const Communicators::Membership& membership,
                     const CustomCollective& collective, const chakra::Node& node);
  const CustomStep& step_of(const Run& run, std::uint32_t step) const {
    const Step& at = run.steps[step];
    return run.collective->programs[at.member].steps[step - run.members[at.member].first_step];
  }
  void begin(std::uint32_t index, std::uint32_t member);
  void start(std::uint32_t index, std::uint32_t step);
  void complete(std::uint32_t index, std::uint32_t step);
  void transmit(std::uint32_t index, std::uint32_t step, bool ready_message);
  void delivered(std::uint32_t index, std::uint32_t step);
  void received(std::uint32_t index, std::uint32_t step);
  void finish(std::uint32_t index, std::uint32_t member);
  Event event_of(Event::Kind kind, const Due& due) { return {due_.put(due), 0, 0, kind}; }
  Address address(const Run& run, std::uint32_t step) const;

  const Communicators& communicators_;
  const Planner& planner_;
  Network& network_;
  Events& events_;
  bool rendezvous_;
  Traffic* traffic_;  ///< null: none
  std::deque<Run> runs_;
  std::vector<std::uint32_t> unused_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> open_;
  std::vector<Finished> finished_;
  Kept<Due> due_;
  std::uint64_t messages_ = 0;
};

}  // namespace orrery::astra
