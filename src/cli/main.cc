// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "cli/command_line.h"

int main(int argc, char** argv) {
  try {
    return orrery::cli::run_command_line(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("orrery: out of memory\n", stderr);
  } catch (const std::exception& error) {
    fmt::print(stderr, "orrery: internal error: {}\n", error.what());
  } catch (...) {
    std::fputs("orrery: internal error\n", stderr);
  }
  return 1;
}
