/**
 * A lease: of all tabs that could execute a turn's requests, one does. The browser gives it to the next one when that tab
 * is closed or dies (Web Locks). Where there are none, the lease holds within this page only.
 */

/** The ends of the leases that are held or awaited in this page, by name. @type {Map<string, Promise<void>>} */
const tails = new Map();

/**
 * Wait for a lease, and hold it while the function runs.
 *
 * @param {string} name
 * @param {AbortSignal} signal Aborted: no longer wait. It does not end the function.
 * @param {() => Promise<void>} whileHeld
 * @returns {Promise<void>}
 */
export async function withLease(name, signal, whileHeld) {
  const locks = globalThis.navigator?.locks;
  let wasHeld = false;
  const hold = () => {
    wasHeld = true;
    return whileHeld();
  };
  try {
    if (locks) return await locks.request(`fermata:${name}`, { signal }, hold);
  } catch (error) {
    if (signal.aborted) return;
    if (wasHeld) throw error; // else the page may have no locks, such as in a sandboxed frame
  }
  await withLocalLease(name, signal, hold);
}

/**
 * @param {string} name
 * @param {AbortSignal} signal
 * @param {() => Promise<void>} whileHeld
 */
async function withLocalLease(name, signal, whileHeld) {
  const before = tails.get(name) ?? Promise.resolve();
  const turn = before.then(() => (signal.aborted ? undefined : whileHeld()));
  const tail = turn.catch(() => {});
  tails.set(name, tail);
  await turn.finally(() => {
    if (tails.get(name) === tail) tails.delete(name);
  });
}
