// SPDX-License-Identifier: Apache-2.0
#include <cctype>

#include "workload/interop/interop.h"

namespace orrery::interop {
namespace {

class Splitter {
 public:
  Splitter(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Result<std::vector<std::string>> run() {
    while (at_ < text_.size()) {
      step(text_[at_++]);
    }
    end_word();
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    return std::move(words_);
  }

 private:
  void step(char c) {
    if (c == '\'' || c == '"') {
      quoted(c);
    } else if (c == '\\') {
      escaped();
    } else if (c == '#' && !in_word_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      line_ += c == '\n' ? 1 : 0;
      end_word();
    } else {
      plain(c);
    }
  }

  /// Up to the closing quote; a backslash means something in double quotes only.
  void quoted(char quote) {
    in_word_ = true;
    while (at_ < text_.size() && text_[at_] != quote) {
      const char c = text_[at_++];
      line_ += c == '\n' ? 1 : 0;
      if (quote == '"' && c == '\\' && at_ < text_.size()) {
        escaped();
      } else if (quote == '"') {
        plain(c);
      } else {
        word_ += c;
      }
    }
    if (at_ == text_.size()) {
      mistake(std::string(1, quote), "a closing quote");
      return;
    }
    ++at_;
  }

  void escaped() {
    if (at_ == text_.size()) {
      return;
    }
    const char c = text_[at_++];
    if (c == '\n') {
      ++line_;  // a continued line
      return;
    }
    in_word_ = true;
    word_ += c;
  }

  void plain(char c) {
    in_word_ = true;
    word_ += c;
    if (c == '$' || c == '`') {
      const std::size_t end = std::min(text_.find_first_of(" \t\n\"'", at_), text_.size());
      mistake(c + std::string(text_.substr(at_, end - at_)),
              "a value: only a shell expands this; `echo` the line there and give its output");
      word_ += text_.substr(at_, end - at_);
      at_ = end;
    }
  }

  void end_word() {
    if (in_word_) {
      words_.push_back(std::move(word_));
    }
    word_.clear();
    in_word_ = false;
  }

  void mistake(std::string found, std::string expected) {
    error_.add({file_ + ":" + std::to_string(line_), {}, std::move(found), std::move(expected)});
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool in_word_ = false;
  std::string word_;
  std::vector<std::string> words_;
  Error error_;
};

}  // namespace

Result<std::vector<std::string>> shell_words(std::string_view text, const std::string& file) {
  return Splitter(text, file).run();
}

}  // namespace orrery::interop
