// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/split.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kGrace = std::chrono::seconds(2);
constexpr int kPollMs = 50;

class Pipe {
 public:
  Pipe() { open_ = ::pipe2(ends_.data(), O_CLOEXEC) == 0; }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool is_open() const { return open_; }
  int end(std::size_t which) const { return ends_[which]; }
  void close_end(std::size_t which) {
    if (ends_[which] >= 0) {
      ::close(ends_[which]);
      ends_[which] = -1;
    }
  }

 private:
  std::array<int, 2> ends_{-1, -1};
  bool open_ = false;
};

/// Returns the number of the session of a process, from /proc/PID/stat: the fourth word behind the
/// name.
long session_of(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) {
    return -1;
  }
  const std::string rest = text.substr(name_end + 2);
  const auto words = split_at(rest, ' ');
  return words.size() > 3 ? std::strtol(std::string(words[3]).c_str(), nullptr, 10) : -1;
}

/// Mpirun gives ranks process groups of their own, but not sessions.
void signal_session(pid_t leader, int signal) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    const long process = std::strtol(name.c_str(), nullptr, 10);
    if (process > 0 && session_of(entry.path()) == leader) {
      ::kill(static_cast<pid_t>(process), signal);
    }
  }
}

/// Started is what runs in the child between fork and exec: nothing that allocates.
struct Started {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  std::string path;
  std::string folder;
};

[[noreturn]] void become(const Started& started, const Pipe& in, const Pipe& out, const Pipe& err) {
  ::setsid();
  ::dup2(in.end(0), STDIN_FILENO);
  ::dup2(out.end(1), STDOUT_FILENO);
  ::dup2(err.end(1), STDERR_FILENO);
  if (started.folder.empty() || ::chdir(started.folder.c_str()) == 0) {
    ::execve(started.path.c_str(), started.arguments.data(), started.environment.data());
  }
  ::_exit(127);
}

/// Moves bytes between the pipes and the texts until the program has ended or the limit has passed.
class Talk {
 public:
  Talk(Pipe& in, Pipe& out, Pipe& err, const ProcessOptions& options)
      : in_(in), out_(out), err_(err), input_(options.input), most_(options.most_output) {
    for (const int end : {in.end(1), out.end(0), err.end(0)}) {
      ::fcntl(end, F_SETFL, O_NONBLOCK);
    }
  }

  void step(ProcessRun& run) {
    std::array<pollfd, 3> ends{
        {{in_.end(1), POLLOUT, 0}, {out_.end(0), POLLIN, 0}, {err_.end(0), POLLIN, 0}}};
    ::poll(ends.data(), ends.size(), kPollMs);
    if (in_.end(1) >= 0) {
      const ssize_t written = ::write(in_.end(1), input_.data() + sent_, input_.size() - sent_);
      sent_ += written > 0 ? static_cast<std::size_t>(written) : 0;
      if (sent_ == input_.size() || (written < 0 && errno != EAGAIN)) {
        in_.close_end(1);
      }
    }
    drain(out_, run.output);
    drain(err_, run.errors);
  }

 private:
  void drain(Pipe& pipe, std::string& text) const {
    std::array<char, 4096> part{};
    while (pipe.end(0) >= 0) {
      const ssize_t got = ::read(pipe.end(0), part.data(), part.size());
      if (got == 0) {
        pipe.close_end(0);
      }
      if (got <= 0) {
        return;
      }
      text.append(part.data(), std::min(static_cast<std::size_t>(got), most_ - text.size()));
    }
  }

  Pipe& in_;
  Pipe& out_;
  Pipe& err_;
  const std::string& input_;
  std::size_t most_;
  std::size_t sent_ = 0;
};

/// Waits for the child; signals its session at the limit.
void wait_for(pid_t child, Talk& talk, const ProcessOptions& options, ProcessRun& run) {
  const auto begin = Clock::now();
  const auto limit = begin + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(options.limit.value()));
  bool killed = false;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    talk.step(run);
    if (!run.stopped && Clock::now() >= limit) {
      run.stopped = true;
      if (options.on_limit) {
        options.on_limit();
      }
      signal_session(child, SIGTERM);
    }
    if (run.stopped && !killed && Clock::now() >= limit + kGrace) {
      killed = true;
      signal_session(child, SIGKILL);
    }
  }
  signal_session(child, SIGKILL);  // what it has left behind
  talk.step(run);
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.wall = Duration(std::chrono::duration<double>(Clock::now() - begin).count());
}

Started prepare(std::vector<std::string>& command, std::vector<std::string>& environment,
                const ProcessOptions& options) {
  Started started{{}, {}, find_program(command.front()), options.folder};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('=') + 1);
    if (std::ranges::none_of(options.environment,
                             [&](const std::string& own) { return own.starts_with(name); })) {
      environment.emplace_back(text);
    }
  }
  environment.insert(environment.end(), options.environment.begin(), options.environment.end());
  for (std::string& word : command) {
    started.arguments.push_back(word.data());
  }
  for (std::string& word : environment) {
    started.environment.push_back(word.data());
  }
  started.arguments.push_back(nullptr);
  started.environment.push_back(nullptr);
  return started;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::error_code ignored;
  std::string name = (std::filesystem::temp_directory_path(ignored) / "orrery_XXXXXX").string();
  made_ = mkdtemp(name.data()) != nullptr;
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return ::access(name.c_str(), X_OK) == 0 ? name : "";
  }
  const char* const path = std::getenv("PATH");
  const std::string folders = path == nullptr ? "/usr/bin:/bin" : path;
  for (const std::string_view folder : split_at(folders, ':')) {
    std::string file = std::string(folder) + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return {};
}

Result<ProcessRun> run_process(const std::vector<std::string>& command,
                               const ProcessOptions& options) {
  std::vector<std::string> words = command;
  std::vector<std::string> environment;
  const Started started = prepare(words, environment, options);
  if (started.path.empty()) {
    return fail(Error(Mistake{{}, "command", command.front(), "a program that can be run"}));
  }
  Pipe in;
  Pipe out;
  Pipe err;
  ::signal(SIGPIPE, SIG_IGN);  // a program may end before it has read all
  const pid_t child = in.is_open() && out.is_open() && err.is_open() ? ::fork() : -1;
  if (child < 0) {
    return fail(command.front() + " cannot be started: " + std::strerror(errno));
  }
  if (child == 0) {
    become(started, in, out, err);
  }
  in.close_end(0);
  out.close_end(1);
  err.close_end(1);
  ProcessRun run;
  Talk talk(in, out, err, options);
  wait_for(child, talk, options, run);
  return run;
}

}  // namespace orrery
