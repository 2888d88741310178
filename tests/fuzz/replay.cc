// SPDX-License-Identifier: Apache-2.0
/// Runs a fuzz target of the list on the files of some folders and on inputs mutated from them,
/// drawn from a seed: the laws of all targets in a build without libFuzzer's instrumentation.
///
///   fuzz_replay TARGET SEED RUNS DICTIONARY FOLDER...   (seed 0: something new each time)
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "targets.inc"

namespace orrery::fuzz {
namespace {

constexpr std::size_t kLongestInput = 8192;
constexpr unsigned kSecondsOfInput = 10;
constexpr rlim_t kMemory = rlim_t{4} << 30;

/// The input that runs, and the file that keeps it if a signal ends it.
std::string_view running;
std::string kept;

void put(int file, std::string_view text) {
  if (::write(file, text.data(), text.size()) < 0) {
    return;  // nothing is left to be done about it
  }
}

/// Keeps the input that ends the process, and ends. Allocates nothing: a signal may come while
/// memory is allocated.
void keep_input(int /*signal*/) {
  put(::open(kept.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), running);
  put(STDERR_FILENO, "fuzz_replay: a signal ended the run of the input kept in ./");
  put(STDERR_FILENO, kept);
  put(STDERR_FILENO, "\n");
  std::_Exit(1);
}

std::string read_input(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  text.resize(std::min(text.size(), kLongestInput));
  return text;
}

/// Returns the files under the folders, in the order of their paths.
std::vector<std::string> inputs_of(const std::vector<std::string>& folders) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& folder : folders) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) {
        paths.push_back(entry.path());
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs{""};
  std::transform(paths.begin(), paths.end(), std::back_inserter(inputs), read_input);
  return inputs;
}

/// Returns the words of libFuzzer's dictionary: a quoted word a line, bytes as \xNN.
std::vector<std::string> words_of(const std::filesystem::path& path) {
  std::vector<std::string> words;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.size() < 2 || line.front() != '"') {
      continue;
    }
    std::string word;
    for (std::size_t i = 1; i + 1 < line.size(); ++i) {
      if (line[i] != '\\') {
        word += line[i];
      } else if (line[i + 1] == 'x') {
        word += static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16));
        i += 3;
      } else {
        word += line[++i];
      }
    }
    words.push_back(word);
  }
  return words;
}

/// Draws inputs: one of the files with one to four edits.
class Mutator {
 public:
  Mutator(std::uint64_t seed, std::vector<std::string> words,
          const std::vector<std::string>& inputs)
      : random_(seed), words_(std::move(words)), inputs_(inputs) {}

  std::string next() {
    std::string text = inputs_[below(inputs_.size())];
    for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
      edit(text);
    }
    text.resize(std::min(text.size(), kLongestInput));
    return text;
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }

  void edit(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = below(std::min<std::size_t>(text.size() - at, 32) + 1);
    switch (below(6)) {
      case 0:  // a byte
        text.replace(at, at < text.size() ? 1 : 0, 1, static_cast<char>(below(256)));
        break;
      case 1:  // a word of the dictionary, beside or instead of some bytes
        text.replace(at, below(2) * length, words_[below(words_.size())]);
        break;
      case 2:  // less
        text.erase(at, length);
        break;
      case 3:  // the same twice
        text.insert(at, text.substr(at, length));
        break;
      case 4:  // a piece of another input
        text.insert(at, inputs_[below(inputs_.size())].substr(0, 1 + below(256)));
        break;
      default:  // its beginning
        text.resize(at);
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> words_;
  const std::vector<std::string>& inputs_;
};

struct Target {
  const char* name;
  int (*run)(const std::uint8_t*, std::size_t);
};
constexpr std::array kTargets{ORRERY_FUZZ_TARGETS};

void run(const Target& target, const std::string& input) {
  running = input;
  alarm(kSecondsOfInput);
  target.run(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  alarm(0);
}

int replay(const std::vector<std::string>& words) {
  const auto target = std::find_if(kTargets.begin(), kTargets.end(),
                                   [&](const Target& one) { return one.name == words[0]; });
  if (target == kTargets.end()) {
    std::fprintf(stderr, "fuzz_replay: found no target '%s'\n", words[0].c_str());
    return 2;
  }
  kept = std::string("fuzz-input-") + target->name;
  const rlimit memory{kMemory, kMemory};
  setrlimit(RLIMIT_AS, &memory);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) {
    std::signal(signal, keep_input);
  }

  const std::vector<std::string> inputs = inputs_of({words.begin() + 4, words.end()});
  for (const std::string& input : inputs) {
    run(*target, input);
  }
  const std::uint64_t seed = std::stoull(words[1]);
  Mutator mutator(seed == 0 ? std::random_device{}() : seed, words_of(words[3]), inputs);
  for (long left = std::stol(words[2]); left > 0; --left) {
    run(*target, mutator.next());
  }
  return 0;
}

}  // namespace
}  // namespace orrery::fuzz

int main(int count, char** words) {
  if (count < 5) {
    std::fputs("usage: fuzz_replay TARGET SEED RUNS DICTIONARY FOLDER...\n", stderr);
    return 2;
  }
  return orrery::fuzz::replay({words + 1, words + count});
}
