// --- The history as charts -----------------------------------------------------------------------

const WINDOW = 15 * 60 * 1000;
const DASHES = [[], [5, 2.5], [1.5, 2.5], [7, 2, 1.5, 2], [1, 4]];

const CHARTS = [
  {
    title: 'Requests',
    show: asRate,
    series: [
      ['reads_rate', 'reads'], ['writes_rate', 'writes'], ['others_rate', 'others'],
      ['errors_rate', 'errors']
    ]
  },
  {
    title: 'Time of reads',
    note: 'without waiting',
    show: asNanos,
    log: true,
    series: [['read_p50_nanos', 'p50'], ['read_p99_nanos', 'p99'], ['read_p999_nanos', 'p99.9']]
  },
  {
    title: 'Time of writes',
    note: 'without the sync',
    show: asNanos,
    log: true,
    series: [['write_p50_nanos', 'p50'], ['write_p99_nanos', 'p99'], ['write_p999_nanos', 'p99.9']]
  },
  {
    title: 'Time of a sync',
    show: asNanos,
    log: true,
    series: [['sync_mean_nanos', 'average'], ['sync_longest_nanos', 'longest']]
  },
  {
    title: 'Pressure',
    note: 'above 0.5 writers are slowed down',
    show: asPressure,
    least: 1000,
    line: 500,
    series: [
      ['flush_pressure', 'flushes'], ['merge_pressure', 'merges'],
      ['write_stall_share', 'writers that waited']
    ]
  },
  {
    title: 'Busy',
    show: asShare,
    least: 1000,
    series: [['loop_busy_share', 'busiest I/O thread'], ['sync_busy_share', 'disk, with a sync']]
  },
  {
    title: 'Memory',
    show: asBytes,
    series: [
      ['resident_bytes', 'process'], ['write_buffer_bytes', 'write buffers'],
      ['table_cache_bytes', 'offset tables'], ['block_cache_bytes', 'block cache'],
      ['clients_bytes', 'clients']
    ]
  },
  {
    title: 'Disk',
    show: asBytes,
    series:
        [['segment_bytes', 'segments'], ['value_bytes', 'values kept apart'], ['log_bytes', 'log']]
  },
  {
    title: 'Connections',
    show: asCount,
    series: [['connections', 'open'], ['refused_rate', 'refused in a second']]
  },
  {
    title: 'Network',
    show: asByteRate,
    series: [['net_input_rate', 'in'], ['net_output_rate', 'out']]
  },
  {
    title: 'Flushes and merges',
    show: asByteRate,
    series: [['flush_written_rate', 'flushes write'], ['merge_written_rate', 'merges write']]
  },
  {title: 'Not durable yet', show: asCount, series: [['undurable_writes', 'writes']]},
];
// What the table has beyond the charts.
const FURTHER = [
  {title: 'Syncs', show: asRate, series: [['syncs_rate', 'syncs']]},
  {title: 'Runs', show: asCount, series: [['runs', 'runs']]}
];
const GUTTER = 56;  // for the labels of the vertical axis

// The samples that the page knows, oldest first.
const history = {
  next: 0,
  at: [],
  series: {}
};
// The sample under the cursor; null: the newest.
let cursor = null;

function forget() {
  history.next = 0;
  history.at = [];
  history.series = {};
  cursor = null;
}

function take(news) {
  if (news.first !== history.next) forget();
  history.next = news.next;
  history.at.push(...news.at);
  for (const [name, values] of Object.entries(news.series)) {
    (history.series[name] ||= []).push(...values);
  }
  const extra = history.at.length - 900;
  if (extra <= 0) return;
  history.at.splice(0, extra);
  for (const values of Object.values(history.series)) values.splice(0, extra);
  if (cursor !== null) cursor = Math.max(0, cursor - extra);
}

const here = () => cursor ?? history.at.length - 1;
const latest = (name) => history.series[name]?.at(-1) ?? 0;

// The next number of the kind 1, 2, 5, 10 that is not below.
function niceAbove(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((step) => step * power >= value * 0.999) * power;
}

class Chart {
  constructor(spec) {
    this.spec = spec;
    this.canvas = make('canvas', {role: 'img'});
    this.values = spec.series.map(() => make('b'));
    const legend = spec.series.map(([, label], i) => {
      const line =
          makeSvg('line', {x1: 0, y1: 4, x2: 20, y2: 4, 'stroke-width': 2, class: `dash${i}`});
      line.style.stroke = `var(--s${i % 5})`;
      return make(
          'li', {}, makeSvg('svg', {'aria-hidden': 'true'}, line), `${label} `, this.values[i]);
    });
    const title = make('h3', {}, spec.title, ' ', make('small', {}, spec.note ?? ''));
    this.element = make('div', {class: 'chart'}, title, this.canvas, make('ul', {}, ...legend));
    this.canvas.addEventListener('pointermove', (event) => this.point(event));
    this.canvas.addEventListener('pointerleave', () => moveCursor(null));
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const end = history.at.at(-1);
    const at = end - WINDOW * (1 - (event.clientX - box.left - GUTTER) / (box.width - GUTTER));
    let nearest = 0;
    history.at.forEach((time, i) => {
      if (Math.abs(time - at) < Math.abs(history.at[nearest] - at)) nearest = i;
    });
    moveCursor(history.at.length > 0 ? nearest : null);
  }

  // Shows the figures at the cursor.
  tell() {
    const {spec} = this;
    const texts = spec.series.map(([name]) => {
      const value = history.series[name]?.[here()];
      return value === undefined ? '' : spec.show(value);
    });
    texts.forEach((text, i) => say(this.values[i], text));
    this.canvas.setAttribute(
        'aria-label',
        `${spec.title}: ${spec.series.map(([, label], i) => `${label} ${texts[i]}`).join(', ')}`);
  }

  // Returns a function from values to heights, and the values of the grid's lines.
  scale(top, bottom) {
    const {spec} = this;
    const all = spec.series.flatMap(([name]) => history.series[name] ?? []);
    const highest = Math.max(spec.least ?? 1, ...all);
    if (!spec.log) {
      const end = niceAbove(highest);
      return {lines: [0, end / 2, end], place: (value) => bottom - (bottom - top) * value / end};
    }
    const seen = all.filter((value) => value > 0);
    const low = seen.length > 0 ? Math.floor(Math.log10(Math.min(...seen))) : 3;
    const high = Math.max(low + 1, seen.length > 0 ? Math.ceil(Math.log10(Math.max(...seen))) : 4);
    const lines = [];
    for (let power = low; power <= high; power += Math.ceil((high - low) / 4))
      lines.push(10 ** power);
    return {
      lines,
      place: (value) =>
          value === 0 ? null : bottom - (bottom - top) * (Math.log10(value) - low) / (high - low)
    };
  }

  draw() {
    const {canvas, spec} = this;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    const ratio = window.devicePixelRatio || 1;
    if (width === 0) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext('2d');
    pen.scale(ratio, ratio);
    pen.font = '11px system-ui, sans-serif';
    const top = 8, bottom = height - 17;
    const end = history.at.at(-1) ?? Date.now();
    const x = (at) => GUTTER + (width - GUTTER) * (1 - (end - at) / WINDOW);
    const {lines, place} = this.scale(top, bottom);
    this.drawGrid(pen, {width, height, x, end, lines, place});
    if (spec.line !== undefined) {
      pen.setLineDash([2, 3]);
      pen.strokeStyle = colour('--warn');
      strokeLine(pen, GUTTER, place(spec.line), width, place(spec.line));
      pen.setLineDash([]);
    }
    spec.series.forEach(
        ([name], i) => this.drawSeries(pen, history.series[name] ?? [], i, x, place));
    if (cursor === null) return;
    pen.strokeStyle = colour('--soft');
    strokeLine(pen, x(history.at[cursor]), top, x(history.at[cursor]), bottom);
  }

  drawGrid(pen, {width, height, x, end, lines, place}) {
    pen.strokeStyle = colour('--line');
    pen.fillStyle = colour('--soft');
    pen.lineWidth = 1;
    pen.textAlign = 'right';
    for (const value of lines) {
      const y = Math.round(place(value) ?? 0) + 0.5;
      strokeLine(pen, GUTTER, y, width, y);
      pen.fillText(value === 0 ? '0' : onAxis(this.spec, value), GUTTER - 6, y + 4);
    }
    [[15, 'left'], [10, 'center'], [5, 'center'], [0, 'right']].forEach(([minutes, align]) => {
      const text = minutes === 0 ? 'now' : `−${minutes} min`;
      pen.textAlign = align;
      pen.fillText(text, x(end - minutes * 60000), height - 4);
    });
    pen.textAlign = 'left';
  }

  drawSeries(pen, values, i, x, place) {
    pen.strokeStyle = colour(`--s${i % 5}`);
    pen.lineWidth = 1.6;
    pen.lineJoin = 'round';
    pen.setLineDash(DASHES[i]);
    pen.beginPath();
    let open = false;
    values.forEach((value, sample) => {
      const y = place(value);
      const gap = sample > 0 && history.at[sample] - history.at[sample - 1] > 4500;
      if (y === null) {
        open = false;
      } else if (!open || gap) {
        // A lone sample is a short stroke.
        pen.moveTo(x(history.at[sample]) - 0.8, y);
        pen.lineTo(x(history.at[sample]), y);
        open = true;
      } else {
        pen.lineTo(x(history.at[sample]), y);
      }
    });
    pen.stroke();
    pen.setLineDash([]);
  }
}

// A round value as the axis shows it.
function onAxis({show}, value) {
  return show === asRate || show === asCount ? withUnit(value, ['', 'k', 'M', 'G'], 1000).trim() :
                                               show(value);
}

function strokeLine(pen, x1, y1, x2, y2) {
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  pen.stroke();
}

const charts = CHARTS.map((spec) => new Chart(spec));

// Shows all charts at this sample; null: the newest.
function moveCursor(sample) {
  cursor = sample;
  showHistory();
}

function showHistory() {
  if (history.at.length === 0) {
    say(find('cursor-time'), 'The first sample comes within two seconds.');
    return;
  }
  const at = history.at[here()];
  const ago = (history.at.at(-1) - at) / 1000;
  say(find('cursor-time'),
      cursor === null ? `now, ${asTime(at)}` : `${asTime(at)}, ${asSpan(ago)} ago`);
  for (const chart of charts) {
    chart.tell();
    chart.draw();
  }
  if (find('history-table').closest('details').open) fillHistoryTable();
}

function fillHistoryTable() {
  say(find('history-at'), cursor === null ? 'now' : asTime(history.at[cursor]));
  const rows = [...CHARTS, ...FURTHER].flatMap((spec) => spec.series.map(([name, label]) => {
    const values = history.series[name] ?? [0];
    const average = values.reduce((sum, value) => sum + value, 0) / values.length;
    return [
      cell(`${spec.title}: ${label}`),
      ...[values[here()], Math.min(...values), average, Math.max(...values)].map(
          (value) => cell(spec.show(value), 'n'))
    ];
  }));
  fill(find('history-table'), rows);
}

function moveCursorBy(event) {
  const count = history.at.length;
  const step = event.shiftKey ? 30 : 1;
  const targets = {ArrowLeft: here() - step, ArrowRight: here() + step, Home: 0, End: count - 1};
  if (event.key === 'Escape') {
    moveCursor(null);
  } else if (event.key in targets && count > 0) {
    const wanted = Math.max(0, Math.min(count - 1, targets[event.key]));
    moveCursor(wanted === count - 1 ? null : wanted);
  } else {
    return;
  }
  event.preventDefault();
}
