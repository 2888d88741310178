// SPDX-License-Identifier: Apache-2.0
/// Expected is what bash 5 does with the same texts, written down by hand; nothing is run.
#include "shell/shell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::shell {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The words of the first command.
std::vector<std::string> words_of(const std::string& text,
                                  const std::vector<std::string>& given = {}) {
  const auto script = read_script(text, "run.sh", given);
  EXPECT_TRUE(script.has_value()) << (script ? "" : script.error().to_string());
  std::vector<std::string> words;
  if (script && !script->commands.empty()) {
    for (const Word& word : script->commands.front()) {
      words.push_back(word.text);
    }
  }
  return words;
}
std::string mistakes_of(const std::string& text) {
  const auto script = read_script(text, "run.sh");
  return script ? "" : script.error().to_string();
}

TEST(Shell, BlanksQuotesCommentsAndContinuedLines) {
  EXPECT_THAT(words_of("a  b\\\n  c 'e f' \"g \\\" h\" i\\ j k#l '' # n"),
              ElementsAre("a", "b", "c", "e f", "g \" h", "i j", "k#l", ""));
  EXPECT_THAT(words_of(" # nothing"), IsEmpty());
}

TEST(Shell, VariablesAreSplitUnlessQuoted) {
  EXPECT_THAT(words_of("X='a  b'; p $X \"$X\" ${X}c"),
              ElementsAre("p", "a", "b", "a  b", "a", "bc"));
  EXPECT_THAT(words_of("p ${N:-4} ${N-5} ${N:=6} $N ${N:+7}"),
              ElementsAre("p", "4", "5", "6", "6", "7"));
  EXPECT_THAT(words_of("F=a.b.c; p ${F%.*} ${F%%.*} ${F#*.} ${F/b/x} ${#F} ${F:2:1}"),
              ElementsAre("p", "a.b", "a", "b.c", "a.x.c", "5", "b"));
  EXPECT_THAT(words_of("p $1 ${2:-z} $#", {"x"}), ElementsAre("p", "x", "z", "1"));
  EXPECT_THAT(words_of("N=2; p $N", {"N=16"}), ElementsAre("p", "16"));
}

TEST(Shell, Arrays) {
  EXPECT_THAT(words_of("A=(\n  --x 1 # one\n  \"--y 2\"\n)\nA+=(\"${A[@]}\" '3 4')\n"
                       "p ${A[@]} \"${A[@]}\" ${#A[@]} ${A[2]}"),
              ElementsAre("p", "--x", "1", "--y", "2", "--x", "1", "--y", "2", "3", "4", "--x", "1",
                          "--y 2", "--x", "1", "--y 2", "3 4", "7", "--y", "2"));
}

TEST(Shell, WhatIsEmptyInQuotes) {
  EXPECT_THAT(words_of("A=(); p \"${A[@]}\" \"\" \"x${A[@]}\" end"),
              ElementsAre("p", "", "x", "end"));
}

TEST(Shell, PlaceholdersOfPublishedScriptsAreWords) {
  EXPECT_THAT(words_of("p --load <PATH TO CHECKPOINTS> \\\n  --n 1 <in >out"),
              ElementsAre("p", "--load", "<PATH TO CHECKPOINTS>", "--n", "1"));
  EXPECT_THAT(words_of("p <in>out 2>&1"), ElementsAre("p"));
}

TEST(Shell, Arithmetic) {
  EXPECT_THAT(words_of("A=8; B=3; p $(($A*$B)) $(( (A + B) % 4 )) $((A > 1 ? 2 : 0)) $((2**10)) "
                       "$((A<B || !0)) $((-7/2))"),
              ElementsAre("p", "24", "3", "2", "1024", "1", "-3"));
  // An unknown operand stays unknown, by its name.
  EXPECT_THAT(words_of("p --x $(( $GPUS * 2 )) $((1/0))"),
              ElementsAre("p", "--x", "$GPUS", "$(arithmetic...)"));
}

TEST(Shell, ConditionsChooseBranches) {
  EXPECT_THAT(words_of("M=70\nif [[ $M -eq 8 ]]; then L=32; elif [ \"$M\" = 70 ]; then L=80\n"
                       "else L=0; fi\np $L"),
              ElementsAre("p", "80"));
  EXPECT_THAT(words_of("[ -z \"$X\" ] && A=1 || A=2; [[ abc == a* && ! x == y ]] && B=1; p $A $B"),
              ElementsAre("p", "1", "1"));
  EXPECT_THAT(words_of("case ${K:-v2} in v1) A=1 ;; v*|w) A=2 ;; *) A=3 ;; esac; p $A"),
              ElementsAre("p", "2"));
  EXPECT_THAT(words_of("for i in 1 2 3; do [ $i -eq 2 ] && continue; S=\"$S$i\"; done; p ${S#?X?}"),
              ElementsAre("p", "$S13"));  // S is unset at first, which a shell takes as empty
  EXPECT_THAT(words_of("P=x; for ((i=1; i<4; i++)); do P+=$i; done; p $P"),
              ElementsAre("p", "x123"));
  EXPECT_THAT(words_of("for ((i=4; i<4; i++)); do P=1; done; p ${P:-none}"),
              ElementsAre("p", "none"));
  EXPECT_THAT(words_of("for ((i=0; i<1; j++)); do\ndone; p end"), ElementsAre("p", "end"));
  EXPECT_THAT(words_of("f() { R=$1; }; f 5; p $R"), ElementsAre("p", "5"));
  EXPECT_THAT(words_of("if (( 3 > 2 )); then p yes; fi"), ElementsAre("p", "yes"));
}

TEST(Shell, TextsThatAShellReadsAreRead) {
  EXPECT_THAT(words_of("C=\"torchrun x.py --a 'b c'\"\neval $C"),
              ElementsAre("torchrun", "x.py", "--a", "b c"));
  // Single quotes: the inner shell expands.
  EXPECT_THAT(words_of("export C='x.py --n 1'\nsrun -N 2 bash -c 'python $C' 2>&1 | tee log"),
              ElementsAre("srun", "-N", "2", "bash", "-c", "python", "x.py", "--n", "1"));
  EXPECT_THAT(
      words_of("docker run image /bin/sh -c 'vllm serve m --tp 2'"),
      ElementsAre("docker", "run", "image", "/bin/sh", "-c", "vllm", "serve", "m", "--tp", "2"));
  EXPECT_THAT(words_of("T=4\nsbatch <<EOF\n#!/bin/bash\nsrun python x.py --tp $T\nEOF\n"),
              ElementsAre("srun", "python", "x.py", "--tp", "4"));
}

TEST(Shell, WhatACommandPrintsIsUnknownAndSaidSo) {
  const auto script = read_script(
      "N=$(nvidia-smi -L | wc -l)\nif [ $N -gt 4 ]; then A=1; else A=2; fi\n"
      "[ -f x ] && B=1\np $N $A $B --x $UNSET $UNSET\n",
      "run.sh");
  ASSERT_TRUE(script.has_value());
  std::vector<std::string> words;
  for (const Word& word : script->commands.front()) {
    words.push_back(word.text + ":" + std::to_string(word.line));  // of where it is written
  }
  EXPECT_THAT(words, ElementsAre("p:4", "$(nvidia-smi...):1", "2:2", "1:3", "--x:4", "$UNSET:4"));
  EXPECT_THAT(script->remarks,
              ElementsAre("run.sh: conditions on what commands print count as false: line 2",
                          "run.sh: files that are tested count as there: line 3"));
  EXPECT_TRUE(unresolved("$UNSET"));
  EXPECT_FALSE(unresolved("5$"));
}

TEST(Shell, HereDocumentsAndBatchLines) {
  const auto script = read_script(
      "#SBATCH --nodes=4\n#SBATCH --gres=gpu:a100:8 # of them\nS=2\n"
      "cat <<EOT > \"$D/c.json\"\n{\"stage\": $S}\nEOT\np $SLURM_NNODES $SLURM_GPUS_ON_NODE\n",
      "run.sh", {"D=d"});
  ASSERT_TRUE(script.has_value()) << script.error().to_string();
  EXPECT_EQ(script->documents.at("d/c.json"), "{\"stage\": 2}\n");
  EXPECT_EQ(script->commands.back()[1].text, "4");
  EXPECT_EQ(script->commands.back()[2].text, "8");
}

TEST(Shell, MistakesNameTheirLine) {
  EXPECT_THAT(mistakes_of("a\nb 'c"), HasSubstr("run.sh:2: found ''', expected a closing quote"));
  EXPECT_THAT(mistakes_of("if true; then\n a\n"), HasSubstr("expected 'fi'"));
  EXPECT_THAT(mistakes_of("a\n)"), HasSubstr("run.sh:2: found ')'"));
  EXPECT_THAT(mistakes_of("if [ $# -lt 1 ]; then\n exit 1\nfi\npython x.py"),
              HasSubstr("run.sh:2: found 'exit', expected variables and arguments"));
  EXPECT_THAT(mistakes_of(": ${ROOT:?say where}\n[[ -d $ROOT ]] || exit 1\npython x.py"),
              HasSubstr("FILE -- ROOT=value"));
  EXPECT_THAT(mistakes_of("while true; do X=1; done"), HasSubstr("a script that ends"));
  EXPECT_THAT(mistakes_of(std::string(100'000, '(')), HasSubstr("at most 64 statements"));
  EXPECT_NE(mistakes_of("a \"" + std::string(50'000, '$') + "$("), "");
}

}  // namespace
}  // namespace orrery::shell
