// Takes locks of Node's `redlock` under torture, with its own defaults, and notes every step of the work as
// tests/src/torture/history.rs does. The first argument is the folder in which the packages are installed; the others
// are those of tests/python/torture.py.
'use strict';

const fs = require('fs');
const path = require('path');

const [packages, url, directory, ...numbers] = process.argv.slice(2);
const [ttl, long, short] = numbers.map(Number);
const installed = (name) => require(require.resolve(name, { paths: [packages] }));
const now = () => process.hrtime.bigint();
const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });
const upTo = (most) => Math.floor(Math.random() * most);

const PAUSE = 20;

const Redis = installed('ioredis');
const Redlock = installed('redlock');
const locks = new Redlock([new Redis(url).on('error', () => {})]);
const history = fs.openSync(path.join(directory, `${process.pid}.history`), 'a');
let grants = 0;

// Steps of work, until the lock cannot be extended.
async function work(lock, note, steps, pause) {
  let extended = Date.now();
  for (let step = 0; step < steps; step += 1) {
    const at = now();
    note(step === 0 ? 'enter' : 'poll', at, now());
    await sleep(pause);
    if (Date.now() - extended > ttl / 3) {
      extended = Date.now();
      await lock.extend(ttl);
    }
  }
}

async function turn(key, steps, pause) {
  grants += 1;
  const grant = grants;
  const note = (kind, at, until) => fs.writeSync(history, `${at} ${kind} ${key} 0 x ${grant} ${until}\n`);
  note('asked', now(), now());
  // Until there is a lock; by default it would give up after ten tries.
  const lock = await locks.lockWithOptions(`torture-${key}`, ttl, { retryCount: -1 }).catch((error) => {
    note('refused', now(), now());
    throw error;
  });
  let end = 'done';
  try {
    await work(lock, note, steps, pause);
    await lock.unlock();
  } catch (error) {
    if (!(error instanceof Redlock.LockError)) throw error;
    end = 'lost';
  }
  note(end, now(), now());
}

async function task(first, count, most, pause) {
  for (;;) {
    try {
      await turn(first + upTo(count), 1 + upTo(most), pause);
    } catch (error) {
      await sleep(PAUSE);
    }
  }
}

process.stdin.on('end', () => process.exit()).resume();
for (let number = 0; number < long; number += 1) task(0, long, 300, 5);
for (let number = 0; number < short; number += 1) task(long, short, 2, 1);
