// Starts the adapter of one driver: main.js DRIVER SOCKET

import { createConnection } from 'node:net';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { captureLibraries, report } from './diagnostics.js';
import { Session } from './session.js';

const DRIVERS = {
  NodeRedis: { library: 'redis', load: () => import('./drivers/node-redis.js') },
  IORedis: { library: 'ioredis', load: () => import('./drivers/ioredis.js') },
  GlideNode: { library: '@valkey/valkey-glide', load: () => import('./drivers/glide.js') },
};

const RETRY_EVERY = 100;
const RETRY_FOR = 5 * 60_000;

function fail(error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exit(1);
}

/** Connects to the agent's socket, as soon as somebody listens there. */
async function connect(path) {
  const deadline = performance.now() + RETRY_FOR;
  for (;;) {
    try {
      return await new Promise((resolve, reject) => {
        const socket = createConnection(path, () => resolve(socket.off('error', reject))).on('error', reject);
      });
    } catch (error) {
      if (performance.now() >= deadline) {
        throw error;
      }
    }
    await sleep(RETRY_EVERY);
  }
}

async function main([name, path]) {
  // The first process of a container ignores the signal that ends it, unless there is a listener.
  process.on('SIGTERM', () => process.exit(0));
  const { library, load } = DRIVERS[name];
  captureLibraries();
  const { Client } = await load();
  const { version } = JSON.parse(readFileSync(new URL(`../node_modules/${library}/package.json`, import.meta.url)));
  const socket = await connect(path);
  const session = new Session(socket, { name, library, version, Client }, fail);
  socket.on('error', report);
  socket.on('close', () => session.close().finally(() => process.exit(0)));
  session.start();
}

const [driver, path, ...rest] = process.argv.slice(2);
if (!Object.hasOwn(DRIVERS, driver) || path === undefined || rest.length > 0) {
  fail('usage: DRIVER SOCKET');
}
main([driver, path]).catch(fail);
