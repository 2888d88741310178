// SPDX-License-Identifier: Apache-2.0
/// Every command of `orrery`. A new one is a file with its make_ function and a line here.
#pragma once

#include <array>

#include "cli/command.h"

namespace orrery::cli {

std::unique_ptr<Command> make_simulate();    // simulate.cc
std::unique_ptr<Command> make_estimate();    // estimate.cc
std::unique_ptr<Command> make_plan();        // plan.cc
std::unique_ptr<Command> make_serve();       // serve.cc
std::unique_ptr<Command> make_compose();     // compose.cc
std::unique_ptr<Command> make_home();        // home.cc
std::unique_ptr<Command> make_patches();     // patches.cc
std::unique_ptr<Command> make_list();        // list.cc
std::unique_ptr<Command> make_show();        // show.cc
std::unique_ptr<Command> make_validate();    // validate.cc
std::unique_ptr<Command> make_calibrate();   // calibrate.cc
std::unique_ptr<Command> make_collective();  // collective.cc
std::unique_ptr<Command> make_flow();        // flow.cc
std::unique_ptr<Command> make_gemm();        // kernels.cc
std::unique_ptr<Command> make_attention();   // kernels.cc
std::unique_ptr<Command> make_moe();         // kernels.cc
std::unique_ptr<Command> make_spmd();        // spmd.cc
std::unique_ptr<Command> make_calculon();    // calculon.cc
std::unique_ptr<Command> make_fuse();        // fuse.cc
std::unique_ptr<Command> make_tiles();       // tiles.cc
std::unique_ptr<Command> make_explain();     // explain.cc
std::unique_ptr<Command> make_import();      // import.cc
std::unique_ptr<Command> make_export();      // export.cc
std::unique_ptr<Command> make_compare();     // compare.cc
std::unique_ptr<Command> make_astra();       // astra.cc
std::unique_ptr<Command> make_measure();     // measure.cc
std::unique_ptr<Command> make_machine();     // machine.cc
std::unique_ptr<Command> make_replay();      // replay.cc
std::unique_ptr<Command> make_plot();        // plot.cc
std::unique_ptr<Command> make_flit();        // flit.cc
std::unique_ptr<Command> make_sweep();       // sweep.cc
std::unique_ptr<Command> make_query();       // query.cc
std::unique_ptr<Command> make_diagnose();    // diagnose.cc
std::unique_ptr<Command> make_goodput();     // goodput.cc
std::unique_ptr<Command> make_reinforce();   // reinforce.cc
std::unique_ptr<Command> make_run_plan();    // run_plan.cc
std::unique_ptr<Command> make_rank();        // rank.cc
std::unique_ptr<Command> make_mpi();         // mpi.cc
std::unique_ptr<Command> make_mcp();         // mcp.cc
std::unique_ptr<Command> make_ui();          // ui.cc

inline constexpr std::array kCommands{
    CommandEntry{"simulate", "Time of one training step, where it goes, and memory", make_simulate},
    CommandEntry{"estimate", "Time of one training step without events, and a bound on it",
                 make_estimate},
    CommandEntry{"plan", "The fastest plan for a number of devices, and what bounds it", make_plan},
    CommandEntry{"serve", "An inference engine serving requests: latencies, throughput, KV use",
                 make_serve},
    CommandEntry{"reinforce", "A step of reinforcement learning: who generates and who trains",
                 make_reinforce},
    CommandEntry{"compose", "Many whole models behind a router: switching, memory, machines needed",
                 make_compose},
    CommandEntry{"home", "A large model on small devices at home: weights streamed from disk",
                 make_home},
    CommandEntry{"patches", "One image on many devices by patches: bytes exchanged, time of a step",
                 make_patches},
    CommandEntry{"explain", "Why a step takes as long as it does, and what would make it faster",
                 make_explain},
    CommandEntry{"compare", "Two or more runs side by side", make_compare},
    CommandEntry{"list", "Names of what is shipped and can be switched", make_list},
    CommandEntry{"show", "One machine, model, plan or topology in full", make_show},
    CommandEntry{"validate", "Predictions beside published results, table by table", make_validate},
    CommandEntry{"calibrate", "A machine file from your own measurements", make_calibrate},
    CommandEntry{"collective", "Time and bandwidth of one collective by size, as nccl-tests prints",
                 make_collective},
    CommandEntry{"flow", "Bare flows on a network of links: finish of each, load of every link",
                 make_flow},
    CommandEntry{"gemm", "Time of matrix products by shape, and what bounds them", make_gemm},
    CommandEntry{"attention", "Time of fused attention by shape, and what bounds it",
                 make_attention},
    CommandEntry{"moe", "Time of a rank's experts by shape, and what bounds it", make_moe},
    CommandEntry{"spmd", "The fastest program that all devices run alike, operator by operator",
                 make_spmd},
    CommandEntry{"fuse", "What fused communication saves: of a plan, a pair, a change of layout",
                 make_fuse},
    CommandEntry{"tiles", "A product whose tiles a ring reduction follows, run on threads here",
                 make_tiles},
    CommandEntry{"import", "A plan from a launch line or configuration of a training framework",
                 make_import},
    CommandEntry{
        "export",
        "A plan as a framework's arguments or configuration, as Chakra traces, as an MPI program",
        make_export},
    CommandEntry{"calculon",
                 "Calculon's inputs, unchanged: one execution, or the best of its space",
                 make_calculon},
    CommandEntry{"astra", "ASTRA-sim's inputs, unchanged: the cycles of every rank", make_astra},
    CommandEntry{"flit", "Latency and saturation of a network of routers, flit by flit", make_flit},
    CommandEntry{"sweep", "A study: many points of one description, run once each into a store",
                 make_sweep},
    CommandEntry{"query", "What a store of a study says, in SQL", make_query},
    CommandEntry{"diagnose", "Which rank or link makes a running job hang or slow, from telemetry",
                 make_diagnose},
    CommandEntry{"goodput",
                 "What share of its time a long job keeps, and the best checkpoint interval",
                 make_goodput},
    CommandEntry{"run-plan", "A whole training run: days, money, energy, checkpoints, failures",
                 make_run_plan},
    CommandEntry{"rank", "Which of many untrained architectures is worth cluster time", make_rank},
    CommandEntry{"mpi", "MPI calls of a C program: strip, restore, complete, score, check",
                 make_mpi},
    CommandEntry{"mcp", "The tools of an agent: the Model Context Protocol on standard input",
                 make_mcp},
    CommandEntry{"ui", "A page on this machine: step time and memory while sliders move", make_ui},
    CommandEntry{"machine", "A machine file from what the tools of this node say", make_machine},
    CommandEntry{"measure", "This machine under MPI: packing of datatypes, messages, collectives",
                 make_measure},
    CommandEntry{"replay",
                 "A plan or trace on real ranks of MPI here, and a machine file fitted to it",
                 make_replay},
    CommandEntry{"plot", "A table of numbers as a chart (SVG)", make_plot},
};

}  // namespace orrery::cli
