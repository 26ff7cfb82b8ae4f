/**
 * Lists of calls that are never changed, only followed by others. Where a call is in its list is known without a search, so
 * that a response of thousands of calls does not slow down with each of them.
 */

/** @import { CallView } from "./turn-view.js" */

/** Where the calls of the newest list of a row are, by their ids. @type {WeakMap<CallView[], Map<string, number>>} */
const places = new WeakMap();

/**
 * @param {CallView[]} calls
 * @param {CallView} call
 * @returns {CallView[]}
 */
export function appendCall(calls, call) {
  const known = placesOf(calls);
  known.set(call.id, calls.length);
  return handOn(calls, [...calls, call], known);
}

/**
 * @param {CallView[]} calls
 * @param {number} place
 * @param {CallView} call With the id of the one that it replaces.
 * @returns {CallView[]}
 */
export function changeCallAt(calls, place, call) {
  return handOn(calls, calls.with(place, call), placesOf(calls));
}

/**
 * @param {CallView[]} calls
 * @param {string} id
 * @returns {number} The place of the last call with this id; -1 where there is none.
 */
export function findCall(calls, id) {
  return placesOf(calls).get(id) ?? -1;
}

/** @param {CallView[]} calls */
function placesOf(calls) {
  const known = places.get(calls) ?? new Map(calls.map(({ id }, place) => [id, place]));
  places.set(calls, known);
  return known;
}

/**
 * @param {CallView[]} before Its places are counted anew, should anybody still ask for them.
 * @param {CallView[]} after
 * @param {Map<string, number>} known
 */
function handOn(before, after, known) {
  places.delete(before);
  places.set(after, known);
  return after;
}
