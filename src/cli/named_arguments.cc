// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/reader.h"
#include "cli/command.h"
#include "cli/command_line.h"

namespace orrery::cli {

Result<std::vector<std::string>> arguments_of(const std::string& command,
                                              const std::vector<NamedText>& given) {
  const std::vector<DeclaredOption> declared = declared_options(command);
  std::vector<std::string> arguments{command};
  Error mistakes;
  for (const DeclaredOption& option : declared) {
    for (const NamedText& each : given) {
      if (!option.positional || each.name != option.name) {
        continue;
      }
      if (each.text.starts_with('-')) {
        mistakes.add(wrong_value(each.name, each.text, "a word that does not begin with a dash"));
      }
      arguments.push_back(each.text);
    }
  }
  for (const NamedText& each : given) {
    const auto option = std::ranges::find(declared, each.name, &DeclaredOption::name);
    const bool known = option != declared.end();
    if (known && option->positional) {
      continue;
    }
    if (!known || !option->flag) {
      arguments.push_back(flag_of(each.name) + "=" + each.text);
    } else if (each.text == "true") {
      arguments.push_back(flag_of(each.name));
    } else if (each.text != "false") {
      mistakes.add(wrong_value(flag_of(each.name), each.text, "true or false"));
    }
  }
  return or_mistakes(std::move(arguments), std::move(mistakes));
}

}  // namespace orrery::cli
