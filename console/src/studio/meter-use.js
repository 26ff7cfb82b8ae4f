/** How much of what is included is used, and what happens at the limit. */

/** From this part on, a person is warned. */
const NEAR = 0.8;
/** More than is included of these is counted, and never refused. */
const NEVER_REFUSED = new Set(["deliveredBytes", "mediaByteHours"]);

/** @typedef {"fine" | "near" | "full"} UseLevel */
/** @typedef {"refused" | "billed" | "counted"} BeyondLimit */

/**
 * Judge a use of the plan, or of a key.
 *
 * @param {{name?: string, used: number | null, included: number | null, isBilled?: boolean}} meter `isBilled`: what is more costs.
 * @returns {{share?: number, level: UseLevel, beyond: BeyondLimit}} `share` is from 0 to 1; it is not there without a limit.
 */
export function judgeUse({ name = "", used, included, isBilled = false }) {
  const isSold = isBilled && included !== 0; // what a plan does not have is not sold one by one
  const beyond = isSold ? "billed" : NEVER_REFUSED.has(name) ? "counted" : "refused";
  if (included === null || used === null) return { level: "fine", beyond };
  if (included === 0) return { share: used ? 1 : 0, level: used ? "full" : "fine", beyond };
  const share = Math.min(1, used / included);
  return { share, level: used >= included ? "full" : share >= NEAR ? "near" : "fine", beyond };
}
