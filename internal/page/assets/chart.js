// One link's chart: the classes' rates on top of each other, and the link's
// rate as a dashed line. The table beside it says the same in words.

import { WINDOW } from './history.js';
import * as format from './format.js';

/* global uPlot */

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// mixed is a colour laid thinly over another: areas cover those below, so they cannot be see-through.
function mixed(colour, ground, part) {
  const of = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const [a, b] = [of(colour), of(ground)];
  return `rgb(${a.map((v, i) => Math.round(v * part + b[i] * (1 - part))).join(',')})`;
}

export class Chart {
  // names and colours (numbers of the CSS variables --c0 and so on) are the classes'.
  constructor(place, names, colours) {
    this.place = place;
    this.names = names;
    this.colours = colours;
    this.limit = 0;
    this.tip = document.createElement('div');
    this.tip.className = 'tip';
    this.tip.hidden = true;
    this.build();
    new ResizeObserver(() => this.fit()).observe(place);
  }

  // build draws anew, in the colours that hold now.
  build() {
    this.plot?.destroy();
    const ground = style('--panel');
    const axis = {
      stroke: style('--soft'), font: `12px ${style('--font')}`, grid: { stroke: style('--line'), width: 1 }, ticks: { show: false },
    };
    // The sum of all is drawn first, and each further series covers it up to its own height.
    const series = this.names.map((_, i) => {
      const colour = style(`--c${this.colours[i]}`);
      return { stroke: colour, fill: mixed(colour, ground, 0.72), width: 1.5, points: { show: false } };
    }).reverse();
    const limit = { stroke: style('--text'), width: 1.5, dash: [6, 4], points: { show: false } };
    this.plot = new uPlot({
      ...this.size(),
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { time: false, range: () => [this.now - WINDOW, this.now] },
        y: { range: (_, __, max) => [0, Math.max(max || 0, this.limit, 1000) * 1.08] },
      },
      axes: [
        { ...axis, size: 26, splits: () => [120, 90, 60, 30, 0].map((s) => this.now - s), values: () => ['2 min ago', '', '1 min', '', 'now'] },
        { ...axis, size: 48, space: 34, values: (_, all) => all.map(format.short) },
      ],
      series: [{}, ...series, limit],
      hooks: { setCursor: [() => this.point()] },
    }, this.stacked ?? [[], ...this.names.map(() => []), []], this.place);
    this.plot.over.append(this.tip);
  }

  size() {
    return { width: Math.max(200, this.place.clientWidth), height: Math.max(120, this.place.clientHeight) };
  }

  fit() {
    const { width, height } = this.size();
    if (width !== this.plot.width || height !== this.plot.height) this.plot.setSize({ width, height });
  }

  // draw shows a history up to now; limit is the link's rate, 0 for none.
  draw({ times, rates }, now, limit) {
    this.now = now;
    this.limit = limit;
    this.rates = rates;
    const sum = times.map(() => 0);
    const stacked = rates.map((r) => r.map((v, t) => (v === null ? null : (sum[t] += v))));
    // The line spans the whole chart, also where there is no history yet.
    const ends = [now - WINDOW, ...times, now];
    const padded = (values, end) => [end, ...values, end];
    this.stacked = [ends, ...stacked.reverse().map((s) => padded(s, null)), padded(times.map(() => limit || null), limit || null)];
    this.plot.setData(this.stacked);
  }

  // point says what the rates were where the pointer is.
  point() {
    const i = this.plot.cursor.idx;
    const shown = i !== null && i !== undefined && this.plot.cursor.left >= 0 && this.rates?.[0]?.[i - 1] != null;
    this.tip.hidden = !shown;
    if (!shown) return;
    const title = document.createElement('b');
    const ago = Math.round(this.now - this.stacked[0][i]);
    title.textContent = ago === 0 ? 'now' : `${format.span(ago)} ago`;
    this.tip.replaceChildren(title, ...this.names.map((name, c) => {
      const line = document.createElement('span');
      line.className = `c${this.colours[c]}`;
      line.textContent = `${name} ${format.rate(this.rates[c][i - 1])}`;
      return line;
    }));
    const right = this.plot.cursor.left > this.plot.over.clientWidth / 2;
    this.tip.style.left = right ? '' : `${this.plot.cursor.left + 12}px`;
    this.tip.style.right = right ? `${this.plot.over.clientWidth - this.plot.cursor.left + 12}px` : '';
  }
}
