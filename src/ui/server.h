// SPDX-License-Identifier: Apache-2.0
/// A page on this machine: fixed texts and questions in JSON, over HTTP on 127.0.0.1. What is asked
/// is the caller's.
///
/// A request is answered only if all of this holds, else refused without a look at its body:
///
///   token    in the cookie orrery_PORT, in `Authorization: Bearer` or as ?token=; compared in
///            constant time; 401. With the query the cookie is set, for this site alone
///   Host     127.0.0.1:PORT or localhost:PORT: no other name that leads here; 403
///   Origin   where there is one, this page's own; 403
///   path     one of the fixed texts or questions, letter by letter; no file is looked for; 404
///   body     at most kMostBody bytes of application/json; 413 (before all else), 415
///
/// Every answer forbids frames, other sources than this one and guesses at types.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace orrery::ui {

inline constexpr std::size_t kMostBody = std::size_t{1} << 18;

/// A fixed text at a path.
struct Page {
  std::string_view path;
  std::string_view type;  ///< "text/html; charset=utf-8"
  std::string_view text;
};

/// Returns the page itself, its script and its style.
const std::vector<Page>& pages();

/// POST path: the body's text in, JSON out; mistakes are {"error": text} with status 422.
struct Question {
  std::string path;
  std::function<Result<std::string>(const std::string& body)> answer;
};

class Server {
 public:
  /// Requires: a token that is not empty. `port` 0: any that is free.
  Server(int port, std::string token, std::vector<Question> questions);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Takes the port, of 127.0.0.1 alone. Mistakes: it is not free.
  Result<int> bind();
  /// Answers until stop() or the end of the process. Requires bind().
  void run();
  void stop();

 private:
  class Http;
  std::unique_ptr<Http> http_;
};

/// Returns 32 hexadecimal digits that nobody can guess. Mistakes: the system has no random bytes.
Result<std::string> random_token();

}  // namespace orrery::ui
