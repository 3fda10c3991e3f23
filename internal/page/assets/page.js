// Asks for the status each second and shows it.

import { Panel, element } from './panel.js';
import * as format from './format.js';
import * as notes from './notes.js';

const EVERY = 1000; // milliseconds between two questions
const RETRY = 2000; // after one that failed
const PATIENCE = 8000; // for an answer
const SPEAK = 10000; // between two summaries for screen readers
const COLOURS = 8; // --c0 to --c7 in page.css

const $ = (id) => document.getElementById(id);
const colours = new Map(); // of classes, by name: a class has the same one on every link
let panels = [];
let paused = false;
let timer;
let asking = false;
let spoken = -Infinity;

function colourOf(name) {
  if (!colours.has(name)) colours.set(name, colours.size % COLOURS);
  return colours.get(name);
}

function state(kind, text) {
  $('state').dataset.state = kind;
  if ($('state').textContent !== text) $('state').textContent = text;
}

function list(id, texts) {
  const section = $(id);
  section.hidden = texts.length === 0;
  const ul = section.querySelector('ul');
  if (JSON.stringify(texts) === ul.dataset.texts) return;
  ul.dataset.texts = JSON.stringify(texts);
  ul.replaceChildren(...texts.map((textContent) => element('li', { textContent })));
}

const facts = new Map();

function fact(name, text) {
  if (!facts.has(name)) {
    const dd = element('dd');
    $('facts').append(element('div', {}, element('dt', { textContent: name }), dd));
    facts.set(name, dd);
  }
  const dd = facts.get(name);
  if (dd.textContent !== text) dd.textContent = text;
}

function show(status, now) {
  state(status.state === 'ready' ? 'ready' : 'draining', status.state);
  fact('policy', status.policy);
  fact('up for', format.span((now - Date.parse(status.started)) / 1000));
  fact('overrides', status.overrides.length === 0 ? 'none' : format.count(status.overrides.length));
  fact('next change', notes.next(status, now));
  list('warnings', notes.warnings(status));
  list('overrides', notes.overrides(status, now));
  $('version').textContent = `shaperd ${status.version}`;

  const t = performance.now() / 1000;
  const before = panels;
  panels = status.links.map((l) => before.find((p) => p.key === Panel.key(l)) ?? new Panel(l, colourOf));
  if (panels.length !== before.length || panels.some((p, i) => p !== before[i])) {
    $('links').replaceChildren(...panels.map((p) => p.section));
  }
  status.links.forEach((l, i) => panels[i].update(l, t));

  if (performance.now() - spoken >= SPEAK) {
    $('summary').textContent = notes.summary(status);
    spoken = performance.now();
  }
}

function lost(why) {
  state('lost', 'connection lost');
  $('lost').hidden = false;
  const text = `Connection lost: ${why}. What you see is old; trying again.`;
  if ($('lost').textContent !== text) $('lost').textContent = text;
  document.body.classList.add('old');
}

async function ask() {
  const answer = await fetch('api/status', { cache: 'no-store', signal: AbortSignal.timeout(PATIENCE) });
  if (!answer.ok) throw new Error(`the daemon answers ${answer.status}`);
  // The daemon's clock, since the one here may be wrong.
  return [await answer.json(), Date.parse(answer.headers.get('Date')) || Date.now()];
}

const wanted = () => !paused && !document.hidden;

async function turn() {
  clearTimeout(timer);
  if (asking || !wanted()) return;
  asking = true;
  const began = performance.now();
  let wait = RETRY;
  let answer;
  try {
    answer = await ask();
  } catch (e) {
    if (wanted()) lost(e.name === 'TimeoutError' ? 'no answer' : e.message.startsWith('the daemon') ? e.message : 'the daemon is not reached');
  }
  asking = false;
  if (answer && !paused) {
    $('lost').hidden = true;
    document.body.classList.remove('old');
    show(...answer);
    wait = Math.max(0, EVERY - (performance.now() - began));
  }
  if (wanted()) timer = setTimeout(turn, wait);
}

$('pause').addEventListener('click', () => {
  paused = !paused;
  $('pause').textContent = paused ? 'Resume' : 'Pause';
  if (paused) state('paused', 'paused');
  else turn();
});
document.addEventListener('visibilitychange', turn);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const p of panels) p.chart?.build();
});
turn();
