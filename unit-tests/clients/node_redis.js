// node-redis does a round of the commands that the server has.
const assert = require('assert');
const fs = require('fs');
const { createClient } = require('redis');

const authority = process.env.VARVE_TLS_CA;
const tls = authority ? { tls: true, ca: fs.readFileSync(authority) } : {};

(async () => {
  const client = createClient({ socket: { port: Number(process.argv[2]), ...tls }, name: 'round' });
  await client.connect();
  await client.flushAll();
  const has = new Set(await client.sendCommand(['COMMAND', 'LIST']));
  const calls = [
    ['set', () => client.set('k', 'v'), 'OK'],
    ['set', () => client.set('k', 'w', { NX: true }), null],
    ['get', () => client.get('k'), 'v'],
    ['mset', () => client.mSet({ a: '1', b: '' }), 'OK'],
    ['mget', () => client.mGet(['a', 'b', 'c']), ['1', '', null]],
    ['incr', () => client.incr('a'), 2],
    ['incrby', () => client.incrBy('a', 2), 4],
    ['append', () => client.append('k', 'x'), 2],
    ['strlen', () => client.strLen('k'), 2],
    ['getrange', () => client.getRange('k', 0, 0), 'v'],
    ['exists', () => client.exists(['a', 'z']), 1],
    ['type', () => client.type('a'), 'string'],
    ['setbit', () => client.setBit('bits', 7, 1), 0],
    ['bitcount', () => client.bitCount('bits'), 1],
    ['del', () => client.del(['bits', 'z']), 1],
    ['keys', async () => (await client.keys('*')).sort(), ['a', 'b', 'k']],
    ['scan', async () => (await client.scan(0)).keys.sort(), ['a', 'b', 'k']],
    ['dbsize', () => client.dbSize(), 3],
  ];
  for (const [command, call, expected] of calls) {
    if (has.has(command)) assert.deepStrictEqual(await call(), expected, command);
  }
  assert.strictEqual(await client.clientGetName(), 'round');
  assert.strictEqual((await client.clientInfo()).id, await client.clientId());
  assert.strictEqual(await client.commandCount(), [...has].filter((name) => !name.includes('|')).length);
  assert.deepStrictEqual(await client.commandGetKeys(['GET', 'a']), ['a']);
  assert.strictEqual((await client.commandInfo(['get']))[0].name, 'get');

  const values = await Promise.all(Array.from({ length: 1000 }, (_, i) => client.set(`p${i}`, `${i}`).then(() => client.get(`p${i}`))));
  values.forEach((value, i) => assert.strictEqual(value, `${i}`));

  const subscriber = client.duplicate();
  await subscriber.connect();
  const heard = [];
  const all = new Promise((resolve) => {
    const hear = (message, channel) => heard.push([channel, message]) === 2 && resolve();
    subscriber.subscribe('news', hear).then(() => subscriber.pSubscribe('n*', hear)).then(() => client.publish('news', 'hello'));
  });
  await all;
  assert.deepStrictEqual(heard, [['news', 'hello'], ['news', 'hello']]);
  assert.deepStrictEqual(await client.pubSubChannels(), ['news']);
  await subscriber.unsubscribe('news');
  await subscriber.pUnsubscribe('n*');
  assert.strictEqual(await subscriber.ping(), 'PONG');
  await subscriber.quit();
  await assert.rejects(client.sendCommand(['NOSUCH']), /unknown command/);
  await client.quit();
})().catch((error) => { console.error(error); process.exit(1); });
