// SPDX-License-Identifier: Apache-2.0
// A network of links drawn by levels: hosts below, switches by their distance from them.
import {h, svg} from './dom.js';
import {percent} from './format.js';

const kLinks = 600;  // the busiest are drawn
const kNodes = 400;

const endsOf = (name) => name.split('->');

function levelsOf(links, hosts) {
  const next = new Map();
  for (const link of links) {
    const [from, to] = endsOf(link.name);
    next.set(from, [...(next.get(from) ?? []), to]);
    next.set(to, [...(next.get(to) ?? []), from]);
  }
  const level = new Map([...next.keys()].filter((node) => hosts.has(node)).map((node) => [node, 0]));
  if (level.size === 0 && next.size > 0) {
    level.set(next.keys().next().value, 0);
  }
  let edge = [...level.keys()];
  while (edge.length > 0) {
    const further = [];
    for (const node of edge) {
      for (const other of next.get(node)) {
        if (!level.has(other)) {
          level.set(other, level.get(node) + 1);
          further.push(other);
        }
      }
    }
    edge = further;
  }
  return level;
}

/** Returns a drawing. `links`: [{name: "a->b", use: share of the time it is busy}]; `hosts`: set of names. */
export function topology(links, hosts) {
  const shown = [...links].sort((a, b) => b.use - a.use).slice(0, kLinks).filter((link) => endsOf(link.name).length === 2);
  const level = levelsOf(shown, hosts);
  const rows = [];
  for (const [node, n] of level) {
    (rows[n] ??= []).push(node);
  }
  rows.forEach((row) => row.sort((a, b) => a.localeCompare(b, 'en', {numeric: true})));
  const width = 1000;
  const height = 90 * Math.max(1, rows.length) + 20;
  const place = new Map();
  rows.forEach((row, n) => row.forEach((node, i) =>
    place.set(node, [width * (i + 0.5) / row.length, height - 45 - 90 * n])));
  const most = Math.max(...shown.map((link) => link.use), 1e-12);
  const lines = shown.filter((link) => endsOf(link.name).every((end) => place.has(end))).reverse().map((link) => {
    const [[x1, y1], [x2, y2]] = endsOf(link.name).map((end) => place.get(end));
    const side = endsOf(link.name)[0] < endsOf(link.name)[1] ? 3 : -3;  // both directions are seen
    const line = svg('line', {x1: x1 + side, y1, x2: x2 + side, y2, class: 'link'},
                     svg('title', {}, `${link.name}: busy ${percent(link.use)}`));
    line.style.stroke = `color-mix(in oklab, var(--bad) ${Math.round(100 * link.use / most)}%, var(--calm))`;
    line.style.strokeWidth = `${1 + 4 * link.use / most}`;
    return line;
  });
  const nodes = [...place].slice(0, kNodes).map(([name, [cx, cy]]) => {
    const row = rows[level.get(name)].length;
    return svg('g', {}, svg('circle', {cx, cy, r: row > 60 ? 3 : 7, class: 'node'}, svg('title', {}, name)),
               row <= 16 ? svg('text', {x: cx, y: cy + (level.get(name) === 0 ? 24 : -13), class: 'node-name'}, name) : null);
  });
  const busiest = shown[0];
  return h('div', {}, svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', class: 'topology', 'aria-label':
    `Network of ${level.size} nodes; the busiest link is ${busiest?.name}, busy ${percent(busiest?.use ?? 0)}`}, lines, nodes),
    links.length > shown.length ? h('p', {class: 'note'}, `The ${shown.length} busiest of ${links.length} links are drawn.`) : null);
}
