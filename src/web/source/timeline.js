// SPDX-License-Identifier: Apache-2.0
// The spans of a run on a canvas: a lane per class of ranks and stream, to zoom and to walk through.
import {colour, h, redrawn, seriesColour} from './dom.js';
import {time} from './format.js';

const kLane = 18;      // pixels
const kName = 170;     // of the lanes' names
const kAxis = 22;
const kClosest = 50;   // nanoseconds on the whole width

/** Columns of numbers as spans of lanes: begins and lengths in nanoseconds. */
function lanesOf(data) {
  const lanes = data.lanes.map((lane) => ({...lane, spans: []}));
  data.spans.forEach(([lane, begin, length, name, category, count]) => {
    lanes[lane].spans.push({begin, end: begin + length, name: data.names[name], category, count});
  });
  for (const lane of lanes) {
    lane.spans.sort((a, b) => a.begin - b.begin);
  }
  return lanes;
}

const laneName = (lane) => `rank ${lane.rank}${lane.like > 1 ? ` (+${lane.like - 1})` : ''} ${lane.stream}`;
const spanText = (lane, span, categories) =>
  `${laneName(lane)}: ${span.count > 1 ? `${span.count} spans, most of them ` : ''}${span.name}, ` +
  `${categories[span.category]}, ${time(span.begin * 1e-9)} to ${time(span.end * 1e-9)} (${time((span.end - span.begin) * 1e-9)})`;

class View {
  constructor(end) {
    this.whole = end;
    this.from = 0;
    this.to = end;
  }
  zoom(factor, at) {
    const width = Math.min(this.whole, Math.max(kClosest, (this.to - this.from) * factor));
    const share = (at - this.from) / (this.to - this.from);
    this.move(at - share * width, width);
  }
  move(from, width = this.to - this.from) {
    this.from = Math.min(Math.max(0, from), this.whole - width);
    this.to = this.from + width;
  }
}

function drawAxis(pen, view, width, x) {
  const step = 10 ** Math.floor(Math.log10((view.to - view.from) / 4));
  const every = [1, 2, 5, 10].map((f) => f * step).find((s) => (view.to - view.from) / s <= 8) ?? 10 * step;
  pen.fillStyle = colour('--text');
  pen.strokeStyle = colour('--grid');
  for (let t = Math.ceil(view.from / every) * every; t <= view.to; t += every) {
    pen.beginPath();
    pen.moveTo(x(t), kAxis - 4);
    pen.lineTo(x(t), pen.canvas.height);
    pen.stroke();
    if (x(t) < width - 30) {
      pen.fillText(time(t * 1e-9), x(t) + 3, 13);
    }
  }
}

function drawLane(pen, lane, row, view, x, colours) {
  const top = kAxis + row * kLane;
  for (const span of lane.spans) {
    if (span.end < view.from || span.begin > view.to) {
      continue;
    }
    const left = Math.max(kName, x(span.begin));
    const width = Math.max(0.7, x(span.end) - left);
    pen.fillStyle = colours[span.category];
    pen.fillRect(left, top + 1, width, kLane - 3);
    if (width > 34) {
      pen.save();
      pen.beginPath();
      pen.rect(left, top, width - 2, kLane);
      pen.clip();
      pen.fillStyle = '#fff';
      pen.fillText(span.name, left + 3, top + 12);
      pen.restore();
    }
  }
}

/** Returns the element: canvas, line of what is chosen, legend, buttons. */
export function timeline(data) {
  const lanes = lanesOf(data);
  const view = new View(data.end);
  let chosen = {lane: 0, span: -1};
  const canvas = h('canvas', {class: 'timeline', tabindex: '0', role: 'application', 'aria-label':
    `Timeline of ${lanes.length} lanes over ${time(data.end * 1e-9)}. Arrow keys choose a span, plus and minus zoom, ` +
    'page up and down move, home shows all.'});
  const line = h('p', {class: 'chosen', 'aria-live': 'polite'},
                 'Wheel or + and − zoom, drag or Page Up and Down move, arrow keys walk from span to span, Home shows all.');
  const room = h('div', {class: 'timeline-room'}, canvas);

  const x = (t) => kName + (t - view.from) / (view.to - view.from) * (canvas.clientWidth - kName);
  const timeAt = (pixel) => view.from + (pixel - kName) / (canvas.clientWidth - kName) * (view.to - view.from);
  const draw = () => {
    const dots = devicePixelRatio || 1;
    const height = kAxis + lanes.length * kLane + 2;
    canvas.width = room.clientWidth * dots;
    canvas.height = height * dots;
    canvas.style.width = `${room.clientWidth}px`;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext('2d');
    pen.scale(dots, dots);
    pen.font = '11px system-ui, sans-serif';
    drawAxis(pen, view, room.clientWidth, x);
    const colours = data.categories.map((_, n) => colour(seriesColour(n)));
    lanes.forEach((lane, row) => {
      drawLane(pen, lane, row, view, x, colours);
      pen.fillStyle = colour('--panel');
      pen.fillRect(0, kAxis + row * kLane, kName - 2, kLane);
      pen.fillStyle = colour('--text');
      pen.fillText(laneName(lane), 2, kAxis + row * kLane + 12, kName - 8);
    });
    const span = lanes[chosen.lane]?.spans[chosen.span];
    if (span) {
      pen.strokeStyle = colour('--text');
      pen.lineWidth = 2;
      pen.strokeRect(x(span.begin), kAxis + chosen.lane * kLane + 1, Math.max(3, x(span.end) - x(span.begin)), kLane - 3);
    }
  };
  const choose = (lane, span) => {
    chosen = {lane, span};
    const one = lanes[lane]?.spans[span];
    if (one) {
      line.textContent = spanText(lanes[lane], one, data.categories);
      if (one.end < view.from || one.begin > view.to) {
        view.move((one.begin + one.end - (view.to - view.from)) / 2);
      }
    }
    draw();
  };
  const nearest = (lane, at) => {
    const spans = lanes[lane]?.spans ?? [];
    return spans.findIndex((span) => span.begin <= at && at <= span.end);
  };

  canvas.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && document.activeElement !== canvas) {
      return;  // the page scrolls until the timeline is chosen
    }
    event.preventDefault();
    view.zoom(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event.offsetX));
    draw();
  }, {passive: false});
  let held = null;
  canvas.addEventListener('pointerdown', (event) => {
    held = {at: event.offsetX, from: view.from, moved: false};
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({preventScroll: true});
  });
  canvas.addEventListener('pointermove', (event) => {
    if (held) {
      held.moved ||= Math.abs(event.offsetX - held.at) > 3;
      view.move(held.from - (event.offsetX - held.at) / (canvas.clientWidth - kName) * (view.to - view.from));
      draw();
    }
  });
  canvas.addEventListener('pointerup', (event) => {
    const lane = Math.floor((event.offsetY - kAxis) / kLane);
    if (held && !held.moved && lanes[lane]) {
      choose(lane, nearest(lane, timeAt(event.offsetX)));
    }
    held = null;
  });
  const middle = () => (view.from + view.to) / 2;
  const keys = {
    '+': () => view.zoom(0.5, middle()), '=': () => view.zoom(0.5, middle()), '-': () => view.zoom(2, middle()),
    Home: () => view.zoom(Infinity, 0),
    PageDown: () => view.move(view.from + 0.8 * (view.to - view.from)),
    PageUp: () => view.move(view.from - 0.8 * (view.to - view.from)),
    ArrowRight: () => choose(chosen.lane, Math.min(chosen.span + 1, lanes[chosen.lane].spans.length - 1)),
    ArrowLeft: () => choose(chosen.lane, Math.max(chosen.span - 1, 0)),
    ArrowDown: () => choose(Math.min(chosen.lane + 1, lanes.length - 1), 0),
    ArrowUp: () => choose(Math.max(chosen.lane - 1, 0), 0),
  };
  canvas.addEventListener('keydown', (event) => {
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
      draw();
    }
  });
  const button = (text, key, name) => {
    const one = h('button', {type: 'button', 'aria-label': name}, text);
    one.addEventListener('click', () => {
      keys[key]();
      draw();
    });
    return one;
  };
  redrawn(room, draw);
  const used = new Set(data.spans.map((span) => span[4]));
  return h('div', {},
           h('p', {class: 'buttons'}, button('+', '+', 'Zoom in'), button('−', '-', 'Zoom out'),
             button('◀', 'PageUp', 'Earlier'), button('▶', 'PageDown', 'Later'), button('All', 'Home', 'Show all')),
           room, line,
           h('ul', {class: 'legend'}, data.categories.map((name, n) => {
             const mark = h('span', {class: 'mark', 'aria-hidden': 'true'});
             mark.style.background = `var(${seriesColour(n)})`;
             return used.has(n) ? h('li', {}, mark, name) : null;
           })));
}

/** Returns rows of the table behind it: busy time of every lane by category. */
export function timelineRows(data) {
  return lanesOf(data).map((lane) => [laneName(lane), lane.of, ...data.categories.map((_, category) =>
    lane.spans.filter((span) => span.category === category).reduce((sum, span) => sum + span.end - span.begin, 0) * 1e-9)]);
}
