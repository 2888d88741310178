// SPDX-License-Identifier: Apache-2.0
#include "serving/http/endpoint.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/reader.h"

namespace orrery::http {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kEvents = "text/event-stream; charset=utf-8";

void refuse(Answer& answer, const Refusal& refusal) {
  answer.send(refusal.status, kJson, error_body(refusal));
}

}  // namespace

Endpoint::Endpoint(serving::Server& server, EndpointOptions options,
                   std::function<std::int64_t()> created)
    : options_(std::move(options)),
      created_(std::move(created)),
      block_(server.engine().block_size),
      max_model_len_(server.engine().max_model_len),
      live_(server, *this),
      clients_(options_.clients) {}

void Endpoint::asked(HttpRequest request, std::shared_ptr<Answer> answer) {
  const bool chat = request.path == "/v1/chat/completions";
  const bool asks = chat || request.path == "/v1/completions";
  if (request.path == "/kv_events") {
    watch(request, std::move(answer));
  } else if (!asks) {
    if (!looked_up(request, *answer)) {
      refuse(*answer, {404, "there is no " + request.path});
    }
  } else if (request.method != "POST") {
    refuse(*answer, {405, request.path + " takes POST"});
  } else {
    submit(request, std::move(answer), chat);
  }
  pump();
}

void Endpoint::watch(const HttpRequest& request, std::shared_ptr<Answer> answer) {
  if (request.method != "GET") {
    return refuse(*answer, {405, request.path + " takes GET"});
  }
  answer->begin(kEvents);
  watchers_.emplace(request.exchange, std::move(answer));
}

bool Endpoint::looked_up(const HttpRequest& request, Answer& answer) {
  const bool models = request.path == "/v1/models";
  const bool metrics = request.path == "/metrics";
  const bool version = request.path == "/version";
  const bool health = request.path == "/health" || request.path == "/ping";
  if (!models && !metrics && !version && !health) {
    return false;
  }
  if (request.method != "GET" && !(health && request.method == "POST")) {
    refuse(answer, {405, request.path + " takes GET"});
  } else if (models) {
    answer.send(200, kJson, models_body(options_.models, max_model_len_));
  } else if (metrics) {
    answer.send(200, "text/plain; version=0.0.4; charset=utf-8",
                metrics_.text(options_.models.front(), live_));
  } else if (version) {
    answer.send(200, kJson,
                fmt::format(R"({{"version":"orrery, as {}"}})", live_.run().engine.name));
  } else {
    answer.send(200, "text/plain", "");
  }
  return true;
}

std::int64_t Endpoint::wanted(const Ask& ask, const Prompt& prompt) const {
  constexpr std::int64_t kCompletions = 16;  // OpenAI's default
  const std::int64_t room = max_model_len_ - prompt.tokens;
  return ask.max_tokens.value_or(ask.chat ? room : std::min(room, kCompletions));
}

Refusal Endpoint::check(const Ask& ask) const {
  if (!ask.model.empty() && std::ranges::count(options_.models, ask.model) == 0) {
    return {404, fmt::format("the model `{}` does not exist; there is `{}`", ask.model,
                             options_.models.front())};
  }
  for (const Prompt& prompt : ask.prompts) {
    const std::int64_t answer = wanted(ask, prompt);
    if (answer < 1 || prompt.tokens + answer > max_model_len_) {
      return {400, fmt::format("this model's maximum context length is {} tokens; the request has "
                               "{} of its prompt and asks for {}",
                               max_model_len_, prompt.tokens, std::max<std::int64_t>(answer, 1))};
    }
    if (!live_.takes({.input = prompt.tokens, .output = answer, .ids = {}})) {
      return {400, fmt::format("{} tokens are more than the KV cache of the engine holds",
                               prompt.tokens + answer)};
    }
  }
  return {200, {}};
}

Refusal Endpoint::date(const HttpRequest& request, Exchange& exchange) {
  exchange.arrival = now();
  const std::string_view text = request.header("x-orrery-arrival");
  if (!options_.max || text.empty()) {
    return {200, {}};
  }
  const auto seconds = parse_number(text);
  constexpr double kMost = 57.0 * 24 * 3600;  // as of traces
  if (!seconds || *seconds < 0 || *seconds > kMost) {
    return {400, "x-orrery-arrival is no number of seconds from 0 to 57 days"};
  }
  const std::string_view name = request.header("x-orrery-client");
  exchange.client = name.empty() ? "connection " + std::to_string(request.connection)
                                 : "client " + std::string(name);
  reached_ = std::max(reached_, exchange.arrival);
  clients_.asked(exchange.client, reached_);
  if (request.header("x-orrery-last") == "1") {
    clients_.closed(exchange.client);
  }
  exchange.origin = clients_.begin();
  exchange.arrival = std::max(reached_, exchange.origin + from_seconds(*seconds));
  return {200, {}};
}

void Endpoint::submit(const HttpRequest& request, std::shared_ptr<Answer> answer, bool chat) {
  auto ask = parse_ask(request.body, chat, block_);
  const Refusal wrong = ask ? check(*ask) : ask.error();
  if (wrong.status != 200) {
    return refuse(*answer, wrong);
  }
  Exchange exchange{
      .answer = std::move(answer), .head = {}, .client = {}, .choices = {}, .usage = {}};
  if (const Refusal late = date(request, exchange); late.status != 200) {
    return refuse(*exchange.answer, late);
  }
  exchange.stream = ask->stream;
  exchange.tells_usage = ask->usage;
  exchange.head = {.id = fmt::format("{}-{}", chat ? "chatcmpl" : "cmpl", request.exchange),
                   .model = ask->model.empty() ? options_.models.front() : ask->model,
                   .created = created_(),
                   .chat = chat,
                   .estimated = ask->estimated};
  for (const Prompt& prompt : ask->prompts) {
    exchange.usage.prompt += prompt.tokens;
    for (std::int64_t i = 0; i < ask->choices; ++i) {
      const std::int64_t tokens = wanted(*ask, prompt);
      const auto whole = static_cast<std::int64_t>(prompt.ids.size()) * block_;
      const std::size_t number = live_.send({.arrival = exchange.arrival,
                                             .input = prompt.tokens,
                                             .output = tokens,
                                             .ids = prompt.ids,
                                             .id_tokens = block_,
                                             .shared = whole});
      whose_.resize(number + 1);
      whose_[number] = {request.exchange, exchange.choices.size()};
      exchange.choices.push_back(
          {.request = number,
           .wanted = tokens,
           .prompt = watchers_.empty() ? std::vector<std::int64_t>() : prompt.token_ids});
    }
  }
  exchange.open = exchange.choices.size();
  exchanges_.emplace(request.exchange, std::move(exchange));
}

void Endpoint::left(std::uint64_t number) {
  watchers_.erase(number);
  const auto found = exchanges_.find(number);
  if (found == exchanges_.end()) {
    return;
  }
  const Exchange exchange = std::move(found->second);
  exchanges_.erase(found);
  const Time at = now();
  for (const Choice& choice : exchange.choices) {
    if (!choice.ended) {
      live_.abort(choice.request, at);
    }
  }
  clients_.answered(exchange.client);
  pump();
}

void Endpoint::closed(std::uint64_t connection) {
  clients_.closed("connection " + std::to_string(connection));
  pump();
}

Time Endpoint::now() const {
  if (clients_.drives()) {
    return reached_;
  }
  const double passed = to_seconds(wall_->now() - since_wall_);
  return std::max(reached_, since_ + from_seconds(passed * options_.speed));
}

Time Endpoint::wall_of(Time at) const {
  constexpr Time kRounding = 1_ns;  // so that the clock has reached it then
  return since_wall_ + from_seconds(to_seconds(at - since_) / options_.speed) + kRounding;
}

void Endpoint::pump() {
  constexpr Time kSlice = 5_ms;  // then clients are looked after
  constexpr int kStepsBetweenLooks = 64;
  const Time begun = wall_->now();
  for (int i = 1;; ++i) {
    const bool drives = clients_.drives();
    if (drives && !clients_.may_go_on()) {
      since_ = reached_;
      since_wall_ = wall_->now();
      return;  // a client will ask, or close
    }
    if (!advance(drives ? Time::max() : now())) {
      break;
    }
    if (drives) {  // from here on the world's clock goes on, if it does
      since_ = reached_;
      since_wall_ = wall_->now();
    }
    if (i % kStepsBetweenLooks == 0 && wall_->now() - begun > kSlice) {
      wall_->wake_at(wall_->now());
      return;
    }
  }
  Time next = live_.next_event();
  if (!events_.empty()) {
    next = std::min(next, events_.top().at);
  }
  if (!next.is_overflow() && !clients_.drives()) {
    wall_->wake_at(wall_of(next));
  }
}

bool Endpoint::advance(Time limit) {
  const Time step = live_.next_event();
  if (!events_.empty() && events_.top().at <= step) {
    if (events_.top().at > limit) {
      return false;
    }
    const Event event = events_.top();
    events_.pop();
    reached_ = std::max(reached_, event.at);
    deliver(event);
    return true;
  }
  if (step.is_overflow() || step > limit) {
    return false;
  }
  reached_ = std::max(reached_, step);
  live_.run_until(step + Time(1));
  return true;
}

void Endpoint::emitted(std::size_t request, Time at, std::int64_t tokens) {
  events_.push({.at = at, .order = order_++, .request = request, .tokens = tokens, .served = {}});
}

void Endpoint::ended(std::size_t request, Time at, serving::Ending how,
                     const serving::Served& served) {
  if (how == serving::Ending::aborted) {
    metrics_.on_abort();
    return;
  }
  events_.push({.at = at,
                .order = order_++,
                .request = request,
                .ends = true,
                .how = how,
                .served = served});
}

AnswerTimes Endpoint::times(const Exchange& exchange, Time first, Time last) {
  return {exchange.arrival - exchange.origin, first - exchange.origin, last - exchange.origin};
}

void Endpoint::deliver(const Event& event) {
  if (!event.notice.empty()) {
    for (const auto& [exchange, watcher] : watchers_) {
      watcher->piece(event.notice);
    }
    return;
  }
  const Whose whose = whose_[event.request];
  const auto found = exchanges_.find(whose.exchange);
  if (found == exchanges_.end()) {
    return;  // its client has left
  }
  Exchange& exchange = found->second;
  if (event.ends) {
    end_choice(whose.exchange, exchange, whose.choice, event);
    return;
  }
  Choice& choice = exchange.choices[whose.choice];
  const std::int64_t more = event.tokens - choice.tokens;
  const bool first = choice.tokens == 0;
  if (first) {
    choice.first = event.at;
    metrics_.on_first(event.at - exchange.arrival);
  }
  metrics_.on_tokens(more, first ? Time(0) : event.at - choice.last);
  choice.last = event.at;
  if (event.tokens < choice.wanted) {  // the last ones go with the reason of their end
    send_tokens(exchange, whose.choice, more, nullptr);
    choice.tokens = event.tokens;
  }
}

void Endpoint::send_tokens(Exchange& exchange, std::size_t choice, std::int64_t tokens,
                           const AnswerTimes* last) {
  if (!exchange.stream) {
    return;
  }
  if (!std::exchange(exchange.begun, true)) {
    exchange.answer->begin(kEvents);
  }
  exchange.answer->piece(token_chunk(exchange.head, static_cast<std::int64_t>(choice), tokens,
                                     exchange.choices[choice].tokens == 0, last));
}

void Endpoint::end_choice(std::uint64_t number, Exchange& exchange, std::size_t index,
                          const Event& event) {
  Choice& choice = exchange.choices[index];
  choice.ended = true;
  if (event.how == serving::Ending::answered) {
    const AnswerTimes told = times(exchange, choice.first, event.at);
    send_tokens(exchange, index, choice.wanted - choice.tokens, &told);
    choice.tokens = choice.wanted;
    exchange.usage.completion += choice.tokens;
    exchange.usage.cached += event.served.cached;
    metrics_.on_end(event.served);
  } else {
    metrics_.on_refused();
    const Refusal refusal = event.how == serving::Ending::rejected
                                ? Refusal{429, "the router's limit rejects the request"}
                                : Refusal{400, "the request is longer than the engine takes"};
    if (!exchange.begun) {
      refuse(*exchange.answer, refusal);
    } else {
      exchange.answer->piece("data: " + error_body(refusal) + "\n\n");
    }
    if (!exchange.stream) {
      for (const Choice& other : exchange.choices) {
        if (!other.ended) {
          live_.abort(other.request, event.at);
        }
      }
      exchange.open = 1;
    }
  }
  if (--exchange.open == 0) {
    end_exchange(number, exchange);
  }
}

void Endpoint::end_exchange(std::uint64_t number, Exchange& exchange) {
  Time first = Time::max();
  Time last{0};
  std::vector<std::int64_t> tokens;
  for (const Choice& choice : exchange.choices) {
    first = std::min(first, choice.first);
    last = std::max(last, choice.last);
    tokens.push_back(choice.tokens);
  }
  const AnswerTimes told = times(exchange, first, last);
  if (!exchange.stream) {
    exchange.answer->send(200, kJson, whole_answer(exchange.head, tokens, exchange.usage, told));
  } else {
    if (exchange.tells_usage) {
      exchange.answer->piece(usage_chunk(exchange.head, exchange.usage, told));
    }
    exchange.answer->piece(kDone);
    exchange.answer->end();
  }
  const std::string client = exchange.client;
  exchanges_.erase(number);
  clients_.answered(client);
}

serving::Run Endpoint::finish() {
  for (const auto& [exchange, watcher] : watchers_) {
    watcher->end();
  }
  watchers_.clear();
  return live_.finish(now());
}

}  // namespace orrery::http
