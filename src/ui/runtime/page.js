// SPDX-License-Identifier: Apache-2.0
// The page of `orrery ui`: a study in each column, run whenever it changes. No framework, no other source.
'use strict';

// Fields of a plan that get a slider, with the values that it offers; the others are in the list.
const SLIDERS = {
  tp: [1, 2, 4, 8, 16, 32], pp: [1, 2, 4, 8, 16, 32], cp: [1, 2, 4, 8, 16], ep: [1, 2, 4, 8, 16, 32, 64],
  microbatch: [1, 2, 4, 8, 16], global_batch: [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096],
  sequence: [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072], zero: [0, 1, 2, 3],
};
const REQUESTS = {  // of kind serve: usual values
  'requests.count': [100, 200, 500, 1000], 'requests.rate': [0.5, 1, 2, 4, 8, 16, 32, 64],
  'requests.input': [128, 256, 512, 1024, 2048, 4096], 'requests.output': [32, 64, 128, 256, 512, 1024],
};
const DEVICES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];
const MULTIPLES = [0.25, 0.5, 0.71, 0.84, 1, 1.19, 1.41, 2, 4];
const PAUSE = 120;  // milliseconds between the last change and the run

const make = (tag, fields = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), fields);
  element.append(...children);
  return element;
};

async function ask(path, body, signal) {
  const reply = await fetch(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, signal,
                                   body: typeof body === 'string' ? body : JSON.stringify(body)});
  const answer = await reply.json();
  if (!reply.ok) throw new Error(answer.error || reply.statusText);
  return answer;
}

const number = (value, digits = 3) => Number(value).toLocaleString('en', {maximumSignificantDigits: digits});

function seconds(value) {
  for (const [unit, factor] of [['s', 1], ['ms', 1e3], ['us', 1e6]]) {
    if (value * factor >= 1) return `${number(value * factor, 4)} ${unit}`;
  }
  return `${number(value, 4)} s`;
}

const gibibytes = (value) => `${number(value / 2 ** 30, 4)} GiB`;

// A scalar as YAML: quoted where plain it would mean something else.
function scalar(value) {
  if (typeof value !== 'string') return String(value);
  return /^[A-Za-z0-9][\w .@/+-]*$/.test(value) && !/^(true|false|null|yes|no|on|off)$/i.test(value)
    ? value : JSON.stringify(value);
}

function yaml(study) {
  const lines = ['# made by orrery ui; run it with: orrery sweep shared.yaml --store shared.db'];
  for (const [name, value] of Object.entries(study)) {
    if (value === null || typeof value !== 'object') {
      lines.push(`${name}: ${scalar(value)}`);
      continue;
    }
    lines.push(`${name}:`);
    for (const [field, inner] of Object.entries(value)) {
      lines.push(`  ${field}: ${Array.isArray(inner) ? `[${inner.map(scalar).join(', ')}]` : scalar(inner)}`);
    }
  }
  return lines.join('\n') + '\n';
}

// Scalars of a description by dotted names; items of a list by number.
function* leaves(node, path = '') {
  if (node !== null && typeof node === 'object') {
    for (const [name, inner] of Object.entries(node)) yield* leaves(inner, path ? `${path}.${name}` : name);
  } else if (node !== null) {
    yield [path, node];
  }
}

class Column {
  constructor(letter, choices, changed) {
    this.letter = letter;
    this.choices = choices;
    this.changed = changed;
    this.state = {kind: 'simulate', model: 'llama-3-8b', machine: 'dgx-h100', devices: 8, plan: '', fields: {}, vary: {}};
    this.article = document.getElementById('column').content.cloneNode(true).querySelector('article');
    this.find = (selector) => this.article.querySelector(selector);
    this.find('h2').textContent = letter;
    for (const details of this.article.querySelectorAll('details')) {
      details.querySelector('input').addEventListener('input', (event) => {
        const wanted = event.target.value.toLowerCase();
        for (const row of details.querySelectorAll('.row')) {
          row.hidden = !(row.textContent + row.title).toLowerCase().includes(wanted);
        }
      });
    }
    this.build();
  }

  // The study that the column stands for, as `orrery sweep` reads it.
  study() {
    const {kind, model, machine, devices, plan, fields, vary} = this.state;
    const study = {kind, model, machine};
    const varied = {};
    if (kind === 'simulate') {
      study.devices = devices;
      study.allow_oom = true;
      if (plan) {
        study.plan = plan;
        for (const [name, value] of Object.entries(fields)) varied[`plan.${name}`] = [value];
      } else if (Object.keys(fields).length) {
        study.plan = fields;
      }
    } else {
      if (this.state.engine) study.engine = this.state.engine;
      const requests = {};
      for (const [name, value] of Object.entries(vary)) {
        if (name.startsWith('requests.')) requests[name.slice(9)] = value;
      }
      if (Object.keys(requests).length) study.requests = requests;
    }
    for (const [name, value] of Object.entries(vary)) {
      if (!name.startsWith('requests.') && (kind === 'serve' || !name.startsWith('engine.'))) varied[name] = [value];
    }
    if (Object.keys(varied).length) study.vary = varied;
    return study;
  }

  open(study) {
    const one = (value) => Array.isArray(value) ? value[0] : value;
    const state = {kind: study.kind || 'simulate', model: study.model, machine: study.machine,
                   devices: study.devices ?? 8, plan: '', fields: {}, vary: {}, engine: study.engine};
    if (typeof study.plan === 'string') state.plan = study.plan;
    else Object.assign(state.fields, study.plan || {});
    for (const [name, value] of Object.entries(study.requests || {})) state.vary[`requests.${name}`] = value;
    for (const [name, value] of Object.entries(study.vary || {})) {
      if (name.startsWith('plan.')) state.fields[name.slice(5)] = one(value);
      else if (name in state) state[name] = one(value);
      else state.vary[name] = one(value);
    }
    this.state = state;
    this.build();
    this.update();
  }

  select(label, names, value, change) {
    const select = make('select', {ariaLabel: label}, ...names.map((name) => make('option', {
      value: name, textContent: name || 'none', selected: name === value})));
    select.addEventListener('change', () => { change(select.value); this.build(); this.update(); });
    return make('label', {textContent: label}, select);
  }

  build() {
    const {state, choices} = this;
    const pick = (name) => (value) => {
      state[name] = value;
      const prefix = `${name}.`;
      for (const field of Object.keys(state.vary)) if (field.startsWith(prefix)) delete state.vary[field];
    };
    const rows = [
      this.select('what', ['simulate', 'serve'], state.kind, pick('kind')),
      this.select('model', choices.models, state.model, pick('model')),
      this.select('machine', choices.machines, state.machine, pick('machine')),
      state.kind === 'simulate' ? this.select('plan', ['', ...choices.plans], state.plan, pick('plan'))
                                : this.select('engine', ['', ...choices.engines], state.engine || '', pick('engine')),
    ];
    this.find('.choices').replaceChildren(...rows);
    this.buildSliders();
    this.buildFields();
    this.buildLeaves('machine');
    this.buildLeaves('model');
  }

  buildSliders() {
    const {state} = this;
    const rows = [];
    if (state.kind === 'simulate') {
      rows.push(this.slider('devices', DEVICES, state.devices, (value) => { state.devices = value ?? 8; }));
      for (const field of this.choices.plan_fields) {
        if (!(field.name in SLIDERS)) continue;
        rows.push(this.slider(field.name, SLIDERS[field.name], state.fields[field.name],
                              (value) => this.set(state.fields, field.name, value), field.sentence));
      }
    } else {
      for (const [name, values] of Object.entries(REQUESTS)) {
        rows.push(this.slider(name, values, state.vary[name], (value) => this.set(state.vary, name, value)));
      }
    }
    this.find('.sliders').replaceChildren(...rows);
  }

  set(where, name, value) {
    if (value === undefined || value === '') delete where[name];
    else where[name] = value;
  }

  // A slider whose left end is "not given".
  slider(name, values, value, change, title = '') {
    const open = name === 'devices' ? [] : [undefined];
    const all = [...open, ...values];
    if (value !== undefined && !all.includes(value)) all.push(value);
    const range = make('input', {type: 'range', min: 0, max: all.length - 1, step: 1, ariaLabel: name,
                                 value: Math.max(all.indexOf(value), 0)});
    const shown = make('span', {className: 'hint'});
    const row = make('div', {className: 'row', title}, make('span', {textContent: name}), range, shown);
    const show = () => {
      const chosen = all[range.value];
      shown.textContent = chosen ?? 'default';
      range.setAttribute('aria-valuetext', shown.textContent);
      row.classList.toggle('set', chosen !== undefined);
      return chosen;
    };
    range.addEventListener('input', () => { change(show()); this.update(); });
    show();
    return row;
  }

  // One field with a text or a choice; empty means "not given".
  field(name, value, {kind = '', sentence = '', placeholder = 'default'}, change) {
    const names = kind === '[BOOL]' ? ['true', 'false'] : (kind.match(/^\{(.*)\}$/) || [])[1]?.split(',');
    const input = names
      ? make('select', {ariaLabel: name}, ...['', ...names].map((one) => make('option', {
          value: one, textContent: one || placeholder, selected: one === String(value ?? '')})))
      : make('input', {type: 'text', value: value ?? '', placeholder, ariaLabel: name});
    const row = make('div', {className: 'row', title: sentence}, make('span', {textContent: name}),
                     make('span', {className: 'hint', textContent: sentence.split(';')[0]}), input);
    row.classList.toggle('set', value !== undefined);
    input.addEventListener('change', () => {
      row.classList.toggle('set', input.value !== '');
      change(input.value === '' ? undefined : input.value);
      this.update();
    });
    return row;
  }

  buildFields() {
    const {state} = this;
    const training = state.kind === 'simulate';
    const list = training ? this.choices.plan_fields : this.choices.engine_fields;
    this.find('.all summary').textContent = training ? 'Plan: every field' : 'Engine: every field';
    this.find('.all .fields').replaceChildren(...list.filter((field) => !(training && field.name in SLIDERS)).map(
      (field) => {
        const name = training ? field.name : `engine.${field.name}`;
        const where = training ? state.fields : state.vary;
        return this.field(field.name, where[name], field, (value) => this.set(where, name, value));
      }));
  }

  async buildLeaves(kind) {
    const {state} = this;
    const fields = this.find(`.${kind} .fields`);
    fields.replaceChildren();
    let description;
    try {
      description = await ask('/api/describe', {kind, name: state[kind]});
    } catch (problem) {
      fields.textContent = problem.message;
      return;
    }
    const rows = [];
    for (const [path, value] of leaves(description)) {
      const name = `${kind}.${path}`;
      const quantity = String(value).match(/^([\d.]+(?:e[+-]?\d+)?)( [A-Za-z].*)$/);
      const change = (next) => this.set(state.vary, name, next);
      if (!quantity) {
        rows.push(this.field(path, state.vary[name], {placeholder: String(value)}, change));
        continue;
      }
      const texts = MULTIPLES.map((factor) => `${Number((quantity[1] * factor).toPrecision(4))}${quantity[2]}`);
      texts[MULTIPLES.indexOf(1)] = String(value);
      rows.push(this.quantity(path, texts, String(value), state.vary[name], change));
    }
    if (state === this.state) fields.replaceChildren(...rows);
  }

  // A slider around what a description states.
  quantity(path, texts, stated, value, change) {
    const all = texts.includes(value ?? stated) ? texts : [...texts, value];
    const range = make('input', {type: 'range', min: 0, max: all.length - 1, step: 1, ariaLabel: path,
                                 value: all.indexOf(value ?? stated)});
    const shown = make('span', {className: 'hint', textContent: value ?? stated});
    const row = make('div', {className: 'row'}, make('span', {textContent: path}), range, shown);
    row.classList.toggle('set', value !== undefined);
    range.addEventListener('input', () => {
      const text = all[range.value];
      shown.textContent = text;
      row.classList.toggle('set', text !== stated);
      change(text === stated ? undefined : text);
      this.update();
    });
    return row;
  }

  update() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), PAUSE);
    this.changed();
  }

  async run() {
    this.abort?.abort();
    this.abort = new AbortController();
    const result = this.find('.result');
    result.classList.add('busy');
    try {
      const answer = await ask('/api/run', this.study(), this.abort.signal);
      this.figures = answer.figures;
      this.error = answer.error;
    } catch (problem) {
      if (problem.name === 'AbortError') return;
      this.figures = {};
      this.error = problem.message;
    }
    result.classList.remove('busy');
    this.changed();
  }

  // The figure that a column is compared by.
  main() {
    return this.state.kind === 'simulate' ? this.figures?.step_time_s : this.figures?.e2e_mean_s;
  }

  // By how much column B's figure differs from A's: of steps of different batches the fair comparison.
  share(other, name) {
    const [own, before] = [this.figures?.[name], other?.figures?.[name]];
    if (this.letter !== 'B' || own == null || before == null || own === before) return '';
    return ` (${own > before ? '+' : '−'}${number(Math.abs(own / before - 1) * 100)} %)`;
  }

  show(other) {
    const figures = this.figures || {};
    const time = this.find('.time');
    const main = this.main();
    time.textContent = main == null ? '–' : seconds(main);
    if (main != null && other?.main() != null && other.state.kind === this.state.kind && this.letter === 'B') {
      const ratio = main / other.main();
      time.append(make('small', {className: ratio < 1 ? 'faster' : ratio > 1 ? 'slower' : '',
        textContent: ratio === 1 ? 'as A' : `${number(Math.abs(1 - ratio) * 100)} % ${ratio < 1 ? 'less' : 'more'} than A`}));
    }
    const parts = [];
    const add = (name, text) => { if (figures[name] != null) parts.push(text(figures[name])); };
    add('total_devices', (value) => `${number(value, 6)} devices`);
    add('tokens_per_s', (value) => `${number(value)} tokens/s${this.share(other, 'tokens_per_s')}`);
    add('mfu', (value) => `MFU ${number(value * 100)} %`);
    add('output_tokens_per_s', (value) => `${number(value)} output tokens/s`);
    add('ttft_mean_s', (value) => `first token ${seconds(value)}`);
    add('tpot_mean_s', (value) => `each further ${seconds(value)}`);
    add('cost_per_million_tokens', (value) => `${number(value)} USD per million tokens`);
    this.find('.figures').textContent = parts.join(' · ');
    const {memory_bytes: used, capacity_bytes: capacity} = figures;
    this.find('.memory').hidden = !capacity;
    this.find('.memory-text').textContent =
      capacity ? `memory ${gibibytes(used)} of ${gibibytes(capacity)}${used > capacity ? ': does not fit' : ''}` : '';
    const bar = this.find('.used');
    bar.style.width = `${capacity ? Math.min(100, used / capacity * 100) : 0}%`;
    bar.classList.toggle('over', used > capacity);
    this.find('.error').textContent = this.error || '';
  }
}

async function begin() {
  history.replaceState(null, '', '/');  // the cookie has the token
  const choices = await ask('/api/choices', {});
  const columns = {};
  const which = document.getElementById('which');
  const text = document.getElementById('yaml');
  const status = document.getElementById('shared');
  const changed = () => {
    if (!columns.B) return;
    columns.A.show(columns.B);
    columns.B.show(columns.A);
    if (document.activeElement !== text) text.value = yaml(columns[which.value].study());
  };
  for (const letter of ['A', 'B']) {
    columns[letter] = new Column(letter, choices, changed);
    document.getElementById('columns').append(columns[letter].article);
  }
  columns.B.open({...columns.A.study(), plan: {tp: 2}});
  columns.A.update();
  which.addEventListener('change', changed);
  document.getElementById('open').addEventListener('click', async () => {
    try {
      columns[which.value].open(await ask('/api/read', text.value));
      status.textContent = 'opened';
    } catch (problem) {
      status.textContent = problem.message;
    }
  });
  document.getElementById('copy').addEventListener('click', async () => {
    await navigator.clipboard.writeText(text.value);
    status.textContent = 'copied';
  });
}

begin().catch((problem) => { document.getElementById('columns').textContent = problem.message; });
