// --- The page as a whole: what is asked when, and the sentence at the top ------------------------

const FIGURES = [
  ['writes', () => asRate(latest('writes_rate'))],
  ['reads', () => asRate(latest('reads_rate'))],
  ['writes take, p99', () => asNanos(latest('write_p99_nanos'))],
  ['reads take, p99', () => asNanos(latest('read_p99_nanos'))],
  ['a sync takes', () => asNanos(latest('sync_mean_nanos'))],
  ['connections', () => asCount(latest('connections'))],
  ['memory', () => asBytes(latest('resident_bytes'))],
  ['on disk', () => asBytes(latest('segment_bytes') + latest('value_bytes') + latest('log_bytes'))],
];

let process = null;   // the number of the process that the history is of
let answered = null;  // when the server answered last, in milliseconds

function setState(state, sign, sentence) {
  find('state').dataset.state = state;
  say(find('sign'), sign);
  say(find('sentence'), sentence);
  document.title = `${state === 'healthy' ? '' : `${sign} `}Varve`;
}

function sentenceOf(status) {
  const limit = status.limited_by;
  if (limit.id !== 'nothing') return limit.text;
  const sync = latest('sync_mean_nanos');
  const writes = asCount(latest('writes_rate')), reads = asCount(latest('reads_rate'));
  const syncs = sync > 0 ? `, a sync takes ${asNanos(sync)}` : '';
  const load = `${writes} writes and ${reads} reads a second${syncs}`;
  return `Healthy: ${load}. Nothing limits the server.`;
}

function showStatus(status) {
  const limited = status.limited_by.id !== 'nothing';
  if (!status.healthy) {
    setState('unhealthy', '✗', limited ? status.limited_by.text : 'Something is wrong.');
  } else {
    setState(limited ? 'limited' : 'healthy', limited ? '!' : '✓', sentenceOf(status));
  }
  find('messages')
      .replaceChildren(...status.messages.map(
          (message) => make('li', {}, `${message.check.replaceAll('_', ' ')}: ${message.text}`)));
  say(find('identity'),
      `${status.version} at ${location.host}, up for ${asSpan(status.uptime_seconds)}`);
  const rows = FIGURES.flatMap(([name, value]) => [name, value()]);
  const places = [...find('figures').children];
  if (places.length !== FIGURES.length) {
    find('figures').replaceChildren(...FIGURES.map(
        ([name, value]) => make('div', {}, make('dt', {}, name), make('dd', {}, value()))));
  } else {
    places.forEach((place, i) => say(place.lastChild, rows[2 * i + 1]));
  }
  showLog(status);
}

// What the server answered instead of figures.
class Refusal extends Error {}

function showLost(error) {
  const what = error instanceof Refusal ? error.message : 'The server does not answer.';
  const old = answered === null ? '' : `shows what it knew at ${asTime(answered)} and `;
  setState('lost', '✗', `${what} The page ${old}asks again each second.`);
  say(find('connection'), 'not connected');
}

async function ask(path) {
  const reply = await fetch(path, {cache: 'no-store', signal: AbortSignal.timeout(5000)});
  if (!reply.ok) throw new Refusal((await reply.text()).trim());
  return reply.json();
}

async function askStatus() {
  const news = await ask(`/status.json?series=${history.next}`);
  if (process !== null && news.process_id !== process) forget();
  process = news.process_id;
  answered = Date.now();
  say(find('connection'), 'follows the server');
  take(news.history);
  showStatus(news);
  showHistory();
  document.body.dataset.samples = history.next;
}

const QUESTIONS = [
  {each: 1000, ask: askStatus, isPulse: true},
  {
    each: 2000,
    ask: async () => {
      tree = await ask('/tree.json');
      showStrata();
    }
  },
  {
    each: 5000,
    ask: async () => {
      keys = await ask('/keys.json');
      showKeys();
    }
  },
  {each: 3000, ask: async () => showSlowLog(await ask('/slowlog.json'))},
  {each: 3000, ask: async () => showClients(await ask('/clients.json'))},
];

// Asks again and again, but not while nobody looks.
async function keepAsking(question) {
  for (;;) {
    const begin = Date.now();
    if (!document.hidden) {
      try {
        await question.ask();
      } catch (error) {
        if (question.isPulse) showLost(error);
      }
    }
    await rest(Math.max(100, question.each - (Date.now() - begin)), question.isPulse);
  }
}

let endRest = () => {};  // of the pulse
document.addEventListener('visibilitychange', () => endRest());

// Waits so long; the pulse waits until somebody looks at the page again, if that is sooner.
function rest(milliseconds, isPulse) {
  return new Promise((done) => {
    setTimeout(done, milliseconds);
    if (isPulse) endRest = done;
  });
}

function showAllAgain() {
  showHistory();
  showKeys();
  showStrata();
}

find('charts').append(...charts.map((chart) => chart.element));
find('charts').addEventListener('keydown', moveCursorBy);
find('strata').addEventListener('keydown', moveAmongSegments);
find('history-table').closest('details').addEventListener('toggle', showHistory);
window.addEventListener('resize', showAllAgain);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', showAllAgain);
QUESTIONS.forEach(keepAsking);
