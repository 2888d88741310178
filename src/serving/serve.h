// SPDX-License-Identifier: Apache-2.0
/// One run: an engine serves requests. Its steps and their clock (driver.h):
///
///   without lookahead   a step is scheduled when the last one is done and its tokens are known;
///                       step = accelerator + gap + host
///   asynchronous        the next step is scheduled while one runs, from what had arrived when that
///                       one began; step = max(accelerator + gap, host). A request that arrives
///                       while the engine is busy waits for the rest of a step and a further one.
///   dp > 1              every copy has its own scheduler, KV cache, tiers and adapters and takes
///                       the request when it has the fewest; all step together, as long as the
///                       slowest of them, each padded to the most tokens
///   pp > 1              up to pp steps are in flight, one per stage; a request is in one at a time
///   replicas, prefill   several engines behind a router (fleet.h), their number by the load
///
/// with host = step + per_request x requests of the step. Runs of steps in which the same requests
/// decode are not scheduled one by one: the clock adds up the same times in a row, and the book is
/// brought forward once (scheduler::Scheduler::skip). The result is the same to the picosecond.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "machine/machine.h"
#include "serving/engine.h"
#include "serving/kv_tiers.h"
#include "serving/requests/request.h"
#include "workload/zoo/model.h"

namespace orrery::serving {

/// Holds the times of one request, from the beginning of the run.
struct Served {
  std::int64_t input = 0;
  std::int64_t output = 0;
  Time sent{0};       ///< by the client
  Time queued{0};     ///< in the engine
  Time scheduled{0};  ///< begin of the first step that computes some of it
  Time first{0};      ///< end of the step that generates its first token
  Time last{0};
  std::int64_t cached = 0;
  std::int64_t lost = 0;
  int preemptions = 0;
  Time moved{0};     ///< from the first token until its keys and values are where it decodes
  Time fetching{0};  ///< waiting for keys and values of lower tiers
  Time beside{0};    ///< of last - first, in steps that computed prompts, too
  Time stalled{0};   ///< of last - first, between preemptions and the next token

  Time ttft() const { return first - sent; }
  Time latency() const { return last - sent; }
  /// Requires output > 1.
  Time tpot() const { return (last - first) / (output - 1); }
};

/// A sample of the run, taken once per second.
struct Sample {
  Time at{0};
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  double kv_use = 0;
  Energy drawn{0};  ///< of a device until then: Run's, of the steps that have ended
  Time busy{0};     ///< of these steps
};

/// One step, for traces.
struct StepRecord {
  Time begin{0};
  Time end{0};
  std::int64_t tokens = 0;
  std::int64_t requests = 0;
  std::int64_t engine = 0;  ///< of several: those that compute prompts first
};

struct Gap {
  Time gap{0};
  std::int64_t count = 0;
};

struct ServeOptions {
  std::int64_t max_concurrency = 0;  ///< requests of the client at once; 0: no limit
  Time think{0};                     ///< of the client between an answer and its next request
  bool skip = true;                  ///< false: every step is scheduled
  bool tell_blocks = false;          ///< the client is told which blocks are found (Inbox::changed)
  std::size_t most_steps = 0;        ///< to record
  double rate = 0;                   ///< that the requests were drawn with, for reports; 0: none
  std::function<void(double)> progress = {};
  std::function<bool()> go_on = {};  ///< asked between steps; false: the run ends with the answers
                                     ///< so far
};
inline bool goes_on(const ServeOptions& options) {
  return !options.go_on || options.go_on();
}

struct Run {
  Engine engine;  ///< completed
  std::string model;
  std::string machine;
  std::vector<std::string> notes;       ///< what was chosen where nothing was stated
  std::vector<step::FusedPlace> fused;  ///< of a step of max_num_batched_tokens
  std::int64_t devices = 1;
  std::vector<Served> requests;  ///< in order of arrival
  std::vector<Gap> gaps;         ///< between tokens of a request, as (gap, how often)
  std::vector<Sample> samples;
  std::vector<std::int64_t> tokens;  ///< generated in each second from the first request on; of
                                     ///< speculation: passes that generated some
  std::vector<StepRecord> steps;
  scheduler::Totals totals;
  std::int64_t kv_blocks = 0;  ///< for requests
  std::vector<KvTier> kv_tiers;
  Bytes adapter{0};                 ///< of a device
  Time adapter_copy{0};             ///< to the accelerator's memory
  Time copying{0};                  ///< of adapters, for which steps waited
  std::int64_t written_blocks = 0;  ///< to lower tiers
  std::int64_t images = 0;          ///< encoded, those of a preempted prompt again
  Time encoding{0};                 ///< of steps, for images before their pass
  Bytes weights{0};                 ///< of a device
  step::CacheBytes cache;           ///< of a device
  double peak_kv_use = 0;
  double kv_use_s = 0;               ///< integral of the share of KV blocks in use, seconds
  std::int64_t peak_running = 0;     ///< requests in a step; of several engines: in one of them
  Time duration{0};                  ///< first sent to last token
  Time busy{0};                      ///< of the accelerators
  Energy drawn{0};                   ///< of a device while they are busy; 0: no power is known
  std::int64_t refused = 0;          ///< longer than max_model_len or than the KV cache
  std::int64_t rejected = 0;         ///< by the router's limit or rate
  Time held{0};                      ///< engines x time, where their number changes; else 0
  std::int64_t started = 0;          ///< engines beside the first ones
  Bytes moved_bytes{0};              ///< from engines that compute prompts to those that decode
  std::int64_t max_concurrency = 0;  ///< ServeOptions'
  double rate = 0;                   ///< ServeOptions'
  double wall_s = 0;
};

/// Returns the number of blocks for requests: those stated, or what the memory holds.
///   blocks = floor(room / (block_size cache.per_token)) - null blocks
///   room   = utilization memory - weights - activations(max_num_batched_tokens / cp, max_num_seqs)
///            - framework - communicator [tp > 1]
Result<std::int64_t> kv_blocks(const Engine& engine, const step::StepCost& cost,
                               const machine::Machine& machine);

/// Mistakes: a model that does not fit, degrees, formats.
Result<Run> serve(const zoo::Model& model, const machine::Machine& machine, const Engine& engine,
                  const std::vector<requests::Request>& requests, const ServeOptions& options = {});

struct FleetParts;

/// Serves as serve() does, but makes what does not depend on the requests only once.
class Server {
 public:
  static Result<Server> make(const zoo::Model& model, const machine::Machine& machine,
                             const Engine& engine);
  Run run(const std::vector<requests::Request>& requests, const ServeOptions& options = {});

  const Engine& engine() const { return part_.empty.engine; }
  /// Takes over times of the host: front_end, step, per_request and gap.
  void take_host(const Engine& from);
  std::int64_t kv_blocks() const { return part_.empty.kv_blocks; }
  step::StepCost& cost() { return part_.cost; }

 private:
  /// A Part is what one engine is made of.
  struct Part {
    step::StepCost cost;
    Run empty;
  };
  explicit Server(Part part) : part_(std::move(part)) {}
  friend class Live;
  /// Returns whether there are, or may be, several engines or a limit before one.
  bool is_fleet() const;
  FleetParts parts();
  static Result<Part> make_part(const zoo::Model& model, const machine::Machine& machine,
                                const Engine& engine);

  Part part_;
  std::optional<Part> prefill_;  ///< of engines that compute prompts
  machine::Machine machine_;     ///< with the devices of all
  std::int64_t devices_ = 1;
};

}  // namespace orrery::serving
