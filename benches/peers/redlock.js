// The worker for Node's `redlock`, as src/worker/mod.rs describes it; tries again after 100 to 300 ms.
//
// Its argument is the folder in which the packages are installed.
'use strict';

const readline = require('readline');
const from = (name) => require(require.resolve(name, { paths: [process.argv[2]] }));
const Redis = from('ioredis');
const Redlock = from('redlock');

const KEYS = 64;
const TTL = 10_000;

const now = () => Number(process.hrtime.bigint());
const say = (answer) => process.stdout.write(JSON.stringify(answer) + '\n');

const lines = [];
let wanted = null;
readline.createInterface({ input: process.stdin })
  .on('line', (line) => { if (wanted) { wanted(line); wanted = null; } else lines.push(line); })
  .on('close', () => process.exit());

const line = () => (lines.length ? Promise.resolve(lines.shift()) : new Promise((done) => { wanted = done; }));
const expect = async (order) => {
  const said = await line();
  if (said !== order) throw new Error(said);
};

// One server, or several that commas separate; what a dead one reports is ignored.
const connect = (urls) => new Redlock(urls.split(',').map((url) => new Redis(url).on('error', () => {})), { retryCount: -1 });

async function cycle(locks, key) {
  const lock = await locks.lock(key, TTL);
  await lock.unlock();
}

async function free(locks, keys, stop, latencies) {
  for (let number = 0; !stop.set; number += 1) {
    const asked = now();
    await cycle(locks, keys[number % KEYS]);
    latencies.push(now() - asked);
  }
}

async function hot(locks, spec, stop, sections, unfinished) {
  while (!stop.set) {
    const asked = now();
    const lock = await Promise.race([locks.lock(spec.key, TTL), stop.promise]);
    if (!lock) {
      unfinished.push(now() - asked);
      return;
    }
    const entered = now();
    if (spec.body_us) await new Promise((done) => setTimeout(done, spec.body_us / 1000));
    const left = now();
    await lock.unlock();
    sections.push([asked, entered, left]);
  }
}

async function main() {
  const spec = JSON.parse(await line());
  const latencies = [];
  const unfinished = [];
  let sections = [];
  let started;
  let cpu;
  const start = async () => {
    say('ready');
    await expect('go');
    [started, cpu] = [now(), process.cpuUsage()];
  };
  if (spec.work === 'cold') {
    await start();
    const lock = await connect(spec.url).lock(spec.key, TTL);
    latencies.push(now() - started);
    await lock.unlock();
    await expect('stop');
  } else {
    const locks = connect(spec.url);
    const names = Array.from({ length: spec.tasks }, (_, task) =>
      Array.from({ length: KEYS }, (_, key) => `own:${spec.name}:${task}:${key}`));
    await Promise.all(names.map((keys) => cycle(locks, keys[0])));
    await start();
    const stop = { set: false };
    stop.promise = new Promise((done) => { stop.end = done; });
    sections = spec.work === 'hot' ? names.map(() => []) : [];
    const work = names.map((keys, task) => (spec.work === 'hot'
      ? hot(locks, spec, stop, sections[task], unfinished)
      : free(locks, keys, stop, latencies)));
    await expect('stop');
    stop.set = true;
    stop.end(null);
    await Promise.all(work);
  }
  const used = process.cpuUsage(cpu);
  const cpuNs = (used.user + used.system) * 1000;
  say({ elapsed_ns: now() - started, cpu_ns: cpuNs, latencies, sections, unfinished });
}

main().catch((error) => { console.error(error); process.exit(1); });
