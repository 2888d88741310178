// SPDX-License-Identifier: Apache-2.0
// Every field of a report as tables, with the sentences of its schema.
import {h} from './dom.js';
import {label, valueText} from './format.js';

const kRows = 200;  // shown before "show all"
const kLong = 60;   // letters of a text that is broken into lines

const isPlain = (value) => value === null || typeof value !== 'object';
const isRecord = (value) => !isPlain(value) && !Array.isArray(value);

const inner = (schema, key) => schema?.properties?.[key] ??
  (isRecord(schema?.additionalProperties) ? schema.additionalProperties : undefined);

function cell(key, value) {
  const exact = typeof value === 'number';
  const text = isPlain(value) ? valueText(key, value)
    : Array.isArray(value) && value.every(isPlain) ? value.map((one) => valueText(key, one)).join(', ')
    : Array.isArray(value) ? `${value.length} rows` : JSON.stringify(value);
  return h('td', {class: exact ? 'number' : text.length > kLong ? 'long' : undefined, title: exact ? String(value) : undefined}, text);
}

/** Returns a table whose rows may be many: the first of them, and a button for the others. */
export function table(caption, columns, rows, keys = columns) {
  const body = h('tbody');
  const add = (from, to) => {
    for (const row of rows.slice(from, to)) {
      body.append(h('tr', {}, row.map((value, i) => value instanceof Node ? h('td', {}, value)
                                                                          : cell(keys[i] ?? '', value))));
    }
  };
  add(0, kRows);
  const whole = h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
                  h('table', {}, h('caption', {}, caption),
                    h('thead', {}, h('tr', {}, columns.map((name) => h('th', {scope: 'col'}, name)))), body));
  if (rows.length <= kRows) {
    return whole;
  }
  const more = h('button', {type: 'button', class: 'more'}, `Show all ${rows.length} rows`);
  more.addEventListener('click', () => {
    add(kRows, rows.length);
    more.remove();
  });
  return h('div', {}, whole, more);
}

function scalars(name, path, value, schema) {
  const rows = Object.entries(value).filter(([, one]) => isPlain(one) || (Array.isArray(one) && one.every(isPlain)));
  if (rows.length === 0) {
    return null;
  }
  const body = rows.map(([key, one]) => {
    const meaning = inner(schema, key)?.description ?? '';
    const unit = /80 % of such runs/.test(meaning) ? '_s' : '';  // interval80 of a step; that of goodput is of shares
    return h('tr', {}, h('th', {scope: 'row'}, label(key)), cell(`${path}${key}${unit}`, one),
             h('td', {class: 'meaning'}, meaning));
  });
  return h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': name},
           h('table', {}, h('caption', {}, name), h('tbody', {}, body)));
}

function columnsOf(rows) {
  const columns = [];
  for (const row of rows) {
    for (const key of Object.keys(row)) {
      if (!columns.includes(key)) {
        columns.push(key);
      }
    }
  }
  return columns;
}

function list(name, path, rows, schema) {
  if (rows.every(isRecord)) {
    const flat = rows.map((row) => {
      const {plan, ...rest} = row;  // a plan's many fields are rows of their own table
      return rest;
    });
    const columns = columnsOf(flat);
    return table(name, columns.map(label), flat.map((row) => columns.map((key) => row[key])),
                 columns.map((key) => `${path}${key}`));
  }
  return table(name, ['', name], rows.map((row, i) => [i, row]), ['', path]);
}

/** Returns the tables of an object, outermost fields first. */
export function tablesOf(name, value, schema, path = '') {
  const tables = [scalars(name, path, value, schema)];
  for (const [key, one] of Object.entries(value)) {
    const here = `${path}${key}.`;
    const title = path + key;
    if (isRecord(one)) {
      tables.push(...tablesOf(title, one, inner(schema, key), here));
    } else if (Array.isArray(one) && one.length > 0 && !one.every(isPlain)) {
      tables.push(list(title, here, one, inner(schema, key)?.items));
    }
  }
  return tables.filter((one) => one !== null);
}
