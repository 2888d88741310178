// SPDX-License-Identifier: Apache-2.0
// Charts of numbers: bars of shares of a whole (elements), lines and dots (uPlot).
import uPlot from 'uplot';
import {colour, h, redrawn, seriesColour} from './dom.js';
import {bytes, percent} from './format.js';

/** Returns one bar cut into parts, and a legend. `parts`: [{name, value, colour}]; `text(value)`. */
export function shares(parts, text) {
  const shown = parts.map((part, n) => ({colour: seriesColour(n), ...part})).filter((part) => part.value > 0);
  const total = shown.reduce((sum, part) => sum + part.value, 0);
  const bar = h('div', {class: 'bar', role: 'img', 'aria-label':
    shown.map((part) => `${part.name} ${percent(part.value / total)}`).join(', ')});
  const legend = h('ul', {class: 'legend'});
  shown.forEach((part) => {
    const piece = h('span', {title: `${part.name}: ${text(part.value)}, ${percent(part.value / total)}`});
    piece.style.width = `${100 * part.value / total}%`;
    piece.style.background = `var(${part.colour})`;
    bar.append(piece);
    const mark = h('span', {class: 'mark', 'aria-hidden': 'true'});
    mark.style.background = `var(${part.colour})`;
    legend.append(h('li', {}, mark, `${part.name} `, h('b', {}, text(part.value)), ` ${percent(part.value / total)}`));
  });
  return h('div', {}, bar, legend);
}

/** Returns bars below each other, the longest as wide as there is room. `bars`: [{name, value, note}]. */
export function bars(entries, text) {
  const most = Math.max(...entries.map((entry) => Math.abs(entry.value)), Number.MIN_VALUE);
  return h('ul', {class: 'bars'}, entries.map((entry) => {
    const piece = h('span', {class: entry.value < 0 ? 'length below' : 'length', 'aria-hidden': 'true'});
    piece.style.width = `${60 * Math.abs(entry.value) / most}%`;
    return h('li', {title: entry.note}, h('span', {class: 'name'}, entry.name),
             h('span', {class: 'track'}, piece, h('span', {class: 'value'}, text(entry.value))));
  }));
}

/** Distances of marks on an axis of bytes: powers of two; else uPlot's own. */
const stepsOf = (text) => text === bytes ? Array.from({length: 50}, (_, i) => 2 ** i) : undefined;

/**
 * Returns a chart of one or more series over x.
 *   x        numbers, ascending
 *   series   [{name, values, dots, dashed}]
 *   axes     {x, y}: titles; text(y) writes a number of the y axis, xText one of the x axis
 */
export function lines({x, series, axes, text, xText, kind = 'line', description}) {
  const holder = h('div', {class: 'chart', role: 'img', 'aria-label': description});
  let plot = null;
  redrawn(holder, () => {
    plot?.destroy();
    const grid = {stroke: colour('--grid'), width: 1};
    const axis = (title, write, incrs) => ({incrs, label: title, stroke: colour('--text'), grid, ticks: grid,
      font: '12px system-ui, sans-serif', labelFont: '12px system-ui, sans-serif', size: 72, labelSize: 22,
      values: write && ((u, values) => values.map((value) => value === null ? '' : write(value)))});
    plot = new uPlot({
      width: holder.clientWidth, height: 300, cursor: {drag: {x: true, y: false}},
      legend: {show: true},
      scales: {x: {time: false}, y: {range: (u, low, high) => kind === 'dots' && low > 0.5 * high
                 ? [low - 0.2 * (high - low) - 0.01 * high, high + 0.2 * (high - low) + 0.01 * high]
                 : [Math.min(0, low), high > 0 ? high * 1.05 : 1]}},
      axes: [{...axis(axes.x, xText, stepsOf(xText)), size: 34}, axis(axes.y, text, stepsOf(text))],
      series: [{label: axes.x, value: (u, value) => value === null ? '-' : (xText ?? String)(value)},
               ...series.map((one, n) => ({
                 label: one.name, stroke: colour(one.dashed ? '--bad' : seriesColour(n)), width: 2,
                 dash: one.dashed ? [6, 4] : undefined,
                 fill: kind === 'steps' && !one.dashed ? colour(seriesColour(n)) + '22' : undefined,
                 paths: kind === 'dots' && !one.dashed ? () => null
                   : kind === 'steps' ? uPlot.paths.stepped({align: 1}) : undefined,
                 points: {show: kind === 'dots' || one.values.length < 40, size: kind === 'dots' ? 9 : 5,
                          fill: colour(seriesColour(n))},
                 value: (u, value) => value === null ? '-' : text(value),
               }))],
    }, [x, ...series.map((one) => one.values)], holder);
  });
  return holder;
}
