// What was measured of one link lately.

export const WINDOW = 120; // seconds that a chart shows
const LATELY = 10; // seconds that borrowed and new drops are of
const GAP = 4; // seconds without a measurement that are a hole in the chart

export class History {
  constructor() {
    this.samples = []; // {t, classes: [admin.Class]}, oldest first; t in seconds
  }

  add(t, classes) {
    const last = this.samples.at(-1);
    // A counter that goes down is another daemon's: what was before it is no history of this one.
    if (last && classes.some((c, i) => c.sent < last.classes[i].sent)) this.samples = [];
    this.samples.push({ t, classes });
    while (this.samples[0].t < t - WINDOW - GAP) this.samples.shift();
  }

  // lately returns the classes as they were about LATELY seconds ago.
  lately() {
    const t = this.samples.at(-1).t;
    return this.samples.find((s) => s.t >= t - LATELY).classes;
  }

  // columns are the times and each class's rates, with holes where nothing was asked.
  columns() {
    const n = this.samples[0]?.classes.length ?? 0;
    const times = [];
    const rates = Array.from({ length: n }, () => []);
    let before = Infinity;
    for (const { t, classes } of this.samples) {
      if (t - before > GAP) {
        times.push(before + 1);
        for (const r of rates) r.push(null);
      }
      times.push(t);
      classes.forEach((c, i) => rates[i].push(c.achieved));
      before = t;
    }
    return { times, rates };
  }
}
