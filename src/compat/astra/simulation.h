// SPDX-License-Identifier: Apache-2.0
/// The event loop of a run.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "compat/astra/collectives.h"
#include "compat/astra/custom_run.h"
#include "compat/astra/programs.h"

namespace orrery::astra {

/// Runs the simulated ranks on a network. An event is handed to whom it concerns; a message that
/// the network delivers is an event of its own; a collective that has finished completes its nodes.
class Simulation {
 public:
  Simulation(const RunInput& input, const RunOptions& options, const Population& population,
             Communicators& communicators, Planner& planner, Network& network, Traffic* traffic)
      : events_(population.count()),
        network_(network),
        collectives_(population, communicators, planner, network_, events_,
                     collective_options(input, options, population, traffic)),
        customs_(communicators, planner, network_, events_, options.rendezvous, traffic),
        programs_(input, options, population, communicators,
                  {collectives_, customs_, network_, events_, traffic}),
        total_(programs_.nodes().unfinished_nodes()),
        progress_(options.progress) {}

  /// Runs until nothing happens any more, time overflows, or collectives do not match.
  void run() {
    programs_.start();
    do {
      settle();
      settle_network();
      while (!events_.empty() && !failed()) {
        do {
          step(events_.pop());
        } while (!events_.instant_is_over() && !mismatch());
        settle();
        settle_network();
        report();
      }
    } while (!failed() && programs_.nodes().unfinished_nodes() > 0 && collectives_.relieve());
  }

  bool failed() const { return overflow() || collectives_.mismatch(); }
  const std::optional<Collectives::Mismatch>& mismatch() const { return collectives_.mismatch(); }
  bool overflow() const { return events_.now().is_overflow(); }
  const Programs& programs() const { return programs_; }
  std::vector<std::vector<chakra::NodeTime>> take_node_times() {
    return programs_.take_node_times();
  }
  std::uint64_t messages() const {
    return collectives_.messages() + customs_.messages() + programs_.messages();
  }
  std::uint64_t events() const { return events_.popped(); }
  std::vector<RunResult::Link> links() const { return network_.links(); }

 private:
  static constexpr std::uint64_t kProgressEvery = 1 << 20;

  static Collectives::Options collective_options(const RunInput& input, const RunOptions& options,
                                                 const Population& population, Traffic* traffic) {
    const std::int64_t queues = options.queues_per_dimension;
    ChunkQueues::Rules rules;
    rules.per_rank = static_cast<std::uint32_t>(std::ssize(input.network) * queues);
    rules.active = static_cast<std::uint32_t>(
        std::max<std::int64_t>(1, (input.system.active_chunks + queues - 1) / queues));
    rules.smallest_first = input.system.intra_dimension == IntraDimension::smallest_chunk_first;
    rules.last_but_one_at_end = options.quirks[Quirk::smallest_chunk_insertion];
    return {
        rules,
        QueueTurns(population.count(), input.network.size(), static_cast<std::uint32_t>(queues)),
        input.system.bus,
        options.quirks[Quirk::memory_bus],
        options.rendezvous,
        traffic};
  }

  void step(const Event& event) {
    if (event.kind <= Event::Kind::bus) {
      collectives_.handle(event);
    } else if (event.kind <= Event::Kind::custom_done) {
      customs_.handle(event);
    } else if (event.kind >= Event::Kind::hop) {
      hop(event);
    } else {
      programs_.handle(event);
    }
  }
  void hop(const Event& event) {
    if (const Event* const arrival = network_.advance(events_, event)) {
      step(Event(*arrival));
    }
  }
  bool unsettled() const {
    return programs_.unsettled() || collectives_.unsettled() || customs_.any_finished();
  }
  /// Chunks go on, collectives that have finished complete their nodes, nodes start; all again
  /// for what ends at once: collectives without phases.
  void settle() {
    while (unsettled() && events_.instant_is_over() && !failed()) {
      collectives_.settle();
      complete(std::exchange(collectives_.finished(), {}));
      complete(std::exchange(customs_.finished(), {}));
      if (events_.instant_is_over()) {
        programs_.settle();
        collectives_.release();
      }
    }
  }
  /// Settles networks whose messages change each other's rates.
  void settle_network() {
    if (!network_.stateless() && events_.instant_is_over() && !failed()) {
      network_.settle(events_);
    }
  }
  template <class Finished>
  void complete(const std::vector<Finished>& finished) {
    for (const auto& [rank, node] : finished) {
      programs_.complete(rank, node);
    }
  }
  void report() {
    if (progress_ && events_.popped() >= next_report_) {
      next_report_ = events_.popped() + kProgressEvery;
      progress_(1.0 - static_cast<double>(programs_.nodes().unfinished_nodes()) /
                          static_cast<double>(std::max<std::uint64_t>(1, total_)));
    }
  }

  Events events_;
  Network& network_;
  Collectives collectives_;
  CustomRuns customs_;
  Programs programs_;
  std::uint64_t total_;
  std::uint64_t next_report_ = kProgressEvery;
  const std::function<void(double)>& progress_;
};

}  // namespace orrery::astra
