// SPDX-License-Identifier: Apache-2.0
#include "report/diagnose.h"

#include <fmt/format.h>

#include "base/format.h"
#include "base/printable.h"
#include "diagnose/syndromes.h"

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

void declare(const diagnose::Diagnosis& diagnosis, Fields& fields) {
  fields.field("ranks", "of communicators and messages", diagnosis.ranks);
  fields.field("operations", "calls of collectives that were read", diagnosis.operations);
  fields.field("messages", "messages that were read", diagnosis.messages);
  fields.field("pairs", "pairs of ranks with messages", diagnosis.pairs);
  fields.list(
      "findings", {"what is wrong and whose fault it is", "a finding"}, diagnosis.findings,
      [&](const diagnose::Finding& finding) {
        fields.field("syndrome", "a name of docs/diagnose.md, such as missing_rank",
                     name_of(finding.syndrome));
        fields.values("ranks", {"at fault; of a link its source and target", "a rank"},
                      finding.ranks);
        fields.when(!finding.communicator.empty(), "communicator",
                    "in which it shows; absent for messages", finding.communicator);
        fields.perhaps("sequence", "of a hang or mismatch: the communicator's collective",
                       finding.sequence);
        fields.field("lost_s", "hang: seconds by now; straggler: seconds that others waited",
                     finding.lost);
        fields.field("slowdown", "of slow messages: times as long as others", finding.slowdown);
        fields.perhaps("sigmas", "how far beyond the noise; absent where there is none",
                       finding.sigmas);
        fields.field("because", "one sentence", finding.because);
      });
  fields.values("undecided",
                {"what is wrong without it being clear whose fault it is, and why", "a sentence"},
                diagnosis.undecided);
  fields.values("skipped", {"a sentence for what was in the files and not looked at", "a sentence"},
                diagnosis.skipped);
}

}  // namespace orrery::report
