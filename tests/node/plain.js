// Node's `redlock` on one server, as services ran it before. Its arguments and what it says are those of
// tests/python/plain.py; the first argument is the folder in which the packages are installed.
'use strict';

const fs = require('fs');
const path = require('path');
const readline = require('readline');

const [packages, command, url, register, key, ttl] = process.argv.slice(2);
const installed = (name) => require.resolve(name, { paths: [packages] });
const version = (name) => require(require.resolve(`${name}/package.json`, { paths: [packages] })).version;
const say = (...words) => process.stdout.write(`${words.join(' ')}\n`);
const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });

const PAUSE = 5;

const orders = [];
let wanted = null;
const listen = () => readline.createInterface({ input: process.stdin })
  .on('line', (line) => { if (wanted) wanted(); orders.push(line); })
  .on('close', () => process.exit());
const first = () => (orders.length ? Promise.resolve() : new Promise((done) => { wanted = done; }));

async function load() {
  const Redis = require(installed('ioredis'));
  const Redlock = require(installed('redlock'));
  const locks = new Redlock([new Redis(url)], { retryCount: -1, retryDelay: PAUSE, retryJitter: PAUSE });
  const witness = new Redis(register);
  const enter = fs.readFileSync(path.join(__dirname, '../src/enter.lua'), 'utf8');
  witness.defineCommand('enter', { numberOfKeys: 4, lua: enter });
  const inside = `inside:${key}`;
  listen();
  say('ready');
  await first();
  let entered = 0;
  while (!orders.includes('stop')) {
    const lock = await locks.lock(key, Number(ttl));
    const number = await witness.incr('numbers');
    const section = await witness.enter(inside, `fence:${key}`, 'violations', 'sections', key, number);
    await witness.srem(inside, section);
    await lock.unlock();
    entered += 1;
    await sleep(Math.random() * PAUSE);
  }
  say(entered, 0);
}

if (command === 'version') {
  say('redlock', version('redlock'), 'on', 'node', process.versions.node);
  process.exit();
}
load().catch((error) => { console.error(error); process.exit(1); });
