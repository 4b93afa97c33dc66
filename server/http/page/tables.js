// --- The log, the slow log and the clients -------------------------------------------------------

const MODES = {
  always: (writes) => writes === 0 ?
      'Nothing waits for the disk.' :
      'Their clients still wait for the reply; none was told that they are safe.',
  everysec: (writes) => writes === 0 ? 'Everything acknowledged is on disk.' :
                                       'They were acknowledged, within the last second or so.',
  no: (writes) => writes === 0 ? 'Everything acknowledged is on disk.' :
                                 'They were acknowledged, and the kernel has them.',
};

// Marks on a line, by how many writes they are behind the newest; the line is logarithmic. Further
// positions (of feeds, backups, followers) are further marks.
function showLog(status) {
  const marks = status.timeline;
  const newest = Math.max(...marks.map((mark) => mark.sequence));
  const lags = marks.map((mark) => ({...mark, lag: newest - mark.sequence}));
  drawTimeline(lags);
  fill(
      find('marks-table'),
      lags.map(
          (mark) =>
              [cell(mark.id), cell(asCount(mark.sequence), 'n'),
               cell(asCount(mark.lag), 'n'), cell(mark.text)]));
  const cut = status.power_cut;
  const lost = cut.acknowledged_writes_at_most;
  const what = lost === 0 ? 'no acknowledged write' :
      lost === 1          ? 'one acknowledged write' :
                            `up to ${asCount(lost)} acknowledged writes`;
  const why = lost === 0 ? '' : ', as their mode does not wait for the disk';
  say(find('power-cut'), `If the power failed now, ${what} would be lost${why}.`);
  fill(
      find('modes-table'),
      cut.modes.map(
          (mode) =>
              [cell(mode.mode, 'code'), cell(asCount(mode.writes_at_most), 'n'),
               cell(MODES[mode.mode]?.(mode.writes_at_most) ?? '')]));
}

function drawTimeline(marks) {
  const picture = find('timeline');
  const width = picture.clientWidth, left = 70, right = width - 40, y = 54;
  picture.setAttribute('viewBox', `0 0 ${width} 92`);
  const longest =
      Math.max(3, Math.ceil(Math.log10(1 + Math.max(...marks.map((mark) => mark.lag)))));
  const x = (lag) => right - (right - left) * Math.log10(1 + lag) / longest;
  const parts = [makeSvg('line', {x1: left, y1: y, x2: right, y2: y, class: 'axis'})];
  for (let power = 0; power <= longest; ++power) {
    if (longest > 6 && power % 2 === 1) continue;
    const at = power === 0 ? right : x(10 ** power);
    parts.push(
        makeSvg('line', {x1: at, y1: y, x2: at, y2: y + 6}),
        makeSvg(
            'text', {x: at, y: y + 20, 'text-anchor': 'middle', class: 'tick'},
            power === 0 ? 'newest' : asCount(10 ** power)));
  }
  parts.push(makeSvg(
      'text', {x: left, y: y + 35, 'text-anchor': 'start', class: 'tick'},
      'writes behind the newest'));
  // Marks at one place share a label.
  const places = new Map();
  for (const mark of marks) {
    const at = Math.round(x(mark.lag));
    const near = [...places.keys()].find((other) => Math.abs(other - at) < 4) ?? at;
    places.set(near, [...(places.get(near) ?? []), mark.id]);
  }
  let row = 0, before = -Infinity;
  for (const [at, names] of [...places].sort(([a], [b]) => a - b)) {
    row = at - before < 90 ? (row + 1) % 3 : 0;
    before = at;
    const top = 14 + row * 14;
    parts.push(
        makeSvg('line', {x1: at, y1: top + 3, x2: at, y2: y, class: 'stem'}),
        makeSvg('circle', {cx: at, cy: y, r: 4.5}),
        makeSvg(
            'text', {x: at + 5, y: top, 'text-anchor': at > right - 60 ? 'end' : 'start'},
            names.join(', ')));
  }
  picture.setAttribute(
      'aria-label',
      marks
          .map(
              (mark) =>
                  `${mark.id}: ${asCount(mark.lag)} writes behind the newest`)
          .join('; '));
  picture.replaceChildren(...parts);
}

const shortened = (text, most) => text.length <= most ? text : `${text.slice(0, most)}…`;

// A time of today without the day.
function whenAgo(ms) {
  const day = new Date(ms).toLocaleDateString('en-GB');
  return day === new Date().toLocaleDateString('en-GB') ? asTime(ms) : `${day}, ${asTime(ms)}`;
}

function showSlowLog(document) {
  if (document.hidden) return hideTable('slow', document.hidden);
  find('slow-table').hidden = document.entries.length === 0;
  say(find('slow-note'),
      document.entries.length === 0 ? 'No request took longer than slowlog-log-slower-than.' : '');
  fill(
      find('slow-table'),
      document.entries.slice(0, 20).map(
          (entry) =>
              [cell(whenAgo(entry.unix_seconds * 1000), 'when'),
               cell(asNanos(entry.micros * 1000), 'n'),
               cell(shortened(entry.arguments.join(' '), 160), 'code'),
               cell(
                   entry.client_name ? `${entry.client_name}, ${entry.client_address}` :
                                       entry.client_address)]));
}

function showClients(document) {
  if (document.hidden) return hideTable('clients', document.hidden);
  const {connected, clients} = document;
  const shown = clients.sort((a, b) => b.memory_bytes - a.memory_bytes).slice(0, 50);
  find('clients-table').hidden = shown.length === 0;
  say(find('clients-note'),
      connected === 0 ? 'Nobody is connected.' :
          connected > shown.length ?
                        `${asCount(connected)} are connected; these hold most memory.` :
                        `${asCount(connected)} connected.`);
  fill(
      find('clients-table'),
      shown.map(
          (client) =>
              [cell(client.address, 'code'), cell(client.name || client.library || '–'),
               cell(client.user), cell(client.command, 'code'),
               cell(asSpan(client.age_seconds), 'n'), cell(asSpan(client.idle_seconds), 'n'),
               cell(asBytes(client.memory_bytes), 'n'), cell(asBytes(client.unsent_bytes), 'n')]));
}

function hideTable(name, why) {
  find(`${name}-table`).hidden = true;
  find(`${name}-note`).replaceChildren(`${why} `, make('a', {href: '/login'}, 'Log in'));
}
