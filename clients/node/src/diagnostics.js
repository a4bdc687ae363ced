// What the adapter's developer reads: lines on standard error, bounded, since a library may report one per request.

import { Console } from 'node:console';
import { Writable } from 'node:stream';
import { describe } from './errors.js';
import { clip } from './text.js';

const LINES_PER_SECOND = 5;
const LINE_BYTES = 500;

let second = 0;
let written = 0;
let dropped = 0;

/**
 * Writes one line, unless this second had its lines.
 *
 * @param {unknown} what a text or an error
 */
export function report(what) {
  const now = Math.floor(performance.now() / 1000);
  if (now !== second) {
    if (dropped > 0) {
      process.stderr.write(`… and ${dropped} lines more\n`);
    }
    second = now;
    written = 0;
    dropped = 0;
  }
  if (written === LINES_PER_SECOND) {
    dropped++;
    return;
  }
  written++;
  process.stderr.write(`${clip(describe(what).replaceAll('\n', ' '), LINE_BYTES)}\n`);
}

/**
 * Keeps the process alive, and standard output empty, whatever a library does in its background: its messages, and errors
 * that nobody handles, become lines on standard error.
 */
export function captureLibraries() {
  const lines = new Writable({
    decodeStrings: false,
    write(text, _encoding, done) {
      report(String(text).trimEnd());
      done();
    },
  });
  globalThis.console = new Console(lines);
  process.on('uncaughtException', report);
  process.on('unhandledRejection', report);
}
