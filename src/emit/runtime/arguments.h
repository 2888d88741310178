// SPDX-License-Identifier: Apache-2.0
/// The flags of an emitted program; main.cc says what each does.
#pragma once

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace plan {

struct Arguments {
  int repeat = 1;
  std::string order;
  std::string trace;
  std::string telemetry;
  std::string measure;
  bool checked = true;
  int slow_rank = -1;
  int slow_factor = 1;
  int hanging_rank = -1;
  int hanging_step = 0;
  int limit_s = 60;
  int probes = 0;
  int delayed_source = -1;
  int delayed_target = -1;
  int delay_us = 0;
};

inline bool read(int argc, char** argv, Arguments& arguments) {
  const std::map<std::string, std::string*> texts{{"--order", &arguments.order},
                                                  {"--trace", &arguments.trace},
                                                  {"--telemetry", &arguments.telemetry},
                                                  {"--measure", &arguments.measure}};
  const std::map<std::string, std::vector<int*>> numbers{
      {"--repeat", {&arguments.repeat}},
      {"--limit", {&arguments.limit_s}},
      {"--probe", {&arguments.probes}},
      {"--delay", {&arguments.delayed_source, &arguments.delayed_target, &arguments.delay_us}},
      {"--slow", {&arguments.slow_rank, &arguments.slow_factor}},
      {"--hang", {&arguments.hanging_rank, &arguments.hanging_step}}};
  for (int i = 1; i < argc; ++i) {
    const auto text = texts.find(argv[i]);
    const auto number = numbers.find(argv[i]);
    if (std::string(argv[i]) == "--unchecked") {
      arguments.checked = false;
    } else if (text != texts.end() && i + 1 < argc) {
      *text->second = argv[++i];
    } else if (number != numbers.end() && i + static_cast<int>(number->second.size()) < argc) {
      for (int* value : number->second) {
        *value = std::atoi(argv[++i]);
      }
    } else {
      return false;
    }
  }
  return arguments.repeat >= 1 && arguments.slow_factor >= 1 && arguments.limit_s >= 1;
}

}  // namespace plan
