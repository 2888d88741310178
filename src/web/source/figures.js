// SPDX-License-Identifier: Apache-2.0
// The figures of each command's report: what is drawn of which fields.
import {bars, lines, shares} from './charts.js';
import {h} from './dom.js';
import {bytes, count, label, percent, rate, time, valueText} from './format.js';
import {table} from './tables.js';
import {timeline, timelineRows} from './timeline.js';
import {topology} from './topology.js';

const kAxes = /\b(tp|pp|dp|cp|ep|etp|edp|ttft|tpot|itl|e2e|mfu|hfu)\b/g;
const words = (key) => label(key).replace(kAxes, (axis) => axis.toUpperCase()).replace(/^./, (first) => first.toUpperCase());
const named = (object) => Object.entries(object).map(([name, value]) => ({name: words(name), value}));

function breakdown(title, times, formula) {
  const parts = named(times);
  const total = parts.reduce((sum, part) => sum + part.value, 0);
  return {title, formula, chart: shares(parts, time),
          table: table(title, ['part', 'time', 'share'],
                       parts.map((part) => [part.name, part.value, part.value / total]), ['', '_s', 'share'])};
}

function memoryBars(stages) {
  const kinds = Object.keys(stages[0]).slice(0, Object.keys(stages[0]).indexOf('total')).filter((kind) => kind !== 'rank');
  const listed = stages.length <= 16 ? stages : stages.filter((_, i) => i === 0 || i === stages.length - 1);
  return h('div', {}, listed.map((stage) => h('div', {},
    h('h4', {}, `${stage.rank === undefined ? `Stage ${stages.indexOf(stage)}` : `Rank ${stage.rank}`}: ${bytes(stage.total)} of ${bytes(stage.capacity)}` +
      (stage.fits ? (stage.close_call ? ', a close call' : '') : ', does not fit')),
    shares([...kinds.map((kind) => ({name: words(kind), value: stage[kind] ?? 0})),
            {name: 'Free', value: Math.max(0, stage.capacity - stage.total), colour: '--grid'}], bytes))));
}

function memoryOverTime(result) {
  const stages = result.memory_timeline.filter((stage) => stage.points.length > 0);
  const most = Math.max(...stages.map((stage) => stage.points.length));
  const x = Array.from({length: most}, (_, i) => i);
  const names = stages[0]?.points.map(([name]) => name) ?? [];
  const capacity = result.memory_bytes[0]?.capacity ?? 0;
  return {
    title: 'Memory over the step, by stage', formula: 'memory',
    chart: lines({
      x, kind: 'steps', text: bytes, axes: {x: 'pieces of work in order', y: 'bytes on a device'},
      description: `Most bytes of each stage while each of ${most} pieces of work ran, of a capacity of ${bytes(capacity)}`,
      series: [...stages.map((stage) => ({name: `stage ${stage.stage}`,
                                          values: x.map((i) => stage.points[i]?.[1] ?? null)})),
               ...(capacity > 0 ? [{name: 'capacity', values: x.map(() => capacity), dashed: true}] : [])]}),
    note: names.length > 0 ? `From “${names[0]}” to “${names[names.length - 1]}”.` : null,
    table: table('Memory over the step', ['stage', 'piece of work', 'bytes'],
                 stages.flatMap((stage) => stage.points.map(([name, size]) => [stage.stage, name, size])), ['', '', 'bytes']),
  };
}

function timelineFigure(data) {
  return {
    title: 'Timeline: ranks and streams', formula: 'timeline', chart: timeline(data),
    note: data.note,
    table: table('Busy time of every lane', ['lane', 'spans', ...data.categories], timelineRows(data),
                 ['', '', ...data.categories.map(() => '_s')]),
  };
}

function steps(result, extra) {
  return [
    breakdown(`Where the time goes (rank ${result.critical_rank}, the last to finish)`, result.breakdown_s, 'step'),
    extra.timeline && timelineFigure(extra.timeline),
    Object.values(result.hidden_s).some((value) => value > 0) && {
      title: 'Communication hidden behind compute', formula: 'step',
      chart: bars(named(result.hidden_s).filter((part) => part.value > 0), time)},
    result.memory_timeline && memoryOverTime(result),
    result.memory_bytes?.length > 0 && {
      title: 'Memory at the fullest moment', formula: 'memory', chart: memoryBars(result.memory_bytes)},
  ];
}

function explain(result, extra) {
  return [
    breakdown('The critical path, by kind', result.path.kinds_s, 'path'),
    breakdown('Its kernels, by what bounds them', result.path.kernels_s, 'path'),
    extra.timeline && timelineFigure(extra.timeline),
    {title: 'Longest items of the path', formula: 'path',
     chart: bars(result.path.items.slice(0, 15).map((item) => ({name: item.name, value: item.time_s,
       note: `${item.kind}, ${item.count} times, ${percent(item.share)} of the step`})), time)},
    {title: 'What would make it faster: step time with each resource 10 % better', formula: 'sensitivity',
     chart: bars(result.sensitivity.map((one) => ({name: one.resource, value: -one.change,
       note: `elasticity ${one.elasticity.toFixed(3)}`})), percent),
     note: result.next_bottleneck && `Once ${result.next_bottleneck.resource} is ${count(result.next_bottleneck.factor)} times ` +
       `as good, ${result.next_bottleneck.next} matters most.`},
  ];
}

function compare(result) {
  const names = result.runs.map((run, i) =>
    `${i + 1}: ${run.source.split('/').pop().replace(/\.(yaml|json)$/, '')} on ${run.machine} (${run.network})`);
  const group = (key) => result.groups[key] ?? {};
  const texts = (key, name, values) => values.map((value) =>
    valueText(key === 'memory_bytes' ? 'bytes' : key.endsWith('_s') ? `${key}.` : name, value));
  const rows = (key) => Object.entries(group(key)).map(([name, figure]) => [words(name), ...texts(key, name, figure.values)]);
  return [
    ...Object.entries(group('step')).slice(0, 2).map(([name, figure]) => ({
      title: words(name), formula: 'compare',
      chart: bars(figure.values.map((value, i) => ({name: names[i], value: value ?? 0})),
                  name.endsWith('time_s') ? time : count)})),
    ...names.map((name, i) => ({
      title: `Where the time goes: ${name}`, formula: 'step',
      chart: shares(Object.entries(group('breakdown_s')).map(([key, figure]) =>
        ({name: words(key), value: figure.values[i] ?? 0})), time)})),
    ...Object.keys(result.groups).map((key) => ({
      title: `Side by side: ${key}`, formula: 'compare', chart: null, open: true,
      table: table(key, ['', ...names], rows(key))})),
  ];
}

const planName = (plan) => ['tp', 'pp', 'dp', 'cp', 'ep'].filter((axis) => plan[axis] > 1)
  .map((axis) => `${axis}${plan[axis]}`).join(' ') || 'one device';
const planDetail = (plan) => `${planName(plan)}, microbatch ${plan.microbatch}, zero ${plan.zero}, recompute ${plan.recompute}, ${plan.schedule}`;

function paretoOf(points) {
  const sorted = [...points].sort((a, b) => a.memory - b.memory || a.time - b.time);
  let best = Infinity;
  return sorted.map((point) => {
    const leads = point.time < best;
    best = Math.min(best, point.time);
    return {...point, leads};
  });
}

function plans(result) {
  const found = [...(result.top ?? []), ...(result.frontier ?? [])].filter((one) => one.step_time_s && one.memory_bytes);
  const points = paretoOf(found.map((one) => ({time: one.step_time_s, memory: one.memory_bytes, plan: one.plan, lost: one.lost})));
  const candidates = result.candidates ?? {};
  const fastest = result.best?.step_time_s;
  const reason = (point) => (point.lost ? `${point.lost}; ` : '') + (point.time === fastest && point.leads ? 'the fastest'
    : point.leads ? 'faster ones take more memory' : 'another takes no more memory and is faster');
  return [
    points.length > 0 && {
      title: 'Plans: step time against memory', formula: 'plan',
      chart: lines({x: points.map((point) => point.memory), kind: 'dots', text: time, xText: bytes,
        axes: {x: 'memory of the fullest device', y: 'step time'},
        description: `${points.length} plans, the fastest takes ${time(fastest)}`,
        series: [{name: 'beaten in both', values: points.map((point) => point.leads ? null : point.time)},
                 {name: 'no other beats it in both', values: points.map((point) => point.leads ? point.time : null)}]}),
      open: true,
      table: table('Plans and why others lose to the best', ['plan', 'step time', 'memory', 'slower than the best', 'why'],
        points.map((point) => [planDetail(point.plan), point.time, point.memory, point.time / fastest - 1, reason(point)]),
        ['', '_s', 'bytes', 'gap', ''])},
    result.candidates && {title: 'What became of the plans that were looked at', formula: 'plan',
     chart: bars([['by_bound', 'left out: their bound is above the best'], ['by_memory', 'left out: memory'],
                  ['by_family', 'left out: their family'], ['invalid', 'not valid'], ['estimated', 'estimated'],
                  ['simulated', 'simulated'], ['left', 'not looked at']]
       .filter(([key]) => candidates[key] > 0).map(([key, name]) => ({name, value: candidates[key]})), count),
     note: result.proved ? 'The best plan is proved to be best in its space.' :
       `The best is at most ${percent(result.gap ?? 0)} above a bound that no plan is below.`},
  ];
}

function sweep(result) {
  const numbers = result.columns.filter((column) => result.rows.some((row) => typeof row[column] === 'number'));
  const measure = ['step_time_s', 'tokens_per_s', 'output_tokens_per_s'].find((column) => numbers.includes(column)) ??
    numbers.find((column) => column !== 'point');
  const text = measure?.endsWith('_s') && !measure.includes('per') ? time : count;
  const rows = result.rows.filter((row) => typeof row[measure] === 'number');
  const varied = result.columns.slice(1, result.columns.indexOf('total_devices') > 0 ? result.columns.indexOf('total_devices') : 2);
  const failed = result.rows.length - rows.length;
  return [measure && rows.length > 0 && {
    title: `${words(measure)} of every point`, formula: 'sweep',
    chart: rows.length <= 40 ? bars(rows.map((row) => ({
      name: varied.map((column) => `${column.replace('plan.', '')}=${row[column]}`).join(' '), value: row[measure]})), text)
      : lines({x: rows.map((row) => row.point), kind: 'dots', text, axes: {x: 'point', y: words(measure)},
               description: `${words(measure)} of ${rows.length} points`,
               series: [{name: words(measure), values: rows.map((row) => row[measure])}]}),
    note: failed > 0 ? `${failed} of ${result.rows.length} points have no result; the table says why.` : null}];
}

function validate(result) {
  const tables = result.predictions ? [result] : result.tables ?? [];
  return tables.flatMap((one) => {
    const rows = one.predictions.filter((row) => row.published > 0 && row.predicted > 0);
    return [rows.length > 0 && {
      title: `${one.title}: error of every row`, formula: 'validation',
      chart: bars(rows.slice(0, 60).map((row) => ({name: row.key, value: row.error,
        note: `predicted ${count(row.predicted)}, published ${count(row.published)}`})), percent),
      note: rows.length > 60 ? `The first 60 of ${rows.length} rows; the table has all.` : null,
      table: table(one.table, ['row', 'predicted', 'published', 'error', 'scored'],
                   one.predictions.map((row) => [row.key, row.predicted, row.published, row.error, row.scored]),
                   ['', '', '', 'error', ''])}];
  });
}

function histogram(one) {
  const widths = one.counts.map((_, i) => one.from + i * one.width);
  return {
    title: `${one.name}: histogram of ${one.counts.reduce((a, b) => a + b, 0)} requests`, formula: 'serving',
    chart: lines({x: widths, kind: 'steps', text: count, xText: time, axes: {x: one.name, y: 'requests'},
                  description: `Histogram of ${one.name}`, series: [{name: 'requests', values: one.counts}]}),
    table: table(one.name, ['from', 'to', 'requests'],
                 one.counts.map((n, i) => [one.from + i * one.width, one.from + (i + 1) * one.width, n]), ['_s', '_s', '']),
  };
}

function serve(result, extra) {
  const measures = ['ttft_s', 'tpot_s', 'itl_s', 'e2e_s', 'queue_s'].filter((key) => result[key]);
  const shape = (prefix) => Object.entries(result).filter(([key, value]) =>
    key.startsWith(prefix) && key.endsWith('_s') && !key.endsWith('_slowest_s') && typeof value === 'number')
    .map(([key, value]) => ({name: words(key.slice(prefix.length)), value}));
  return [
    ...(result.front?.length > 0 ? engines(result) : []),
    ...(extra.curve ? [curve(extra.curve)] : []),
    measures.length > 0 && {
      title: 'Latencies', formula: 'serving', open: true,
      chart: bars(measures.flatMap((key) => ['median', 'p99'].map((which) =>
        ({name: `${words(key)} ${which}`, value: result[key][which]}))), time),
      table: table('Latencies', ['', 'mean', 'median', 'p90', 'p95', 'p99'],
        measures.map((key) => [words(key), ...['mean', 'median', 'p90', 'p95', 'p99'].map((of) => result[key][of])]),
        ['', '_s', '_s', '_s', '_s', '_s'])},
    ...(extra.histograms ?? []).map(histogram),
    shape('ttft_').length > 0 && {title: 'What the time to the first token is made of', formula: 'serving',
                                  chart: shares(shape('ttft_'), time)},
    shape('tpot_').length > 0 && {title: 'What the time of a further token is made of', formula: 'serving',
                                  chart: shares(shape('tpot_'), time)},
  ];
}

function curve(points) {
  return {
    title: 'Latency over load', formula: 'serving',
    chart: lines({x: points.map((one) => one.rate), kind: 'line', text: time, xText: count,
      axes: {x: 'requests per second', y: 'latency'}, description: 'Latencies at each request rate',
      series: ['ttft_p50', 'ttft_p99', 'e2e_p50', 'e2e_p99'].map((key) =>
        ({name: key.replace('_', ' ').toUpperCase(), values: points.map((one) => one[key])}))}),
    table: table('Latency over load', ['requests/s', 'TTFT median', 'TTFT p99', 'E2E median', 'E2E p99'],
      points.map((one) => [one.rate, one.ttft_p50, one.ttft_p99, one.e2e_p50, one.e2e_p99]), ['', '_s', '_s', '_s', '_s']),
    note: 'At most the first 1,000 requests at each rate, drawn alike.'};
}

const engineName = (plan) => `${['tp', 'pp', 'dp', 'ep'].filter((axis) => plan[axis] > 1).map((axis) => `${axis}${plan[axis]}`).join(' ') ||
  'one device'}${plan.prefill > 0 ? `, ${plan.prefill} for prompts` : ''}${plan.replicas > 1 ? `, ${plan.replicas} replicas` : ''}`;

function engines(result) {
  const points = [...result.front].sort((a, b) => a.output_tokens_per_s_per_user - b.output_tokens_per_s_per_user);
  return [{
    title: 'Engines: tokens per second of a device against those of a user', formula: 'serving', open: true,
    chart: lines({x: points.map((one) => one.output_tokens_per_s_per_user), kind: 'dots', text: count, xText: count,
      axes: {x: 'output tokens per second and user', y: 'output tokens per second and device'},
      description: `${points.length} engines that no other beats in both`,
      series: [{name: 'no other beats it in both', values: points.map((one) => one.output_tokens_per_s_per_device)}]}),
    table: table('Engines that no other beats in both', ['engine', 'machine', 'devices', 'requests at once', 'tokens/s and device',
                                                         'tokens/s and user', 'TTFT p99', 'TPOT p99'],
      points.map((one) => [engineName(one), one.machine, one.devices, one.concurrency, one.output_tokens_per_s_per_device,
                           one.output_tokens_per_s_per_user, one.ttft_p99_s, one.tpot_p99_s]),
      ['', '', '', '', '', '', '_s', '_s'])}];
}

function network(links, end, hosts, whole = 'of the time') {
  const used = links.map((link) => ({name: link.name, use: end > 0 ? link.busy_s / end : 0, load: link.load}));
  const busiest = [...used].sort((a, b) => b.use - a.use).slice(0, 20);
  return [
    {title: `The network, links by how busy they are, ${whole}`, formula: 'flow', chart: topology(used, hosts)},
    {title: 'Busiest links', formula: 'flow', chart: bars(busiest.map((link) => ({name: link.name, value: link.use,
      note: bytes(link.load)})), percent)},
  ];
}

function flow(result) {
  const hosts = new Set(result.flows.flatMap((one) => [one.source, one.target]));
  const ends = result.flows.map((one) => one.finish_s).filter((end) => typeof end === 'number').sort((a, b) => a - b);
  const moments = [0, ...new Set(ends)];
  return [
    ...network(result.links, result.end_s, hosts),
    ends.length > 1 && {
      title: 'When flows finish', formula: 'flow',
      chart: lines({x: moments, text: percent, xText: time, axes: {x: 'time', y: 'share of flows done'}, kind: 'steps',
        description: `Share of ${ends.length} flows that are done over time`,
        series: [{name: 'done', values: moments.map((t) => (ends.findLastIndex((end) => end <= t) + 1) / ends.length)}]})},
  ];
}

function flit(result) {
  const points = result.curve ?? [];
  return [
    points.length > 1 && {
      title: 'Latency over load', formula: 'flit',
      chart: lines({x: points.map((point) => point.offered_load), text: count, xText: count,
        axes: {x: 'offered load, flits per node and cycle', y: 'cycles'}, description:
          `Packet latency over offered load; saturation at ${count(result.saturation_load ?? 0)}`,
        series: [['mean', 'packet_latency_mean'], ['median', 'packet_latency_p50'], ['p99', 'packet_latency_p99']]
          .map(([name, key]) => ({name, values: points.map((point) => point.stable ? point[key] : null)}))}),
      table: table('Latency over load', ['offered', 'accepted', 'mean', 'median', 'p99'],
        points.map((one) => [one.offered_load, one.accepted_load, one.packet_latency_mean, one.packet_latency_p50,
                             one.packet_latency_p99]))},
    result.packet_latency_p50 !== undefined && {
      title: 'Packet latency in cycles', formula: 'flit',
      chart: bars(['mean', 'p50', 'p90', 'p99', 'max'].map((key) => ({name: key, value: result[`packet_latency_${key}`] ?? 0})),
                  count)},
  ];
}

function astra(result) {
  const ranks = result.ranks ?? [];
  const links = (result.links ?? []).map((link) => ({name: `${link.from}->${link.to}`, load: link.bytes}));
  const most = Math.max(...links.map((link) => link.load), 1);
  return [
    ranks.length > 0 && {
      title: 'Cycles of every rank', formula: 'astra',
      chart: ranks.length <= 64 ? bars(ranks.map((one) => ({name: `rank ${one.rank}`, value: one.cycles,
          note: `${count(one.exposed_cycles)} exposed`})), (n) => `${count(n)} cycles`)
        : lines({x: ranks.map((one) => one.rank), text: count, axes: {x: 'rank', y: 'cycles'}, description: 'Cycles of every rank',
                 series: [{name: 'cycles', values: ranks.map((one) => one.cycles)},
                          {name: 'exposed communication', values: ranks.map((one) => one.exposed_cycles)}]})},
    ...(links.length > 0 ? network(links.map((link) => ({...link, busy_s: link.load})), most, new Set(), 'of the busiest link') : []),
  ];
}

function goodput(result) {
  return [
    result.time_s && breakdown('Where the time of the job goes', result.time_s, 'goodput'),
    result.break_even?.length > 0 && {
      title: 'Mean time between failures of a device that each goodput needs', formula: 'goodput',
      chart: bars(result.break_even.map((one) => ({name: percent(one.goodput), value: one.mtbf_device_s})), time)},
    result.components?.length > 0 && {
      title: 'Failures by component', formula: 'goodput',
      chart: bars(result.components.map((one) => ({name: one.name, value: one.failures})), count)},
  ];
}

function diagnose(result) {
  const items = (list) => h('ul', {}, list.map((text) => h('li', {}, text)));
  return [
    {title: result.findings.length > 0 ? 'What is at fault' : 'Nothing is found at fault', formula: 'diagnose',
     chart: items(result.findings.map((one) => `${one.syndrome}: ranks ${one.ranks.join(', ')}. ${one.because}`))},
    result.undecided.length > 0 && {title: 'Undecided', formula: 'diagnose', chart: items(result.undecided)},
    result.findings.some((one) => one.lost_s) && {
      title: 'Time lost by finding', formula: 'diagnose',
      chart: bars(result.findings.filter((one) => one.lost_s).map((one) =>
        ({name: `${one.syndrome}, ranks ${one.ranks.join(', ')}`, value: one.lost_s})), time)},
  ];
}

const kFigures = {simulate: steps, explain, compare, plan: plans, sweep, query: sweep, validate, serve, flow, flit, astra, diagnose,
                  goodput};

/** Returns figures: {title, formula: a name of formulas.js, chart: an element, note, table, open}. */
export function figuresOf(command, result, extra) {
  const make = kFigures[command];
  return make ? make(result, extra).filter(Boolean) : [];
}

const kFacts = {
  step_time_s: ['Step time', time], tokens_per_s: ['Tokens/s', count], mfu: ['MFU', percent], fits: ['Fits in memory', (v) => v ? 'yes' : 'no'],
  model_flops_per_device: ['Per device', (v) => rate(v, 'FLOP/s')], output_tokens_per_s: ['Output tokens/s', count],
  requests_per_s: ['Requests/s', count], goodput: ['Goodput', percent], end_s: ['All flows done', time], cycles: ['Cycles', count],
  saturation_load: ['Saturation', percent], packet_latency_mean: ['Mean latency, cycles', count], mape: ['MAPE', percent],
  bound_s: ['No plan is below', time], best_interval_s: ['Best checkpoint interval', time],
};

/** Returns the few numbers above all: [{name, text}]. */
export function factsOf(result) {
  const whole = {...(result.best ?? {}), ...(result.score ?? {}), ...result};
  return Object.entries(kFacts).filter(([key]) => whole[key] !== undefined && whole[key] !== null && typeof whole[key] !== 'object')
    .map(([key, [name, text]]) => ({name, text: text(whole[key])}));
}
