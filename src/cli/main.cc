// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#ifdef ORRERY_MIMALLOC
#include <mimalloc.h>
#endif

#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>

#include "cli/command_line.h"

namespace {

constexpr std::string_view kOutOfMemory = "orrery: out of memory\n";

/// Ends the process without asking for more memory.
[[noreturn]] void end_without_memory() {
  (void)!write(STDERR_FILENO, kOutOfMemory.data(), kOutOfMemory.size());
  _exit(1);
}

/// An allocator that has its own `new`, written in C, knows neither exceptions nor the handler of
/// set_new_handler: it aborts, but reports the error first.
void end_where_memory_ends() {
  std::set_new_handler(end_without_memory);
#ifdef ORRERY_MIMALLOC
  mi_register_error(
      [](int error, void*) {
        if (error == ENOMEM) {
          end_without_memory();
        }
      },
      nullptr);
#endif
}

/// Freed pages stay with the process. A search frees and takes the same memory thousands of times,
/// and each page that goes back to the system in between costs a fault and a flush of the
/// translations on all processors.
void keep_freed_pages() {
#if defined(ORRERY_MIMALLOC) && MI_MALLOC_VERSION < 210  // later ones name the option otherwise
  mi_option_disable(mi_option_allow_decommit);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_pages();
  end_where_memory_ends();
  try {
    return orrery::cli::run_command_line(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs(kOutOfMemory.data(), stderr);
  } catch (const std::exception& error) {
    fmt::print(stderr, "orrery: internal error: {}\n", error.what());
  } catch (...) {
    std::fputs("orrery: internal error\n", stderr);
  }
  return 1;
}
