// --- The tree as strata --------------------------------------------------------------------------

let tree = null;    // /tree.json
let chosen = null;  // the number of the segment whose facts are shown

function showStrata() {
  if (tree === null) return;
  const {merge} = tree;
  const note = merge === undefined ? 'Nothing is being merged.' : sentenceOfMerge(merge);
  say(find('merge-note'), note);
  const runs = tree.levels.flatMap((level) => level.runs);
  const largest = Math.max(1, ...runs.map((run) => run.bytes));
  const newest =
      Math.max(1, ...runs.flatMap((run) => run.segments.map((segment) => segment.newest)));
  const focused = document.activeElement?.dataset?.segment;
  const bands = [bufferBand()];
  tree.levels.forEach((level, i) => {
    level.runs.forEach((run, j) => {
      const name = level.runs.length === 1 ? `Level ${i}` : `Level ${i}, run ${j + 1}`;
      const band = runBand(run, name, 18 + 26 * Math.sqrt(run.bytes / largest), newest);
      if (j === 0) band.classList.add('level');
      bands.push(band);
    });
  });
  find('strata').replaceChildren(...bands);
  const all = segmentsShown();
  const first = all.find((rect) => rect.dataset.segment === (focused ?? String(chosen))) ?? all[0];
  if (focused !== undefined) first?.focus({preventScroll: true});
  choose(first === undefined ? null : Number(first.dataset.segment));
}

function sentenceOfMerge({segments, bytes, output_level, reason, seconds}) {
  const what = `${segments} segments with ${asBytes(bytes)} are being merged`;
  const why = reason.replaceAll('_', ' ');
  return `${what} into level ${output_level} (${why}), for ${asSpan(seconds)}. They are hatched.`;
}

const segmentsShown = () => [...find('strata').querySelectorAll('[data-segment]')];

// The width of a run in pixels.
function bandWidth() {
  const isNarrow = matchMedia('(max-width: 520px)').matches;
  return Math.max(100, find('strata').clientWidth - (isNarrow ? 0 : 160));
}

function band(name, facts, height) {
  const picture = makeSvg('svg', {width: bandWidth(), height});
  const text = make('div', {class: 'label'}, make('b', {}, name), make('br'), facts);
  return [make('div', {class: 'band'}, text, picture), picture];
}

function bufferBand() {
  const records = tree.buffers.reduce((sum, buffer) => sum + buffer.records, 0);
  const bytes = tree.buffers.reduce((sum, buffer) => sum + buffer.bytes, 0);
  const height = 22;
  const [element, picture] =
      band('Write buffers', `${asBytes(bytes)}, ${asCount(records)} records`, height);
  const width = bandWidth() / tree.buffers.length;
  tree.buffers.forEach((buffer, i) => {
    const what = buffer.full ? 'A full write buffer, which waits for its flush' :
                               'The write buffer that takes new writes';
    picture.append(makeSvg(
        'rect',
        {x: i * width, y: 0, width, height, fill: buffer.full ? colour('--s0') : colour('--sea')},
        makeSvg(
            'title', {}, `${what}: ${asBytes(buffer.bytes)}, ${asCount(buffer.records)} records`)));
  });
  return element;
}

function runBand(run, name, height, newest) {
  const count = run.segment_count;
  const [element, picture] = band(
      name, `${asBytes(run.bytes)}, ${asCount(count)} segment${count === 1 ? '' : 's'}`, height);
  const pattern = `hatch-${name.replaceAll(/\W/g, '')}`;
  picture.append(makeSvg('defs', {}, hatch(pattern)));
  const whole = bandWidth();
  let x = 0;
  for (const segment of run.segments) {
    const width = whole * segment.bytes / Math.max(1, run.bytes);
    const age = 1 - segment.newest / newest;
    const place = {x, y: 0, width, height};
    const rect = makeSvg('rect', {
      ...place,
      tabindex: '-1',
      role: 'button',
      'data-segment': segment.number,
      fill: between(colour('--young'), colour('--old'), Math.sqrt(age)),
      'aria-label': `${name}, segment ${segment.number}, ${asBytes(segment.bytes)}${
          segment.merging ? ', is being merged' : ''}`
    });
    if (segment.number === chosen) rect.classList.add('chosen');
    rect.addEventListener('click', () => choose(segment.number));
    rect.addEventListener('focus', () => choose(segment.number));
    picture.append(rect);
    if (segment.merging || segment.damaged) {
      const cover =
          makeSvg('rect', {...place, fill: segment.damaged ? colour('--bad') : `url(#${pattern})`});
      cover.style.pointerEvents = 'none';
      picture.append(cover);
    }
    x += width;
  }
  if (run.segments.length < count) {
    picture.append(makeSvg(
        'rect', {x, y: 0, width: Math.max(0, whole - x), height, fill: colour('--line')},
        makeSvg('title', {}, `${count - run.segments.length} more segments`)));
  }
  return element;
}

function hatch(id) {
  const pattern = makeSvg(
      'pattern',
      {id, width: 8, height: 8, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)'});
  const stripe = makeSvg('rect', {width: 2.5, height: 8, fill: colour('--on-strata')});
  stripe.style.stroke = 'none';
  stripe.style.opacity = 0.55;
  pattern.append(stripe);
  return pattern;
}

function choose(number) {
  chosen = number;
  for (const rect of segmentsShown()) {
    rect.classList.toggle('chosen', rect.dataset.segment === String(number));
    rect.setAttribute('tabindex', rect.dataset.segment === String(number) ? '0' : '-1');
  }
  showFacts();
}

function showFacts() {
  const facts = find('segment-facts');
  if (tree === null) return;
  for (const level of tree.levels.keys()) {
    for (const [j, run] of tree.levels[level].runs.entries()) {
      const segment = run.segments.find(({number}) => number === chosen);
      if (segment !== undefined) return tellSegment(facts, segment, level, j);
    }
  }
  facts.replaceChildren(make(
      'p', {class: 'soft'},
      'There is no segment yet: everything is in write buffers and in the log.'));
}

function tellSegment(facts, segment, level, run) {
  const key = (space, name) => name === undefined ?
      'not shown' :
      `${space === '' ? 'a namespace that is gone' : spaceName(space)}: ${name}`;
  const rows = [
    ['in', `level ${level}, run ${run + 1}${segment.merging ? ', being merged now' : ''}`],
    [
      'size',
      `${asBytes(segment.bytes)}${
          segment.value_bytes > 0 ? `, and ${asBytes(segment.value_bytes)} of values kept apart` :
                                    ''}`
    ],
    ['records', `${asCount(segment.records)}, of which ${asCount(segment.tombstones)} tombstones`],
    ['range tombstones', asCount(segment.range_tombstones)],
    ['sequences', `${asCount(segment.oldest)} to ${asCount(segment.newest)}`],
    ['first key', key(segment.first_namespace, segment.first_key)],
    ['last key', key(segment.last_namespace, segment.last_key)],
    [
      'index',
      segment.index_in_memory ? 'in memory: a read takes one disk access at most' :
                                'on disk: a read takes two disk accesses'
    ],
    [
      'state',
      segment.damaged ? 'damaged: the server\'s log says where' : 'no read has found damage'
    ],
  ];
  const list = make(
      'dl', {}, ...rows.flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]));
  facts.replaceChildren(make('h3', {}, `Segment ${segment.number}`), list);
}

// Left and right go along a run, up and down to the run above and below.
function moveAmongSegments(event) {
  const now = document.activeElement;
  if (now?.dataset?.segment === undefined) return;
  const runs = [...find('strata').querySelectorAll('svg')]
                   .map((svg) => [...svg.querySelectorAll('[data-segment]')])
                   .filter((run) => run.length > 0);
  const run = runs.findIndex((segments) => segments.includes(now));
  const at = runs[run].indexOf(now);
  const middle = (rect) => Number(rect.getAttribute('x')) + Number(rect.getAttribute('width')) / 2;
  const nearest = (segments) => segments?.reduce(
      (best, rect) => Math.abs(middle(rect) - middle(now)) < Math.abs(middle(best) - middle(now)) ?
          rect :
          best);
  const target = {
    ArrowLeft: runs[run][at - 1],
    ArrowRight: runs[run][at + 1],
    ArrowUp: nearest(runs[run - 1]),
    ArrowDown: nearest(runs[run + 1])
  }[event.key];
  if (target === undefined) return;
  event.preventDefault();
  target.focus();
}
