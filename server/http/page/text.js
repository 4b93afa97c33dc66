
// --- Elements and figures as text ----------------------------------------------------------------

const SVG = 'http://www.w3.org/2000/svg';
const find = (id) => document.getElementById(id);

// Makes an element. `children` are elements and texts.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Sets a text only where it differs, so that screen readers and selections are left in peace.
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function cell(text, kind = '') {
  return make('td', kind ? {class: kind} : {}, text);
}

// Replaces the rows of a table.
function fill(table, rows) {
  table.tBodies[0].replaceChildren(...rows.map((cells) => make('tr', {}, ...cells)));
}

const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0});

// Three significant digits.
function brief(value) {
  const digits = value >= 100 || value === 0 ? 0 : value >= 10 ? 1 : 2;
  return value.toFixed(digits).replace(/\.0+$/, '');
}

function withUnit(value, units, step) {
  let unit = 0;
  while (value >= step * 0.9995 && unit + 1 < units.length) {
    value /= step;
    ++unit;
  }
  return `${brief(value)} ${units[unit]}`;
}

const asCount = (value) => whole.format(value);
const asBytes = (value) => withUnit(value, ['B', 'kB', 'MB', 'GB', 'TB', 'PB'], 1000);
const asRate = (value) => `${whole.format(value)}/s`;
const asByteRate = (value) => `${asBytes(value)}/s`;
const asShare = (value) => `${brief(value / 10)} %`;  // of thousandths
const asPressure = (value) => (value / 1000).toFixed(2);
const asNanos = (value) => value === 0 ? '–' : withUnit(value, ['ns', 'µs', 'ms', 's'], 1000);

function asSpan(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  if (seconds < 86400)
    return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds % 3600 / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor(seconds % 86400 / 3600)} h`;
}

const clock =
    new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit', second: '2-digit'});
const asTime = (ms) => clock.format(new Date(ms));

// The value of a colour in the style sheet, which differs from theme to theme.
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The colour between two, in six hexadecimal digits each.
function between(from, to, share) {
  const part = (text, i) => parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16);
  const mixed =
      [0, 1, 2].map((i) => Math.round(part(from, i) + (part(to, i) - part(from, i)) * share));
  return '#' + mixed.map((value) => value.toString(16).padStart(2, '0')).join('');
}
