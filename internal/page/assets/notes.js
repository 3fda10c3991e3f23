// What the header says of a status, in words.

import * as format from './format.js';

const place = (o) => [o.class, o.link].filter(Boolean).join(' on ') || 'everything';

// next says what changes next, and when; now is the daemon's clock.
export function next(status, now) {
  if (!status.next) return 'none scheduled';
  const { day, time } = format.clock(status.next.at);
  const left = (Date.parse(status.next.at) - now) / 1000;
  const [first, ...others] = status.next.changes;
  let what = 'an override ends';
  if (first) {
    const differs = first.from.rate !== first.to.rate ? 'rate' : 'ceil';
    what = `${place(first)} ${differs === 'ceil' ? 'ceiling ' : ''}${format.rate(first.from[differs] ?? 0)} \u2192 ${format.rate(first.to[differs] ?? 0)}`;
    if (first.from[differs] === first.to[differs]) what = `${place(first)} burst`;
    if (others.length > 0) what += `, and ${others.length} more`;
  }
  const when = left < 86400 ? `at ${time}` : `${day} ${time}`;
  return `${when}, in ${format.span(left)}: ${what}`;
}

// overrides are what was set by hand; now is the daemon's clock.
export function overrides(status, now) {
  return status.overrides.map((o) => {
    const what = ['rate', 'ceil', 'burst'].filter((k) => o[k]).map((k) => `${k} ${o[k]}`).join(', ');
    let until = 'the next reload';
    if (o.until) {
      const { day, time } = format.clock(o.until);
      until = (Date.parse(o.until) - now) / 1000 < 86400 ? time : `${day} ${time}`;
    }
    return `${place(o)}: ${what}, until ${until}`;
  });
}

export function warnings(status) {
  const all = [];
  if (status.state === 'draining') all.push('The daemon ends: it takes no new connections');
  if (status.reloads.last_error?.length > 0) all.push(`The last reload failed, the policy is the one before: ${status.reloads.last_error.join('; ')}`);
  if (status.shared?.problem) all.push(`The Redis of shared classes is away: they have what on_outage says (${status.shared.on_outage}); ${status.shared.problem}`);
  for (const i of status.interfaces) {
    if (!i.present) all.push(`${i.name}: there is no such interface; it is shaped as soon as it appears`);
    else if (i.drift) all.push(`${i.name}: the kernel has something else than the policy wants${i.problem ? `: ${i.problem}` : '; it is being repaired'}`);
    else if (i.problem) all.push(`${i.name}: ${i.problem}`);
  }
  for (const l of status.links) {
    if (l.unshaped > 0) all.push(`${l.name}: ${format.count(l.unshaped)} packets passed that no class took`);
  }
  const cure = status.state === 'draining' ? '' : '; the next reload starts it again';
  for (const r of status.relays) {
    if (r.state !== 'serving') all.push(`relay ${r.name}: ${r.state}, ${format.count(r.sessions)} sessions${cure}`);
  }
  return all;
}

// summary is what a screen reader says: short, since it is said again and again.
export function summary(status) {
  const most = 4;
  const links = status.links.slice(0, most).map((l) => `${l.name} ${format.rate(l.achieved)}${l.rate > 0 ? ` of ${format.rate(l.rate)}` : ''}`);
  if (status.links.length > most) links.push(`${status.links.length - most} more links`);
  const n = warnings(status).length;
  return [status.state, ...links, n > 0 ? `${n} ${n === 1 ? 'warning' : 'warnings'}` : ''].filter(Boolean).join('. ');
}
