// Outcomes on their way to the agent: those that end together travel in one message, and none of them waits for long.

const MAX_WAIT = 2_000_000n; // ns

/** The place of `done` in an outcome. */
const DONE = 2;

export class Outcomes {
  #pending = [];
  #scheduled;
  #send;

  /** @param {(outcomes: unknown[][]) => void} send */
  constructor(send) {
    this.#send = send;
  }

  /**
   * Adds an outcome to the next message. It goes out when the event loop has handled what is ready, but a long burst of replies must
   * not hold back the first ones until it is over.
   *
   * @param {unknown[]} outcome
   */
  add(outcome) {
    this.#pending.push(outcome);
    if (outcome[DONE] - this.#pending[0][DONE] > MAX_WAIT) {
      this.flush();
    } else {
      this.#scheduled ??= setImmediate(() => this.flush());
    }
  }

  flush() {
    if (this.#pending.length === 0) {
      return;
    }
    clearImmediate(this.#scheduled);
    this.#scheduled = undefined;
    const outcomes = this.#pending;
    this.#pending = [];
    this.#send(outcomes);
  }
}
