// A proof of work, solved in a worker, so that the page stays alive; until it is solved or stopped.

/** How many tries a challenge of this number of bits takes on average. */
export const expectedTries = (bits) => 2 ** bits;

/**
 * The text to send as Seckill-Solution. `onTries(n)` now and then. Rejects when `signal` is aborted, or the worker cannot run.
 */
export function solve({ algorithm, nonce, bits }, signal, onTries) {
  return new Promise((resolve, reject) => {
    if (algorithm !== 'sha-256') {
      reject(new Error(String(algorithm)));
      return;
    }
    const worker = new Worker('solver-worker.js', { type: 'module' });
    const end = (settle, value) => {
      worker.terminate();
      signal.removeEventListener('abort', stop);
      settle(value);
    };
    const stop = () => end(reject, signal.reason);
    worker.addEventListener('message', ({ data }) => (data.solution ? end(resolve, data.solution) : onTries(data.tries)));
    worker.addEventListener('error', (event) => end(reject, new Error(event.message ?? 'worker')));
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    else worker.postMessage({ nonce, bits });
  });
}
