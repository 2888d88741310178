// SPDX-License-Identifier: Apache-2.0
/// An engine on virtual time behind OpenAI's protocol: the steps and their times are those of
/// serve(), tokens are sent when the clock reaches them.
///
///   real   virtual time = speed x the world's. A token is sent when its step ends.
///   max    time goes by its clients (ClientClock) from one event to the next, as fast as steps can
///          be computed; a request arrives `x-orrery-arrival` seconds after the first client came.
///          Requests without that header run as with speed 1 while no such clients are there, else
///          they arrive when they come.
///
/// A client is its connection, or what `x-orrery-client` names; `x-orrery-last: 1` says that it
/// asks no more. Answers tell `orrery.{arrival, first_token, finish}` in virtual seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "http/transport.h"
#include "serving/http/client_clock.h"
#include "serving/http/openai.h"
#include "serving/http/prometheus.h"
#include "serving/live.h"

namespace orrery::http {

struct EndpointOptions {
  std::vector<std::string> models;  ///< names that it answers to, at least one
  double speed = 1;                 ///< virtual seconds of a second
  bool max = false;
  std::int64_t clients = 1;  ///< with max: that give arrivals
};

class Endpoint : public Handler, private serving::LiveListener {
 public:
  /// `server` outlives it. `created`: seconds since 1970, for answers.
  Endpoint(serving::Server& server, EndpointOptions options, std::function<std::int64_t()> created);
  /// Takes the clock that requests go by; called before the first request. `wall` outlives all of
  /// them.
  void start(Wall& wall) { wall_ = &wall; }

  void asked(HttpRequest request, std::shared_ptr<Answer> answer) override;
  void left(std::uint64_t exchange) override;
  void closed(std::uint64_t connection) override;
  void woken() override { pump(); }

  /// Returns the run of all answered requests.
  serving::Run finish();

 private:
  struct Choice {
    std::size_t request = 0;  ///< Live's number
    std::int64_t wanted = 0;
    std::int64_t tokens = 0;
    Time first{0};
    Time last{0};
    bool ended = false;
    std::vector<std::int64_t> prompt{};  ///< ids of its tokens, while somebody watches
  };
  struct Exchange {
    std::shared_ptr<Answer> answer;
    Head head;
    std::string client;  ///< of the ClientClock; empty: none
    std::vector<Choice> choices;
    Usage usage;
    Time origin{0};  ///< of the times that it is told
    Time arrival{0};
    std::size_t open = 0;  ///< choices that have not ended
    bool stream = false;
    bool begun = false;
    bool tells_usage = false;
  };
  /// An Event is what becomes of a request, or of a block of keys and values (`notice`, for who
  /// watches), at a time that the clock has not reached yet.
  struct Event {
    Time at{0};
    std::uint64_t order = 0;
    std::size_t request = 0;
    std::int64_t tokens = 0;
    bool ends = false;
    serving::Ending how = serving::Ending::answered;
    serving::Served served;
    std::string notice{};
    bool operator>(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  struct Whose {
    std::uint64_t exchange = 0;
    std::size_t choice = 0;
  };

  void emitted(std::size_t request, Time at, std::int64_t tokens) override;
  void ended(std::size_t request, Time at, serving::Ending how,
             const serving::Served& served) override;
  void changed(std::int64_t rank, Time at, std::size_t request,
               const scheduler::KvChange& change) override;

  /// Begins a stream of what becomes of blocks of keys and values.
  void watch(const HttpRequest& request, std::shared_ptr<Answer> answer);
  bool looked_up(const HttpRequest& request, Answer& answer);
  void submit(const HttpRequest& request, std::shared_ptr<Answer> answer, bool chat);
  /// Says what is wrong with an Ask for this model and engine.
  Refusal check(const Ask& ask) const;
  std::int64_t wanted(const Ask& ask, const Prompt& prompt) const;
  /// Sets when it arrives, and whose clock it is.
  Refusal date(const HttpRequest& request, Exchange& exchange);

  Time now() const;
  Time wall_of(Time at) const;
  /// Sends what the clock has reached and runs the engine to it; asks to be woken for the next.
  void pump();
  /// Sends the next event, or takes a step, not after `limit`. False: there is none.
  bool advance(Time limit);
  void deliver(const Event& event);
  void send_tokens(Exchange& exchange, std::size_t choice, std::int64_t tokens,
                   const AnswerTimes* last);
  void end_choice(std::uint64_t number, Exchange& exchange, std::size_t choice, const Event& event);
  void end_exchange(std::uint64_t number, Exchange& exchange);
  static AnswerTimes times(const Exchange& exchange, Time first, Time last);

  EndpointOptions options_;
  std::function<std::int64_t()> created_;
  std::int64_t block_;
  std::int64_t max_model_len_;
  Wall* wall_ = nullptr;
  serving::Live live_;
  ClientClock clients_;
  EngineMetrics metrics_;
  std::map<std::uint64_t, Exchange> exchanges_;
  std::vector<Whose> whose_;  ///< by request
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::map<std::uint64_t, std::shared_ptr<Answer>> watchers_;  ///< by exchange
  std::uint64_t notices_ = 0;
  std::uint64_t order_ = 0;
  Time reached_{0};  ///< by the clock
  // The world's time `since_wall_` is the virtual time `since_`.
  Time since_{0};
  Time since_wall_{0};
};

}  // namespace orrery::http
