// One link: a heading, its chart, and a table of its classes.

import { Chart } from './chart.js';
import { History } from './history.js';
import * as format from './format.js';

export function element(tag, properties = {}, ...children) {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...children); // strings become text, never HTML
  return e;
}

// set writes text where it differs, so that what a reader points at stays.
function set(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// What the datapaths count differs: the kernel has a queue of packets, a relay sessions that wait.
const COLUMNS = {
  kernel: ['borrowed', 'sent', 'drops', 'waiting'],
  relay: ['borrowed', 'sent', 'waiting', 'sessions'],
};

const RANGE = 'guaranteed \u2013 ceiling';
const COLUMN = { [RANGE]: 'use' };

const MEANING = {
  borrowed: 'Part of what was sent in the last 10 seconds above the guaranteed rate',
  sent: 'Sent since the start',
  drops: 'Packets dropped since the start, and how many of them in the last 10 seconds',
  waiting: 'What waits for its turn now',
  sessions: 'Connections in this class now',
};

let panels = 0;

export class Panel {
  constructor(link, colourOf) {
    this.key = Panel.key(link);
    this.columns = COLUMNS[link.datapath] ?? COLUMNS.kernel;
    this.history = new History();
    const id = `link-${panels++}`;
    this.now = element('span', { className: 'now' });
    this.of = element('span', { className: 'of' });
    const place = element('div', { className: 'chart' });
    place.setAttribute('role', 'img');
    place.setAttribute('aria-label', `Chart of the last 2 minutes of ${link.name}; the table has the numbers of now`);
    const colours = link.classes.map((c) => colourOf(c.name));
    this.rows = link.classes.map((c, i) => new Row(c, colours[i], this.columns));
    this.section = element('section', { className: 'panel' },
      element('div', { className: 'head' },
        element('h2', { id, textContent: link.name }),
        element('span', { className: 'badge', textContent: link.datapath }),
        element('p', {}, this.now, ' ', this.of)),
      element('div', { className: 'body' },
        element('div', {}, element('p', { className: 'caption', textContent: `bit/s, last 2 minutes${link.rate > 0 ? '; dashed: the link\u2019s rate' : ''}` }), place),
        this.table(id)));
    this.section.setAttribute('aria-labelledby', id);
    this.place = place;
    this.start = () => new Chart(place, link.classes.map((c) => c.name), colours);
  }

  // key differs where a panel has to be made anew.
  static key(link) {
    return JSON.stringify([link.name, link.datapath, link.classes.map((c) => c.name)]);
  }

  table(id) {
    const title = (name, text) => {
      const th = element('th', { scope: 'col', textContent: name, className: COLUMN[name] ?? name });
      if (text) th.title = text;
      return th;
    };
    const head = element('tr', {}, title('class'), title('now'), title(RANGE), ...this.columns.map((c) => title(c, MEANING[c])));
    const table = element('table', {}, element('thead', {}, head), element('tbody', {}, ...this.rows.map((r) => r.tr)));
    table.setAttribute('aria-labelledby', id);
    // A phone lays rows out as blocks, which would take their meaning from them.
    table.setAttribute('role', 'table');
    for (const [selector, role] of [['thead, tbody', 'rowgroup'], ['tr', 'row'], ['thead th', 'columnheader'], ['tbody th', 'rowheader'], ['td', 'cell']]) {
      for (const e of table.querySelectorAll(selector)) e.setAttribute('role', role);
    }
    return table;
  }

  update(link, t) {
    this.chart ??= this.start(); // it has a size only once it is in the page
    this.history.add(t, link.classes);
    const lately = this.history.lately();
    set(this.now, format.measured(link.achieved));
    set(this.of, link.rate > 0 ? `of ${format.rate(link.rate)}` : 'without a limit');
    link.classes.forEach((c, i) => this.rows[i].update(c, lately[i], link));
    this.chart.draw(this.history.columns(), t, link.rate);
  }
}

// A Row is one class.
class Row {
  constructor(c, colour, columns) {
    const cell = (name) => {
      const td = element('td', { className: name });
      td.dataset.label = name;
      return td;
    };
    this.now = cell('now');
    this.fill = element('i', { className: 'fill' });
    this.lent = element('i', { className: 'fill lent' });
    this.mark = element('i', { className: 'mark' });
    this.range = element('span');
    const bar = element('div', { className: 'bar' }, this.fill, this.lent, this.mark);
    bar.setAttribute('aria-hidden', 'true'); // the numbers are in the other cells
    this.cells = Object.fromEntries(columns.map((name) => [name, cell(name)]));
    this.tr = element('tr', { className: `c${colour}` },
      element('th', { scope: 'row', className: 'class', textContent: c.name }), this.now,
      element('td', { className: 'use' }, bar, this.range), ...Object.values(this.cells));
  }

  update(c, before, link) {
    const ceil = c.ceil || link.rate;
    const scale = Math.max(ceil || Math.max(this.most ?? 0, c.achieved, c.rate), 1);
    this.most = ceil ? 0 : scale;
    const part = (n) => `${Math.min(100, (100 * n) / scale).toFixed(1)}%`;
    this.fill.style.width = part(Math.min(c.achieved, c.rate));
    this.lent.style.left = part(c.rate);
    this.lent.style.width = part(Math.max(0, Math.min(c.achieved, scale) - c.rate));
    this.mark.hidden = c.rate <= 0 || c.rate >= scale;
    this.mark.style.left = part(c.rate);
    set(this.now, format.measured(c.achieved));
    const most = ceil ? format.rate(ceil) : 'no limit';
    set(this.range, c.rate === ceil ? most : `${c.rate > 0 ? format.rate(c.rate) : '0'} \u2013 ${most}`);
    for (const [name, td] of Object.entries(this.cells)) set(td, CELLS[name](c, before, link));
    this.tr.classList.toggle('idle', c.achieved < 1);
    this.cells.drops?.classList.toggle('grows', (c.dropped ?? 0) > (before.dropped ?? 0));
  }
}

const CELLS = {
  borrowed(c, before, link) {
    const total = (x) => (link.datapath === 'kernel' ? x.packets ?? 0 : x.sent);
    const sent = total(c) - total(before);
    return sent > 0 ? format.percent(Math.min(1, Math.max(0, (c.borrowed - before.borrowed) / sent))) : '\u2013';
  },
  sent: (c) => format.bytes(c.sent),
  drops(c, before) {
    const lately = (c.dropped ?? 0) - (before.dropped ?? 0);
    return format.count(c.dropped ?? 0) + (lately > 0 ? ` (+${format.count(lately)})` : '');
  },
  waiting: (c, _, link) => (link.datapath === 'kernel' ? format.bytes(c.backlog ?? 0) : format.count(c.backlogged ?? 0)),
  sessions: (c) => format.count(c.sessions ?? 0),
};
