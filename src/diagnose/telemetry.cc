// SPDX-License-Identifier: Apache-2.0
#include "diagnose/telemetry.h"

#include <fmt/format.h>

#include <set>

#include "base/collect.h"
#include "base/file.h"
#include "base/reader.h"
#include "diagnose/collector.h"
#include "diagnose/flight_recorder.h"

namespace orrery::diagnose {
namespace {

constexpr std::int64_t kMostRanks = std::int64_t{1} << 24;

void set_place(ConfigNode& node, const std::shared_ptr<const std::string>& file, int line) {
  node.source = file;
  node.line = line;
  for (ConfigNode& item : node.items) {
    set_place(item, file, line);
  }
  for (ConfigField& field : node.fields) {
    set_place(field.value, file, line);
  }
}

Result<void> done(Reader& read) {
  return read.finish(0).map([](int) {});
}

Moment read_moment(Reader& read, std::string_view field) {
  const auto moment = parse_moment(read.required<std::string>(field));
  read.require(moment.has_value(), field, "a time in seconds such as 12.5");
  return moment.value_or(Moment{});
}

std::optional<Time> maybe_seconds(Reader& read, std::string_view field) {
  const auto text = read.maybe<std::string>(field);
  if (!text) {
    return std::nullopt;
  }
  const auto seconds = parse_moment(*text);
  read.require(seconds && seconds->nanoseconds >= 0, field, "seconds from 0, such as 0.5");
  return seconds.value_or(Moment{}) - Moment{};
}

std::int64_t read_rank(Reader& read, std::string_view field) {
  const auto rank = read.required<std::int64_t>(field);
  read.require(rank >= 0 && rank < kMostRanks, field, "the number of a rank, from 0");
  return rank;
}

Bytes read_bytes(Reader& read) {
  const auto bytes = read.required<std::int64_t>("bytes");
  read.require(bytes > 0, "bytes", "a number of bytes above 0");
  return Bytes(bytes);
}

Result<void> read_communicator(const ConfigNode& node, Collector& collector) {
  Reader read(node);
  read.ignore("type");
  const auto name = read.required<std::string>("name");
  auto ranks = read.list<std::int64_t>("ranks", true);
  const std::set<std::int64_t> distinct(ranks.begin(), ranks.end());
  read.require(!ranks.empty() && distinct.size() == ranks.size() && *distinct.begin() >= 0 &&
                   *distinct.rbegin() < kMostRanks,
               "ranks", "different ranks, from 0");
  if (read.ok()) {
    read.require(collector.add_communicator(name, std::move(ranks)), "name",
                 "another name: a communicator with other ranks has this one");
  }
  return done(read);
}

Result<void> read_collective(const ConfigNode& node, Collector& collector) {
  Reader read(node);
  read.ignore("type");
  Collector::Call call;
  Operation& made = call.operation;
  const auto communicator = collector.communicator(read.required<std::string>("communicator"));
  read.require(communicator.has_value(), "communicator",
               "the name of a communicator from a line before");
  made.communicator = communicator.value_or(0);
  made.rank = read_rank(read, "rank");
  if (communicator && read.ok()) {
    read.require(collector.has(*communicator, made.rank), "rank", "a rank of the communicator");
  }
  made.sequence = read.required<std::int64_t>("sequence");
  made.kind = read.required<std::string>("operation");
  made.bytes = read_bytes(read);
  made.sent = read.maybe<std::int64_t>("sent");
  call.entered = read_moment(read, "entered_s");
  if (const auto ended = read.maybe<std::string>("ended_s")) {
    call.ended = parse_moment(*ended);
    read.require(call.ended && *call.ended >= call.entered, "ended_s",
                 "a time in seconds that is not before entered_s");
  }
  made.computed = maybe_seconds(read, "computed_s");
  if (read.ok()) {
    read.require(collector.add(std::move(call)), "sequence",
                 "a number that this rank has not used in this communicator");
  }
  return done(read);
}

Result<void> read_message(const ConfigNode& node, Collector& collector) {
  Reader read(node);
  read.ignore("type");
  Message message;
  message.source = read_rank(read, "source");
  message.target = read_rank(read, "target");
  read.require(message.source != message.target, "target", "another rank than source");
  message.bytes = read_bytes(read);
  const Moment begin = read_moment(read, "begin_s");
  const Moment end = read_moment(read, "end_s");
  read.require(end > begin, "end_s", "a time after begin_s");
  message.duration = end - begin;
  message.resolution = maybe_seconds(read, "resolution_s").value_or(Time(0));
  const auto path = read.optional<std::string>("path", "");
  if (read.ok()) {
    collector.add(message, path);
  }
  return done(read);
}

Result<void> read_snapshot(const ConfigNode& node, Collector& collector) {
  Reader read(node);
  read.ignore("type");
  const std::int64_t rank = read_rank(read, "rank");
  collector.snapshot(rank, read_moment(read, "time_s"));
  return done(read);
}

Result<void> read_line(const ConfigNode& node, Collector& collector) {
  const ConfigNode* type = node.find("type");
  const std::string kind = type == nullptr ? "" : type->text;
  if (kind == "communicator") {
    return read_communicator(node, collector);
  }
  if (kind == "collective") {
    return read_collective(node, collector);
  }
  if (kind == "message") {
    return read_message(node, collector);
  }
  if (kind == "snapshot") {
    return read_snapshot(node, collector);
  }
  const std::vector<std::string> kinds = {"communicator", "collective", "message", "snapshot"};
  return fail(Error(Mistake{node.where(), "type", kind,
                            (type == nullptr ? "missing; expected one of " : "one of ") +
                                enumerated(kinds) + did_you_mean(kind, kinds)}));
}

Error read_lines(const std::string& text, const std::string& file, Collector& collector) {
  Error mistakes;
  const auto source = std::make_shared<const std::string>(file);
  int line = 0;
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    mistakes.add({file, {}, {}, "empty: expected telemetry, one JSON object per line"});
  }
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view each = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (each.find_first_not_of(" \t\r") == std::string_view::npos) {
      continue;
    }
    auto node = parse_config(each, file, ConfigSyntax::json);
    if (!node) {
      for (Mistake& mistake : node.error().mistakes) {
        mistake.where = fmt::format("{}:{}", file, line + 1);
      }
      mistakes.add(std::move(node.error()));
      continue;
    }
    set_place(*node, source, line + 1);
    collect(read_line(*node, collector), mistakes);
  }
  return mistakes;
}

Result<void> read_text(const std::string& text, const std::string& file, Collector& collector) {
  if (is_flight_record(text)) {
    return read_flight_record(text, file, collector);
  }
  return or_mistakes(read_lines(text, file, collector));
}

}  // namespace

std::vector<std::int64_t> Telemetry::ranks() const {
  std::set<std::int64_t> all;
  for (const Communicator& communicator : communicators) {
    all.insert(communicator.ranks.begin(), communicator.ranks.end());
  }
  for (const Message& message : messages) {
    all.insert({message.source, message.target});
  }
  return {all.begin(), all.end()};
}

Result<Telemetry> parse_telemetry(const std::string& text, const std::string& file) {
  Collector collector;
  return read_text(text, file, collector).map([&] { return std::move(collector).take(); });
}

Result<Telemetry> load_telemetry(const std::vector<std::string>& files) {
  Collector collector;
  Error mistakes;
  for (const std::string& file : files) {
    collect(read_file(file).and_then(
                [&](const std::string& text) { return read_text(text, file, collector); }),
            mistakes);
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return std::move(collector).take();
}

}  // namespace orrery::diagnose
