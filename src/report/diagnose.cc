// SPDX-License-Identifier: Apache-2.0
#include "report/diagnose.h"

#include <fmt/format.h>

#include "base/format.h"
#include "base/printable.h"
#include "diagnose/syndromes.h"
#include "report/json_writer.h"

namespace orrery::report {
namespace {

std::string title(const diagnose::Finding& finding) {
  std::string text = fmt::format("{}: ", name_of(finding.syndrome));
  text += finding.syndrome == diagnose::Syndrome::slow_link
              ? fmt::format("from rank {} to rank {}", finding.ranks[0], finding.ranks[1])
              : diagnose::ranks_text(finding.ranks);
  return finding.sigmas ? fmt::format("{} ({:.0f} sigma)", text, *finding.sigmas) : text;
}

}  // namespace

std::string diagnosis_text(const diagnose::Diagnosis& diagnosis) {
  std::string text =
      fmt::format("{} ranks, {} calls of collectives, {} messages of {} pairs\n", diagnosis.ranks,
                  diagnosis.operations, diagnosis.messages, diagnosis.pairs);
  if (diagnosis.findings.empty()) {
    text += !diagnosis.undecided.empty() ? "\nnobody can be blamed\n"
            : diagnosis.skipped.empty()  ? "\nnothing is wrong with it\n"
                                         : "\nnothing is wrong with what was looked at\n";
  }
  for (const diagnose::Finding& finding : diagnosis.findings) {
    text += fmt::format("\n{}\n  {}\n", title(finding), printable(finding.because));
  }
  for (const std::string& sentence : diagnosis.undecided) {
    text += fmt::format("\nnot diagnosable\n  {}\n", printable(sentence));
  }
  for (const std::string& sentence : diagnosis.skipped) {
    text += fmt::format("\nnot looked at\n  {}\n", printable(sentence));
  }
  return text;
}

std::string diagnosis_json(const diagnose::Diagnosis& diagnosis) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("ranks").value(diagnosis.ranks);
    json.key("operations").value(diagnosis.operations);
    json.key("messages").value(diagnosis.messages);
    json.key("pairs").value(diagnosis.pairs);
    json.key("findings").begin_array();
    for (const diagnose::Finding& finding : diagnosis.findings) {
      json.begin_object();
      json.key("syndrome").value(name_of(finding.syndrome));
      json.key("ranks").begin_array();
      for (const std::int64_t rank : finding.ranks) {
        json.value(rank);
      }
      json.end_array();
      if (!finding.communicator.empty()) {
        json.key("communicator").value(finding.communicator);
      }
      if (finding.sequence) {
        json.key("sequence").value(*finding.sequence);
      }
      json.key("lost_s").value(to_seconds(finding.lost));
      json.key("slowdown").value(finding.slowdown);
      if (finding.sigmas) {
        json.key("sigmas").value(*finding.sigmas);
      }
      json.key("because").value(finding.because);
      json.end_object();
    }
    json.end_array();
    json.key("undecided").begin_array();
    for (const std::string& sentence : diagnosis.undecided) {
      json.value(sentence);
    }
    json.end_array();
    json.key("skipped").begin_array();
    for (const std::string& sentence : diagnosis.skipped) {
      json.value(sentence);
    }
    json.end_array();
    json.end_object();
  });
}

}  // namespace orrery::report
