// SPDX-License-Identifier: Apache-2.0
/// orrery-mpi: what Orrery models of messages, really run on the processes of an MPI job.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <string>

#include "mpi/pairs.h"
#include "mpi/rounds.h"
#include "mpi/two_hop.h"

namespace orrery::mpi {
namespace {

using Count = std::int64_t;

void declare_pairs(CLI::App& app, PairRun& pairs) {
  constexpr Count kMost = 1 << 16;
  app.add_option("--tokens", pairs.tokens, "of a dp group; default 1024")
      ->check(CLI::Range(Count{1}, kMost));
  app.add_option("--width", pairs.width, "doubles of a token; default 1024")
      ->check(CLI::Range(Count{1}, kMost));
  app.add_option("--top-k", pairs.copies, "experts of a token; default 2")
      ->check(CLI::Range(1, 64));
  app.add_option("--dp-groups", pairs.dp, "of a stage where they divide its ranks; default 2")
      ->check(CLI::Range(1, 64));
  app.add_option("--repeat", pairs.repeat, "rounds, of which the fastest; default 20")
      ->check(CLI::Range(1, 100000));
}

/// Says what is wrong with a number that is no power of two, as the sums of rounds.h want one.
std::string power_of_two(const std::string& text) {
  double value = 0;
  int exponent = 0;
  const bool number = CLI::detail::lexical_cast(text, value) && value > 0;
  return number && std::frexp(value, &exponent) == 0.5 ? "" : "expected a power of two: " + text;
}

CLI::App* declare_rounds(CLI::App& app, RoundRun& rounds, int processes) {
  CLI::App* const command =
      app.add_subcommand("rounds",
                         "workers that step alone: every_step, local_sgd, slow_mo, diloco and co2 "
                         "on a small network.\n"
                         "Example: mpirun -np 2 orrery-mpi rounds --tau 4,48");
  RoundTask& task = rounds.task;
  command
      ->add_option("--workers", task.workers, "a power of two, at least the processes; default 8")
      ->check(CLI::Range(Count{1}, Count{1024}))
      ->check(power_of_two);
  command->add_option("--steps", task.steps, "of each worker; default 960")
      ->check(CLI::Range(Count{1}, Count{10'000'000}));
  command->add_option("--tau", rounds.taus, "steps of a round; default 4,24,48")
      ->delimiter(',')
      ->check(CLI::Range(Count{1}, Count{1'000'000}));
  command->add_option("--rate", task.rate, "of a step, a power of two; default 0.0625")
      ->check(power_of_two);
  command->add_option("--alpha", rounds.alpha, "rate of the outer step; default 1")
      ->check(CLI::Range(0.0, 100.0));
  command->add_option("--beta", rounds.beta, "outer momentum; default 0.5")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--noise", task.noise, "deviation of samples; default 2")
      ->check(CLI::Range(0.0, 100.0));
  command->add_option("--hidden", task.hidden, "width of the network's hidden layer; default 32")
      ->check(CLI::Range(Count{1}, Count{100'000}));
  command->add_option("--minibatch", task.minibatch, "samples of a step; default 8")
      ->check(CLI::Range(Count{1}, Count{4096}));
  command->add_option("--padding", task.padding, "doubles that a sum carries besides; default 0")
      ->check(CLI::Range(Count{0}, Count{1} << 27));
  command->add_option("--seed", task.seed, "of samples and weights; default 1");
  command->add_flag("--overlap", rounds.overlap, "times of local_sgd and of co2, polled and not");
  command->callback([&rounds, processes] {  // of what is not given, too
    if (rounds.task.workers % processes != 0) {
      throw CLI::ValidationError("--workers", "expected a multiple of the processes, " +
                                                  std::to_string(processes) + ": " +
                                                  std::to_string(rounds.task.workers));
    }
    // Times are those of rounds after the first.
    const Count most = rounds.task.steps / 2;
    if (const Count tau = std::ranges::max(rounds.taus); tau > most) {
      throw CLI::ValidationError(
          "--tau", "expected at most " + std::to_string(most) + ", half of --steps " +
                       std::to_string(rounds.task.steps) + ": " + std::to_string(tau));
    }
  });
  return command;
}

CLI::App* declare_two_hop(CLI::App& app, TwoHopRun& hops, int processes) {
  CLI::App* const command = app.add_subcommand(
      "two-hop",
      "quantised collectives over two levels of processes, beside flat ones of floats.\n"
      "Example: mpirun -np 8 orrery-mpi two-hop --near 4");
  command->add_option("--near", hops.near, "processes of a node; default half of them")
      ->check([processes](const std::string& text) {
        int near = 0;
        return CLI::detail::lexical_cast(text, near) && near > 0 && processes % near == 0
                   ? ""
                   : "expected a divisor of the processes: " + text;
      });
  command->add_option("--elements", hops.elements, "floats of a rank; default 65536")
      ->check(CLI::Range(Count{processes}, Count{1} << 26));
  command->add_option("--block", hops.block, "elements of a scale; default 256")
      ->check(CLI::Range(Count{1}, Count{1} << 20));
  command->add_option("--repeat", hops.repeat, "runs, of which the fastest; default 5")
      ->check(CLI::Range(1, 100000));
  return command;
}

int run(int argc, char** argv) {
  int rank = 0;
  int processes = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  CLI::App app{
      "Fused operators against published sequences, as MPI messages; of its commands, what they "
      "name.\n"
      "Example: mpirun -np 4 orrery-mpi --tokens 2048"};
  PairRun pairs;
  RoundRun rounds;
  TwoHopRun hops;
  bool json = false;
  declare_pairs(app, pairs);
  CLI::App* const of_rounds = declare_rounds(app, rounds, processes);
  CLI::App* const of_hops = declare_two_hop(app, hops, processes);
  const char* const lines = "one JSON object a line";
  for (CLI::App* const command : {of_rounds, of_hops}) {
    command->add_flag("--json", json, lines);
    for (CLI::Option* const option :
         app.get_options([](const CLI::Option* one) { return !one->check_name("--help"); })) {
      command->excludes(option);
    }
  }
  app.add_flag("--json", json, lines);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return rank == 0 ? app.exit(error) : error.get_exit_code();
  }
  pairs.json = rounds.json = hops.json = json;
  const bool right = of_rounds->parsed() ? run_rounds(rounds)
                     : of_hops->parsed() ? run_two_hop(hops)
                                         : run_pairs(pairs);
  return right ? 0 : 1;
}

}  // namespace
}  // namespace orrery::mpi

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = orrery::mpi::run(argc, argv);
  MPI_Finalize();
  return status;
}
