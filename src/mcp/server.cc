// SPDX-License-Identifier: Apache-2.0
#include "mcp/server.h"

#include <algorithm>
#include <array>
#include <exception>
#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "base/split.h"

namespace orrery::mcp {
namespace {

using Json = nlohmann::json;

constexpr const char* kHandshake = "2025-06-18";  // the revision that begins with initialize
constexpr const char* kStateless = "2026-07-28";
constexpr const char* kRevisionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr const char* kServerKey = "io.modelcontextprotocol/serverInfo";
constexpr const char* kInstructions =
    "Times, memory and cost of training and serving large models on accelerators, from a "
    "simulator. "
    "show lists what a name stands for; simulate times one plan, plan searches the best, serve "
    "runs "
    "an inference engine, explain says what bounds a step.";
constexpr int kCacheMilliseconds = 3'600'000;  // the tools are those of the program

constexpr int kMostDepth = 64;

constexpr int kParseError = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kUnknownMethod = -32601;
constexpr int kInvalidParams = -32602;
constexpr int kInternalError = -32603;
constexpr int kUnsupportedRevision = -32022;

/// A Fault is an error of the protocol; it is thrown within one answer only.
struct Fault {
  int code;
  std::string message;
  Json details = nullptr;
};

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string error_text(const Json& id, const Fault& fault) {
  Json error{{"code", fault.code}, {"message", fault.message}};
  if (!fault.details.is_null()) {
    error["data"] = fault.details;
  }
  return dumped({{"jsonrpc", "2.0"}, {"id", id}, {"error", std::move(error)}});
}

/// Returns the JSON schema of a value of a kind.
Json schema_of_kind(const std::string& kind) {
  if (kind == "INT") {
    return {{"type", "integer"}};
  }
  if (kind == "NUMBER") {
    return {{"type", "number"}};
  }
  if (kind == "BOOL") {
    return {{"type", "boolean"}};
  }
  if (kind.size() > 2 && kind.front() == '{' && kind.back() == '}') {
    Json names = Json::array();
    for (const std::string_view name :
         split_at(std::string_view(kind).substr(1, kind.size() - 2), ',')) {
      names.push_back(std::string(name));
    }
    return {{"type", "string"}, {"enum", std::move(names)}};
  }
  return {{"type", Json::array({"string", "number"})}};
}

Json schema_of(const Tool& tool) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const ToolArgument& argument : tool.arguments) {
    Json schema = schema_of_kind(argument.kind);
    if (argument.repeated) {
      schema = {{"type", "array"}, {"items", std::move(schema)}};
    }
    schema["description"] = argument.sentence;
    properties[argument.name] = std::move(schema);
    if (argument.required) {
      required.push_back(argument.name);
    }
  }
  Json schema{{"type", "object"}, {"properties", std::move(properties)}};
  schema["additionalProperties"] = false;
  if (!required.empty()) {
    schema["required"] = std::move(required);
  }
  return schema;
}

/// The texts of one argument. Mistakes: objects, arrays in arrays, null.
void add_argument(const std::string& name, const Json& value, std::vector<GivenArgument>& given,
                  Error& mistakes) {
  if (value.is_string()) {
    given.push_back({name, value.get<std::string>()});
  } else if (value.is_boolean() || value.is_number()) {
    given.push_back({name, value.dump()});
  } else {
    mistakes.add({name, {}, {}, std::string("found ") + value.type_name() + ", expected a value"});
  }
}

Result<std::vector<GivenArgument>> read_arguments(const Json& arguments) {
  std::vector<GivenArgument> given;
  Error mistakes;
  for (const auto& [name, value] : arguments.items()) {
    if (!value.is_array()) {
      add_argument(name, value, given, mistakes);
      continue;
    }
    for (const Json& item : value) {
      add_argument(name, item, given, mistakes);
    }
  }
  return mistakes.empty() ? Result<std::vector<GivenArgument>>(std::move(given))
                          : fail(std::move(mistakes));
}

Json text_content(const std::string& text) {
  return Json::array({{{"type", "text"}, {"text", text}}});
}

/// A Request is what a client asks, and by which revision of the protocol.
struct Request {
  std::string method;
  Json params = Json::object();
  bool stateless = false;
};

/// One answer: the methods of the protocol.
class Answer {
 public:
  Answer(const std::string& version, const std::vector<Tool>& tools, const Request& request)
      : version_(version), tools_(tools), request_(request) {}

  Json result() const {
    const std::string& method = request_.method;
    if (method == "tools/list") {
      return finished(list());
    }
    if (method == "tools/call") {
      return finished(call());
    }
    if (request_.stateless && method == "server/discover") {
      return finished(discover());
    }
    if (method == "server/discover") {
      throw Fault{kInvalidParams, std::string("missing _meta, with ") + kRevisionKey};
    }
    if (!request_.stateless && method == "initialize") {
      return initialize();
    }
    if (!request_.stateless && method == "ping") {
      return Json::object();
    }
    throw Fault{kUnknownMethod, "Method not found: " + method};
  }

 private:
  Json server() const { return {{"name", "orrery"}, {"version", version_}}; }

  static Json capabilities() { return {{"tools", Json::object()}}; }

  Json initialize() const {
    const auto asked = request_.params.find("protocolVersion");
    if (asked == request_.params.end() || !asked->is_string()) {
      throw Fault{kInvalidParams, "protocolVersion: missing, or no text"};
    }
    return {{"protocolVersion", *asked == kStateless ? kStateless : kHandshake},
            {"capabilities", capabilities()},
            {"serverInfo", server()},
            {"instructions", kInstructions}};
  }

  static Json discover() {
    return {{"supportedVersions", Json::array({kStateless})},
            {"capabilities", capabilities()},
            {"instructions", kInstructions},
            {"ttlMs", kCacheMilliseconds},
            {"cacheScope", "public"}};
  }

  Json list() const {
    Json rows = Json::array();
    for (const Tool& tool : tools_) {
      rows.push_back({{"name", tool.name},
                      {"description", tool.sentence},
                      {"inputSchema", schema_of(tool)},
                      {"annotations", {{"readOnlyHint", true}, {"openWorldHint", false}}}});
    }
    Json result{{"tools", std::move(rows)}};
    if (request_.stateless) {
      result["ttlMs"] = kCacheMilliseconds;
      result["cacheScope"] = "public";
    }
    return result;
  }

  Json call() const {
    const auto name = request_.params.find("name");
    if (name == request_.params.end() || !name->is_string()) {
      throw Fault{kInvalidParams, "name: missing, or no text"};
    }
    const auto tool = std::ranges::find(tools_, name->get<std::string>(), &Tool::name);
    if (tool == tools_.end()) {
      throw Fault{kInvalidParams, "Unknown tool: " + name->get<std::string>()};
    }
    const Json arguments = request_.params.value("arguments", Json::object());
    if (!arguments.is_object()) {
      throw Fault{kInvalidParams, "arguments: expected an object"};
    }
    const auto text = read_arguments(arguments).and_then(tool->call);
    if (!text) {
      return {{"content", text_content(text.error().to_string())}, {"isError", true}};
    }
    return {{"content", text_content(*text)},
            {"structuredContent", Json::parse(*text)},
            {"isError", false}};
  }

  Json finished(Json result) const {
    if (request_.stateless) {
      result["resultType"] = "complete";
      result["_meta"] = {{kServerKey, server()}};
    }
    return result;
  }

  const std::string& version_;
  const std::vector<Tool>& tools_;
  const Request& request_;
};

/// Returns whether the request names its own revision; a fault where that is none that is spoken.
bool names_revision(const Json& params) {
  const auto meta = params.find("_meta");
  if (meta == params.end()) {
    return false;
  }
  if (!meta->is_object()) {
    throw Fault{kInvalidParams, "_meta: expected an object"};
  }
  const auto revision = meta->find(kRevisionKey);
  if (revision == meta->end()) {
    return false;
  }
  if (!revision->is_string()) {
    throw Fault{kInvalidParams, std::string(kRevisionKey) + ": expected a text"};
  }
  if (*revision != kStateless) {
    throw Fault{kUnsupportedRevision,
                "Unsupported protocol version",
                {{"supported", Json::array({kStateless})}, {"requested", *revision}}};
  }
  const auto capabilities = meta->find(kCapabilitiesKey);
  if (capabilities == meta->end() || !capabilities->is_object()) {
    throw Fault{kInvalidParams, std::string(kCapabilitiesKey) + ": missing, or no object"};
  }
  return true;
}

Request read_request(const Json& message) {
  Request request{.method = message["method"].get<std::string>()};
  if (const auto params = message.find("params"); params != message.end()) {
    if (!params->is_object()) {
      throw Fault{kInvalidParams, "params: expected an object"};
    }
    request.params = *params;
  }
  request.stateless = names_revision(request.params);
  return request;
}

/// Returns whether the message is a request or notification; `id` is what it says of itself.
bool is_request(const Json& message, Json& id) {
  if (!message.is_object()) {
    return false;
  }
  const auto own = message.find("id");
  const bool named = own != message.end();
  if (named && (own->is_string() || own->is_number_integer())) {
    id = *own;
  }
  return message.value("jsonrpc", Json()) == "2.0" && message.contains("method") &&
         message["method"].is_string() && (!named || !id.is_null());
}

/// Returns whether more than kMostDepth brackets outside of texts are open at a time: reading on
/// would take as many calls one in the other.
bool is_too_deep(std::string_view line) {
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char letter = line[i];
    if (in_text) {
      in_text = letter != '"';
      i += letter == '\\' ? 1 : 0;
    } else if (letter == '"') {
      in_text = true;
    } else if (letter == '[' || letter == '{') {
      if (++depth > kMostDepth) {
        return true;
      }
    } else if (letter == ']' || letter == '}') {
      --depth;
    }
  }
  return false;
}

/// One line without its end. Of a longer one than kMostLine the rest is read over.
bool read_line(std::istream& in, std::string& line, bool& whole) {
  line.clear();
  whole = true;
  bool any = false;
  for (int letter = in.get(); letter != std::istream::traits_type::eof(); letter = in.get()) {
    any = true;
    if (letter == '\n') {
      break;
    }
    whole = whole && line.size() < kMostLine;
    if (whole) {
      line.push_back(static_cast<char>(letter));
    }
  }
  return any;
}

}  // namespace

std::optional<std::string> Server::answer(std::string_view line) const {
  if (is_too_deep(line)) {
    return error_text(nullptr, {kParseError, "Parse error: nested too deep"});
  }
  const Json message = Json::parse(line, nullptr, false);
  if (message.is_discarded()) {
    return error_text(nullptr, {kParseError, "Parse error: the line is no JSON"});
  }
  Json id;
  if (!is_request(message, id)) {
    return error_text(id, {kInvalidRequest, "Invalid Request: expected one JSON-RPC 2.0 request"});
  }
  if (id.is_null()) {
    return std::nullopt;  // a notification
  }
  try {
    const Request request = read_request(message);
    return dumped(
        {{"jsonrpc", "2.0"}, {"id", id}, {"result", Answer(version_, tools_, request).result()}});
  } catch (const Fault& fault) {
    return error_text(id, fault);
  } catch (const std::exception& problem) {
    return error_text(id, {kInternalError, std::string("Internal error: ") + problem.what()});
  }
}

void Server::serve(std::istream& in, std::ostream& out) const {
  std::string line;
  bool whole = true;
  while (out && read_line(in, line, whole)) {
    if (!line.empty() && line.back() == '\r') {
      line.pop_back();
    }
    if (whole && line.empty()) {
      continue;
    }
    const std::optional<std::string> text =
        whole ? answer(line)
              : error_text(nullptr, {kParseError, "Parse error: a line of over " +
                                                      std::to_string(kMostLine) + " bytes"});
    if (text) {
      out << *text << '\n' << std::flush;
    }
  }
}

}  // namespace orrery::mcp
