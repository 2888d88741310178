// SPDX-License-Identifier: Apache-2.0
// A report: title, the few numbers that matter, figures with their formula, every field as a table. All of
// it is made of the JSON blocks of the page: what --json prints, its schema, and what only figures need.
import 'uplot/dist/uPlot.min.css';
import './report.css';
import {h} from './dom.js';
import {factsOf, figuresOf} from './figures.js';
import {formulas} from './formulas.js';
import {percent} from './format.js';
import {table, tablesOf} from './tables.js';

const block = (id) => JSON.parse(document.getElementById(id)?.textContent || 'null');

function formulaOf(name) {
  const [text, page, held] = formulas[name] ?? [];
  return text && h('details', {class: 'formula'}, h('summary', {}, 'How it is computed'), h('p', {}, text),
                   h('p', {}, 'In full: ', h('code', {}, page)), held && h('p', {}, 'Held to: ', held));
}

function figure(one, n, nearest) {
  const id = `figure-${n}`;
  const alike = ['step', 'plan', 'path', 'timeline', 'sensitivity', 'compare', 'serving'].includes(one.formula) ? nearest.steps
    : one.formula === 'memory' ? nearest.memory : [];
  return h('section', {class: 'figure', 'aria-labelledby': id},
           h('h2', {id}, one.title), one.chart, one.note && h('p', {class: 'note'}, one.note),
           one.table && (one.open ? one.table
                         : h('details', {}, h('summary', {}, 'As a table'), one.table)),
           formulaOf(one.formula),
           alike.length > 0 && h('p', {class: 'note'}, 'Nearest published runs: ', alike.slice(0, 6).map((row, i) =>
             [i > 0 ? '; ' : '', `${row.model} on ${row.devices} × ${row.machine}, ${row.measure}, error ${percent(row.error)}`]),
             ' (', h('a', {href: '#checked'}, 'below'), ').'));
}

function checked(nearest) {
  return h('section', {class: 'figure', id: 'checked', 'aria-labelledby': 'checked-title'},
           h('h2', {id: 'checked-title'}, 'Nearest published runs'),
           h('p', {}, 'Rows of the validation tables that are nearest to what this page shows in model, devices and plan, or ' +
             'lengths, predicted by this program as it is: how far this page may be trusted.'),
           table('Nearest published runs', ['table', 'row', 'model', 'machine', 'devices', 'measure', 'predicted', 'published', 'error'],
             [...nearest.steps, ...nearest.memory].map((row) => [row.table, row.key, row.model, row.machine, row.devices, row.measure,
                                                                 row.predicted, row.published, row.error]),
             ['', '', '', '', '', '', '', '', 'error']),
           formulaOf('validation'));
}

function titleOf(command, result) {
  const what = result.model ?? result.name ?? result.topology ?? result.title ?? '';
  const where = result.machine ? ` on ${result.devices ? `${result.devices.toLocaleString('en-US')} × ` : ''}${result.machine}` : '';
  return what ? `${what}${where}` : `orrery ${command}`;
}

function report() {
  const {command, version, cut, extra} = block('about');
  const result = block('result');
  const schema = block('schema');
  const figures = figuresOf(command, result, extra);
  const nearest = {steps: extra.nearest ?? [], memory: extra.nearest_memory ?? []};
  const compared = nearest.steps.length + nearest.memory.length > 0;
  const title = titleOf(command, result);
  document.title = `${title} - orrery ${command}`;
  const facts = factsOf(result);
  const room = document.getElementById('report');
  room.append(
    h('header', {}, h('p', {class: 'command'}, `orrery ${command}`), h('h1', {}, title),
      schema?.description && h('p', {class: 'note'}, schema.description),
      facts.length > 0 && h('dl', {class: 'facts'}, facts.map((fact) => h('div', {}, h('dt', {}, fact.name), h('dd', {}, fact.text))))),
    h('nav', {'aria-label': 'Contents'}, h('ol', {}, figures.map((one, n) =>
      h('li', {}, h('a', {href: `#figure-${n}`}, one.title))),
      compared && h('li', {}, h('a', {href: '#checked'}, 'Nearest published runs')),
      h('li', {}, h('a', {href: '#tables'}, 'Every field')))));
  figures.forEach((one, n) => room.append(figure(one, n, nearest)));
  if (compared) {
    room.append(checked(nearest));
  }
  room.append(h('section', {class: 'figure', id: 'tables', 'aria-labelledby': 'tables-title'},
                h('h2', {id: 'tables-title'}, 'Every field'),
                cut > 0 && h('p', {class: 'note'}, `Lists are cut after ${cut} items to keep the page small; --json has all.`),
                h('div', {class: 'tables'}, tablesOf('report', result, schema))),
              h('footer', {}, `Written by orrery ${version}. The page holds all that it shows: its script and style are in it, and it asks ` +
                'no other. The JSON of the report is the element "result".'));
  document.body.dataset.ready = 'yes';  // tests wait for it
}

addEventListener('beforeprint', () => document.querySelectorAll('details').forEach((one) => { one.open = true; }));
report();
