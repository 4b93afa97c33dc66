// ioredis does a round of the commands that the server has.
const assert = require('assert');
const fs = require('fs');
const Redis = require('ioredis');

const authority = process.env.VARVE_TLS_CA;
const tls = authority ? { tls: { ca: fs.readFileSync(authority) } } : {};

(async () => {
  const client = new Redis(Number(process.argv[2]), { ...tls, connectionName: 'round' });
  await client.flushall();
  const has = new Set(await client.command('LIST'));
  const calls = [
    ['set', () => client.set('k', 'v'), 'OK'],
    ['set', () => client.set('k', 'w', 'NX'), null],
    ['get', () => client.get('k'), 'v'],
    ['get', () => client.getBuffer('k'), Buffer.from('v')],
    ['mset', () => client.mset('a', '1', 'b', ''), 'OK'],
    ['mget', () => client.mget('a', 'b', 'c'), ['1', '', null]],
    ['incr', () => client.incr('a'), 2],
    ['decrby', () => client.decrby('a', 2), 0],
    ['append', () => client.append('k', 'x'), 2],
    ['exists', () => client.exists('a', 'z'), 1],
    ['setbit', () => client.setbit('bits', 7, 1), 0],
    ['bitcount', () => client.bitcount('bits'), 1],
    ['unlink', () => client.unlink('bits'), 1],
    ['dbsize', async () => (await client.dbsize()) >= 3, true],
  ];
  for (const [command, call, expected] of calls) {
    if (has.has(command)) assert.deepStrictEqual(await call(), expected, command);
  }
  assert.strictEqual(await client.client('GETNAME'), 'round');
  assert.match(await client.client('LIST'), /name=round/);
  if (has.has('scan')) {
    const keys = [];
    for await (const found of client.scanStream()) keys.push(...found);
    assert(keys.includes('a') && keys.includes('k'));
  }
  const pipeline = client.pipeline();
  for (let i = 0; i < 1000; ++i) pipeline.set(`p${i}`, i).get(`p${i}`);
  (await pipeline.exec()).forEach(([error, reply], i) => {
    assert.strictEqual(error, null);
    assert.strictEqual(reply, i % 2 ? `${(i - 1) / 2}` : 'OK');
  });

  const subscriber = client.duplicate();
  await subscriber.subscribe('news');
  await subscriber.psubscribe('n*');
  const heard = Promise.all([
    new Promise((resolve) => subscriber.on('message', (channel, message) => resolve([channel, message]))),
    new Promise((resolve) => subscriber.on('pmessage', (pattern, channel, message) => resolve([pattern, channel, message]))),
  ]);
  assert.strictEqual(await client.publish('news', 'hello'), 2);
  assert.deepStrictEqual(await heard, [['news', 'hello'], ['n*', 'news', 'hello']]);
  await subscriber.quit();

  // A cache that another connection keeps up to date.
  const listener = client.duplicate();
  const id = await listener.client('ID');
  await listener.subscribe('__redis__:invalidate');
  const invalidated = new Promise((resolve) => listener.on('message', (channel, keys) => resolve([channel, keys])));
  assert.strictEqual(await client.client('TRACKING', 'ON', 'REDIRECT', id), 'OK');
  const cache = new Map([['cached', await client.get('cached')]]);
  const writer = client.duplicate();
  await writer.set('cached', '1');
  assert.deepStrictEqual(await invalidated, ['__redis__:invalidate', 'cached']);
  cache.delete('cached');
  assert.strictEqual(await client.get('cached'), '1');
  await client.client('TRACKING', 'OFF');
  await writer.quit();
  await listener.quit();

  const monitor = await client.monitor();
  const seen = new Promise((resolve) => monitor.on('monitor', (time, args) => args[1] === 'seen' && resolve(args)));
  await client.get('seen');
  assert.deepStrictEqual(await seen, ['get', 'seen']);
  monitor.disconnect();
  await assert.rejects(client.call('NOSUCH'), /unknown command/);
  await client.quit();
})().catch((error) => { console.error(error); process.exit(1); });
