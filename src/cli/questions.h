// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

namespace orrery::cli {

/// The answer to `orrery` alone, line by line.
inline constexpr std::array kQuestions{
    "which command? Ask, for example:",
    "  how long does a training step take, and does it fit?",
    "    orrery simulate --model llama-3-8b --machine dgx-h100 --devices 8 --zero 2",
    "  which parallelisation is fastest?",
    "    orrery plan --model llama-3-8b --machine dgx-h100 --devices 16 --batch 128",
    "  what will an inference engine deliver?",
    "    orrery serve --model llama-3-70b --machine dgx-h100 --devices 8 --rate 5",
    "  what is shipped, and what is my own machine?",
    "    orrery list models; orrery list machines; orrery machine detect",
    "all commands: orrery --help; one of them: orrery help simulate",
};

}  // namespace orrery::cli
