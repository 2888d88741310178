// SPDX-License-Identifier: Apache-2.0
#include "serving/http/openai.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace orrery::http {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kBytesPerToken = 4;
constexpr std::int64_t kTokensPerMessage = 4;  // of a chat: who speaks, begin and end
constexpr std::int64_t kMostAnswers = 128;     // of one body: prompts x n

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string words(std::int64_t tokens) {
  std::string text;
  for (std::int64_t i = 0; i < tokens; ++i) {
    text += " token";
  }
  return text;
}

/// Counts tokens and names the content of whole blocks.
class Content {
 public:
  explicit Content(std::int64_t block) : block_(block) {}
  void add_token(std::uint64_t value) {
    hash_ = scheduler::mixed(hash_ ^ value);
    if (++prompt_.tokens % block_ == 0) {
      prompt_.ids.push_back(hash_);
    }
  }
  void add_id(std::int64_t id) {
    add_token(static_cast<std::uint64_t>(id) + (1ULL << 40U));
    prompt_.token_ids.push_back(id);
  }
  void add_text(std::string_view text) {
    for (std::size_t at = 0; at < text.size(); at += kBytesPerToken) {
      std::uint64_t value = 1;
      for (const char letter : text.substr(at, kBytesPerToken)) {
        value = value << 8U | static_cast<unsigned char>(letter);
      }
      add_token(value);
    }
  }
  Prompt take() { return std::move(prompt_); }

 private:
  std::int64_t block_;
  std::uint64_t hash_ = 0;
  Prompt prompt_;
};

/// Reads the fields of a body; the first that is wrong is told.
class BodyReader {
 public:
  BodyReader(const Json& body, std::int64_t block) : body_(body), block_(block) {}

  tl::expected<Ask, Refusal> run(bool chat) {
    ask_.chat = chat;
    read_fields();
    if (chat) {
      read_messages();
    } else {
      read_prompts();
    }
    const auto answers = static_cast<std::int64_t>(ask_.prompts.size()) * ask_.choices;
    if (answers > kMostAnswers) {
      wrong(fmt::format("prompts x n is {}, of at most {}", answers, kMostAnswers));
    }
    if (!wrong_.empty()) {
      return tl::make_unexpected(Refusal{.message = wrong_});
    }
    return std::move(ask_);
  }

 private:
  void wrong(std::string what) { wrong_ = wrong_.empty() ? std::move(what) : wrong_; }

  /// The field, unless it is missing or null.
  const Json* find(const char* name) const {
    const auto at = body_.find(name);
    return at == body_.end() || at->is_null() ? nullptr : &*at;
  }
  std::int64_t whole(const char* name, std::int64_t otherwise, std::int64_t least) {
    const Json* const value = find(name);
    if (value == nullptr) {
      return otherwise;
    }
    constexpr std::int64_t kMost = 100'000'000;
    const auto number = value->is_number_integer() ? value->get<std::int64_t>() : least - 1;
    if (number < least || number > kMost) {
      wrong(fmt::format("{} is no whole number from {} to {}", name, least, kMost));
      return otherwise;
    }
    return number;
  }
  bool yes(const Json& object, const char* name) {
    const auto at = object.find(name);
    if (at == object.end() || at->is_null()) {
      return false;
    }
    if (!at->is_boolean()) {
      wrong(std::string(name) + " is neither true nor false");
      return false;
    }
    return at->get<bool>();
  }

  void read_fields() {
    if (const Json* const model = find("model")) {
      if (model->is_string()) {
        ask_.model = model->get<std::string>();
      } else {
        wrong("model is no text");
      }
    }
    ask_.stream = yes(body_, "stream");
    ask_.choices = whole("n", 1, 1);
    const char* const name =
        ask_.chat && find("max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
    if (find(name) != nullptr) {
      ask_.max_tokens = whole(name, 1, 1);
    }
    if (const Json* const options = find("stream_options")) {
      if (options->is_object()) {
        ask_.usage = yes(*options, "include_usage");
      } else {
        wrong("stream_options is no object");
      }
    }
    if (whole("best_of", ask_.choices, 1) != ask_.choices) {
      wrong("best_of is not n: answers are not ranked");
    }
    const Json* const logprobs = find("logprobs");
    if (logprobs != nullptr && *logprobs != false) {
      wrong("logprobs are not computed: tokens have no meaning here");
    }
    if (yes(body_, "echo")) {
      wrong("echo is not read: the prompt's text is not kept");
    }
  }

  void read_prompts() {
    const Json* const prompt = find("prompt");
    if (prompt == nullptr) {
      return wrong("prompt is missing");
    }
    const bool many = prompt->is_array() && !prompt->empty() && !prompt->front().is_number();
    if (!many) {
      return read_prompt(*prompt);
    }
    for (const Json& one : *prompt) {
      read_prompt(one);
    }
  }

  void read_prompt(const Json& prompt) {
    Content content(block_);
    if (prompt.is_string()) {
      content.add_text(prompt.get_ref<const std::string&>());
      ask_.estimated = true;
    } else if (prompt.is_array()) {
      for (const Json& token : prompt) {
        if (!token.is_number_integer() || token.get<std::int64_t>() < 0) {
          return wrong("a prompt has a token that is no whole number from 0 on");
        }
        content.add_id(token.get<std::int64_t>());
      }
    } else {
      return wrong("a prompt is neither text nor a list of tokens");
    }
    add(content);
  }

  void read_messages() {
    const Json* const messages = find("messages");
    if (messages == nullptr || !messages->is_array()) {
      return wrong("messages is missing, or no list");
    }
    Content content(block_);
    for (const Json& message : *messages) {
      if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) {
        return wrong("a message is no object with a role");
      }
      for (std::int64_t i = 0; i < kTokensPerMessage; ++i) {
        content.add_token(message["role"].get_ref<const std::string&>().size() + 7);
      }
      const auto text = message.find("content");
      if (text != message.end() && !text->is_null()) {
        add_content(*text, content);
      }
    }
    ask_.estimated = true;
    add(content);
  }

  void add_content(const Json& text, Content& content) {
    if (text.is_string()) {
      return content.add_text(text.get_ref<const std::string&>());
    }
    if (!text.is_array()) {
      return wrong("the content of a message is neither text nor a list of parts");
    }
    for (const Json& part : text) {
      if (!part.is_object() || !part.contains("text") || !part["text"].is_string()) {
        return wrong("a part of a message is no text: images and sound are not served");
      }
      content.add_text(part["text"].get_ref<const std::string&>());
    }
  }

  void add(Content& content) {
    ask_.prompts.push_back(content.take());
    if (ask_.prompts.back().tokens == 0) {
      wrong("a prompt is empty");
    }
  }

  const Json& body_;
  std::int64_t block_;
  Ask ask_;
  std::string wrong_;
};

std::string times_of(const Head& head, const AnswerTimes& times) {
  return fmt::format(
      R"("orrery":{{"arrival":{:.12g},"first_token":{:.12g},"finish":{:.12g},"prompt_tokens":"{}"}})",
      to_seconds(times.arrival), to_seconds(times.first_token), to_seconds(times.finish),
      head.estimated ? "estimated, one per 4 bytes" : "counted");
}

std::string usage_of(const Usage& usage) {
  return fmt::format(R"("usage":{{"prompt_tokens":{},"total_tokens":{},"completion_tokens":{},)"
                     R"("prompt_tokens_details":{{"cached_tokens":{}}}}})",
                     usage.prompt, usage.prompt + usage.completion, usage.completion, usage.cached);
}

std::string begin_of(const Head& head, bool chunk) {
  const char* const object = !head.chat ? "text_completion"
                             : chunk    ? "chat.completion.chunk"
                                        : "chat.completion";
  return fmt::format(R"({{"id":{},"object":"{}","created":{},"model":{},)", quoted(head.id), object,
                     head.created, quoted(head.model));
}

}  // namespace

tl::expected<Ask, Refusal> parse_ask(std::string_view body, bool chat, std::int64_t block_tokens) {
  constexpr int kDeepest = 8;
  bool deep = false;
  const Json parsed = Json::parse(
      body.begin(), body.end(),
      [&](int depth, Json::parse_event_t, Json&) {
        deep = deep || depth > kDeepest;
        return depth <= kDeepest;  // what is deeper takes no memory
      },
      false);
  if (deep) {
    return tl::make_unexpected(Refusal{.message = "the body is nested too deeply"});
  }
  if (parsed.is_discarded() || !parsed.is_object()) {
    return tl::make_unexpected(Refusal{.message = "the body is no JSON object"});
  }
  return BodyReader(parsed, block_tokens).run(chat);
}

std::string token_chunk(const Head& head, std::int64_t choice, std::int64_t tokens, bool first,
                        const AnswerTimes* last) {
  std::string text = "data: " + begin_of(head, true);
  text += fmt::format(R"("choices":[{{"index":{},)", choice);
  if (head.chat) {
    text += fmt::format(R"("delta":{{{}"content":"{}"}},)", first ? R"("role":"assistant",)" : "",
                        words(tokens));
  } else {
    text += fmt::format(R"("text":"{}",)", words(tokens));
  }
  text += last != nullptr ? R"("logprobs":null,"finish_reason":"length"}],)" + times_of(head, *last)
                          : R"("logprobs":null,"finish_reason":null}])";
  return text + "}\n\n";
}

std::string usage_chunk(const Head& head, const Usage& usage, const AnswerTimes& times) {
  return "data: " + begin_of(head, true) + R"("choices":[],)" + usage_of(usage) + "," +
         times_of(head, times) + "}\n\n";
}

std::string whole_answer(const Head& head, const std::vector<std::int64_t>& tokens,
                         const Usage& usage, const AnswerTimes& times) {
  std::string choices;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    choices += i == 0 ? "" : ",";
    choices += head.chat ? fmt::format(R"({{"index":{},"message":{{"role":"assistant",)"
                                       R"("content":"{}"}},"logprobs":null,)"
                                       R"("finish_reason":"length"}})",
                                       i, words(tokens[i]))
                         : fmt::format(R"({{"index":{},"text":"{}","logprobs":null,)"
                                       R"("finish_reason":"length"}})",
                                       i, words(tokens[i]));
  }
  return begin_of(head, false) + R"("choices":[)" + choices + "]," + usage_of(usage) + "," +
         times_of(head, times) + "}";
}

std::string kv_event(std::uint64_t number, Time at, std::int64_t rank,
                     const scheduler::KvChange& change, std::span<const std::int64_t> tokens,
                     std::int64_t block) {
  constexpr std::uint64_t kExact = (std::uint64_t{1} << 53) - 1;  // whole numbers of a double
  const std::uint64_t key = change.key & kExact;
  const std::string what =
      change.stored
          ? fmt::format(R"(["BlockStored",[{}],{},[{}],{},null,"GPU"])", key,
                        change.parent == 0 ? "null" : std::to_string(change.parent & kExact),
                        fmt::join(tokens, ","), block)
          : fmt::format(R"(["BlockRemoved",[{}],"GPU"])", key);
  return fmt::format("id: {}\ndata: [{:.12g},[{}],{}]\n\n", number, to_seconds(at), what, rank);
}

std::string error_body(const Refusal& refusal) {
  const char* const type = refusal.status == 404   ? "NotFoundError"
                           : refusal.status == 400 ? "BadRequestError"
                                                   : "ServiceError";
  return fmt::format(R"({{"error":{{"message":{},"type":"{}","param":null,"code":{}}}}})",
                     quoted(refusal.message), type, refusal.status);
}

std::string models_body(const std::vector<std::string>& names, std::int64_t max_model_len) {
  std::string list;
  for (const std::string& name : names) {
    list += list.empty() ? "" : ",";
    list += fmt::format(R"({{"id":{},"object":"model","created":0,"owned_by":"orrery",)"
                        R"("root":{},"parent":null,"max_model_len":{}}})",
                        quoted(name), quoted(name), max_model_len);
  }
  return R"({"object":"list","data":[)" + list + "]}";
}

}  // namespace orrery::http
