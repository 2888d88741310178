// SPDX-License-Identifier: Apache-2.0
// What each kind of figure is computed by, in a sentence or two, and the page of docs/ that has it in full; where no published
// run is near, also what its numbers were held to, with the error.

export const formulas = {
  step: ['The step ends when the last rank has done its kernels. At every instant a rank counts as exactly one row: the phase ' +
         'of its kernel, else what it waits for. tokens/s = global batch × sequence / step time; MFU = 3 × forward model FLOPs ' +
         '/ devices / step time / peak rate.', 'docs/models/simulate.md#where-time-goes'],
  timeline: ['A kernel takes its roofline time with the machine’s efficiencies; a collective the steps of its algorithm on the ' +
             'network; a node begins when its stream is free and what it depends on is done.',
             'docs/models/simulate.md#streams-and-instances'],
  memory: ['Bytes on a device at a moment = parameters + gradients + optimizer states + activations of the microbatches in ' +
           'flight + buffers + logits + what the framework takes.', 'docs/models/memory.md'],
  path: ['The critical path goes back from the end of the step over the spans whose end let the next one begin; its pieces sum ' +
         'to the step time.', 'docs/models/explain.md#critical-path'],
  sensitivity: ['elasticity = ln(step time / base) / ln(improvement) of the step run again with the resource 10 % better; ' +
                '−1: the step time is proportional to it, 0: it does not matter.', 'docs/models/explain.md#sensitivity'],
  compare: ['difference = value − first, ratio = value / first, of every figure that the runs have in common.',
            'docs/models/explain.md#comparing-runs'],
  plan: ['A plan is left out by a bound that no run of it is faster than, by memory, or by its family; what is left is ' +
         'estimated, the best are simulated. gap = best / bound − 1.', 'docs/planner.md#what-is-certain'],
  validation: ['error = predicted / published − 1; MAPE is the mean of its size over scored rows, bias the mean of the errors.',
               'docs/validation.md'],
  serving: ['TTFT runs from the arrival of a request to its first token, TPOT is the mean time of a further one, ITL each gap ' +
            'between tokens, E2E the whole answer; a pass of the engine takes the time of its kernels and collectives.',
            'docs/models/serving.md#requests-and-metrics'],
  flow: ['Flows on a link share it max-min fair; a link is busy for bytes / bandwidth of the time until the last flow ends.',
         'docs/models/flow.md#flows-max-min-fairness-srcmachinenetworkfairh',
         'Packets: 94 of 97 public runs of csg-htsim on 16 to 1,024 hosts have their largest finish within 5 % and their mean ' +
         'within 2 % (docs/models/flow.md). Fluid flows are held to hand calculation.'],
  flit: ['Latency is counted in cycles from the creation of a packet to the arrival of its last flit; the load at which it grows ' +
         'without end is saturation.', 'docs/models/flit.md',
         'BookSim 2 with the same seed: all 14 reference runs have the same latency, hops and accepted load ' +
         '(docs/models/flit.md#against-booksim-2).'],
  astra: ['Cycles of a rank from the beginning to its last node, 1 cycle = 1 ns; exposed cycles are those in which nothing but ' +
          'communication runs.', 'docs/models/astra.md',
          'ASTRA-sim 518bd51: 87 cases and 120 random runs are equal to the nanosecond. Ring all-reduces beside NCCL on 8 H100: ' +
          '+6 to +16 % from 16 MiB on, up to +238 % below (docs/models/astra.md#validation-on-hardware).'],
  diagnose: ['A rank is at fault that others wait for beyond the noise of their own times; what cannot be told apart is left ' +
             'undecided.', 'docs/diagnose.md',
             'Made jobs of 8 ranks with 15 % of noise: of those without fault all are found clean, of links 1.5 times as slow all ' +
             'are named, 1.2 times 17 %; senders and receivers 1.2 times as slow 97 % (docs/diagnose.md#how-often-it-is-right).'],
  goodput: ['goodput = time whose work is kept / all time; the best interval weighs the cost of checkpoints against the work ' +
            'lost with a failure.', 'docs/models/goodput.md#the-expression',
            'Llama 3 405B on 16,384 H100: more than 90 % published; 87.6 to 93.3 % with checkpoints of 60 to 10 s, which the paper ' +
            'does not state (docs/models/goodput.md#published-runs).'],
  sweep: ['Every row is one run of the study: a point of its grid, list or sample.', 'docs/sweep.md',
          'A row of a step or an engine is as near to published runs as `orrery simulate --html` or `orrery serve --html` of the ' +
          'same point says (docs/validation.md).'],
};
