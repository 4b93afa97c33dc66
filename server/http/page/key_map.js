// --- The keys as a map by bytes ------------------------------------------------------------------

const MAP_TONES = ['--s0', '--old', '--s2', '--s3', '--s1', '--s4'];

let keys = null;    // /keys.json
let keysPath = [];  // the names of the groups that the reader went into

// The groups as one tree: the namespaces, or, where there is one alone, what is in it.
function keysTree() {
  const node = (name, group) => ({
    name,
    bytes: group.bytes_estimate,
    keys: group.keys_estimate,
    groups: (group.groups ?? []).map((within) => node(within.prefix, within)),
  });
  const spaces = keys.namespaces.map((space) => node(spaceTitle(space), space.all));
  if (spaces.length === 1) return spaces[0];
  const sum = (name) => spaces.reduce((all, space) => all + space[name], 0);
  return {name: 'all keys', bytes: sum('bytes'), keys: sum('keys'), groups: spaces};
}

// With the groups of keys that it declares.
const spaceTitle = ({name, grouping}) => spaceName(name) + (grouping ? ` (${grouping})` : '');

const spaceName = (name) => /^\d+$/.test(name) ? `database ${name}` : `namespace ${name}`;

// What the groups within a node lack to it; null: next to nothing.
function restOf(node) {
  const listed = node.groups.reduce((sum, group) => sum + group.bytes, 0);
  const bytes = node.bytes - listed;
  if (node.groups.length === 0 || bytes < node.bytes * 0.004) return null;
  const known = node.groups.reduce((sum, group) => sum + group.keys, 0);
  return {
    name: 'other keys',
    bytes,
    keys: Math.max(0, node.keys - known),
    groups: [],
    isRest: true
  };
}

// Divides a box among nodes by their bytes so that the areas are as square as may be.
function squarify(nodes, box) {
  const placed = [];
  let {x, y, width, height} = box;
  let left = nodes.filter((node) => node.bytes > 0).sort((a, b) => b.bytes - a.bytes);
  let bytes = left.reduce((sum, node) => sum + node.bytes, 0);
  while (left.length > 0 && width > 0 && height > 0) {
    const side = Math.min(width, height);
    const scale = width * height / bytes;
    let row = [], sum = 0, best = Infinity;
    for (const node of left) {
      const more = sum + node.bytes;
      const depth = more * scale / side;
      const worst = Math.max(...[...row, node].map(({bytes}) => {
        const length = bytes * scale / depth;
        return Math.max(length / depth, depth / length);
      }));
      if (worst > best) break;
      best = worst;
      sum = more;
      row.push(node);
    }
    const depth = sum * scale / side;
    let at = 0;
    for (const node of row) {
      const length = node.bytes * scale / depth;
      placed.push([
        node,
        width >= height ? {x, y: y + at, width: depth, height: length} :
                          {x: x + at, y, width: length, height: depth}
      ]);
      at += length;
    }
    if (width >= height) {
      x += depth;
      width -= depth;
    } else {
      y += depth;
      height -= depth;
    }
    left = left.slice(row.length);
    bytes -= sum;
  }
  return placed;
}

function showKeys() {
  if (keys === null) return;
  if (keys.namespaces.length === 0) {
    say(find('keys-note'),
        buffersAreKnown() ? 'The store is empty.' :
                            `No key was found yet. ${buffersBehind()}`);
    find('keys-map').replaceChildren();
    find('keys-path').replaceChildren();
    fill(find('keys-table'), []);
    return;
  }
  const root = keysTree();
  const nodes = [root];
  for (const name of keysPath) {
    const next = nodes.at(-1).groups.find((group) => group.name === name);
    if (next === undefined || next.groups.length === 0) break;
    nodes.push(next);
  }
  keysPath = nodes.slice(1).map((node) => node.name);
  showKeysPath(nodes);
  tellAboutKeys(root);
  drawKeys(nodes.at(-1));
  listKeys(nodes.at(-1));
}

function buffersAreKnown() {
  return keys.known_buffer_records >= keys.buffer_records;
}

function buffersBehind() {
  return `The server has looked at ${asCount(keys.known_buffer_records)} of the ` +
      `${asCount(keys.buffer_records)} records in write buffers so far.`;
}

function tellAboutKeys(root) {
  const note = find('keys-note');
  const known = keys.segment_bytes === 0 ? 1 : keys.known_segment_bytes / keys.segment_bytes;
  const size = `${asBytes(root.bytes)} in about ${asCount(root.keys)} keys`;
  if (!keys.names_keys) {
    return note.replaceChildren(
        `${size}. Names of keys are shown to users who may read all keys. `,
        make('a', {href: '/login'}, 'Log in'));
  }
  let text = `${size}, split behind : and /, with what is still in write buffers.`;
  if (known < 0.995) {
    text += ` The index of ${brief(100 * known)} % of the segments' bytes is in memory;`;
    text += ' elsewhere groups are guessed.';
  }
  // A few records that were written just now are no news.
  if (keys.known_buffer_records < 0.995 * keys.buffer_records)
    text += ` ${buffersBehind()} The others are estimated.`;
  say(note, `${text} No key was read for this.`);
}

function showKeysPath(nodes) {
  const path = find('keys-path');
  const names = nodes.map((node) => node.name);
  if (path.dataset.names === names.join('\n')) return;
  path.dataset.names = names.join('\n');
  path.replaceChildren(...names.map((name, i) => {
    const button = make('button', {type: 'button'}, name);
    if (i === names.length - 1) button.setAttribute('aria-current', 'true');
    button.addEventListener('click', () => enterKeys(names.slice(1, i + 1)));
    return button;
  }));
}

function enterKeys(path) {
  keysPath = path;
  showKeys();
  find('keys-map').querySelector('[tabindex]')?.focus({preventScroll: true});
}

function withRest(node) {
  const rest = restOf(node);
  if (node.groups.length === 0) return [{...node, isWhole: true}];
  return rest === null ? node.groups : [...node.groups, rest];
}

function drawKeys(node) {
  const map = find('keys-map');
  const focused = map.contains(document.activeElement) ? document.activeElement.dataset.name : null;
  const box = {x: 0, y: 0, width: map.clientWidth, height: map.clientHeight};
  map.setAttribute('viewBox', `0 0 ${box.width} ${box.height}`);
  const areas =
      squarify(withRest(node), box)
          .map(([group, place], i) => drawGroup(group, place, MAP_TONES[i % MAP_TONES.length], 0));
  map.replaceChildren(...areas);
  if (focused !== null)
    [...map.children].find((area) => area.dataset.name === focused)?.focus({preventScroll: true});
}

function drawGroup(group, place, tone, depth, around = '') {
  const {x, y, width, height} = place;
  const area = makeSvg('g', {});
  const paper = colour('--card');
  const shade =
      group.isRest ? colour('--line') : between(colour(tone), paper, depth === 0 ? 0.45 : 0.62);
  const rect =
      makeSvg('rect', {x, y, width: Math.max(0, width), height: Math.max(0, height), fill: shade});
  area.append(
      makeSvg(
          'title', {}, `${group.name}: ${asBytes(group.bytes)}, about ${asCount(group.keys)} keys`),
      rect);
  if (depth === 0) {
    area.dataset.name = group.name;
    if (group.groups.length > 0) {
      area.setAttribute('tabindex', '0');
      area.setAttribute('role', 'button');
      area.setAttribute('aria-label', `${group.name}, ${asBytes(group.bytes)}: show what is in it`);
      const enter = () => enterKeys([...keysPath, group.name]);
      area.addEventListener('click', enter);
      area.addEventListener('keydown', (event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        enter();
      });
    }
  }
  const room = Math.floor((width - 12) / 7);
  const fits = room >= 3 && height >= 20;
  const name = group.name.startsWith(around) ? group.name.slice(around.length) : group.name;
  if (fits) area.append(label(name, x + 6, y + 15, room));
  if (fits && height >= 38 && depth === 0)
    area.append(label(asBytes(group.bytes), x + 6, y + 30, room + 1, 'small'));
  if (depth === 0 && group.groups.length > 0 && width > 60 && height > 74) {
    const within = {x: x + 5, y: y + 38, width: width - 10, height: height - 43};
    for (const [inner, at] of squarify(withRest(group), within))
      area.append(drawGroup(inner, at, tone, 1, group.name));
  }
  return area;
}

// A text of so many letters at most.
function label(text, x, y, room, kind = '') {
  const shown = text.length <= room ? text : `${text.slice(0, room - 1)}…`;
  const element = makeSvg('text', {x, y, class: kind}, shown);
  element.style.fill = colour('--ink');
  return element;
}

// The same groups, and those within them, as a table.
function listKeys(node) {
  const rows = [];
  const list = (group, depth, path) => {
    const name = cell('', 'code');
    name.style.paddingLeft = `${depth * 14}px`;
    if (group.groups.length > 0 && depth === 0) {
      const button = make('button', {type: 'button'}, group.name);
      button.addEventListener('click', () => enterKeys([...keysPath, group.name]));
      name.append(button);
    } else {
      name.append(group.name);
    }
    rows.push([
      name, cell(asBytes(group.bytes), 'n'),
      cell(`${brief(100 * group.bytes / node.bytes)} %`, 'n'), cell(asCount(group.keys), 'n')
    ]);
    if (depth === 0 && group.groups.length > 0) {
      for (const within of withRest(group)) list(within, 1);
    }
  };
  for (const group of withRest(node)) list(group, 0);
  fill(find('keys-table'), rows);
}
