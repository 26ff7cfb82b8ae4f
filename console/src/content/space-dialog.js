/** Create a site, or another environment of one. */

import { announce, askInDialog, field, h } from "../dom.js";
import { words } from "../words/index.js";

/**
 * @param {import("@fermata/client/content").ContentClient} client
 * @returns {Promise<any>} The new space; undefined if nobody wanted it.
 */
export async function askForSpace(client) {
  const { site, siteHint, environment, locales, localesHint, newSpace, created } = words.content;
  const input = (/** @type {string} */ name, value = "") =>
    h("input", { name, value, required: true, autocomplete: "off", spellcheck: false });
  /** @type {any} */
  let made;
  await askInDialog(
    newSpace,
    [
      field(site, input("site"), siteHint),
      field(environment, input("environment", "main")),
      field(locales, input("locales", "en"), localesHint),
    ],
    {
      action: words.add,
      onAction: async (data) => {
        const text = (/** @type {string} */ name) => String(data.get(name)).trim();
        const codes = text("locales")
          .split(/[\s,]+/)
          .filter(Boolean);
        made = await client.spaces.create({ site: text("site"), environment: text("environment"), locales: codes });
      },
    },
  );
  if (made) announce(created(`${made.site}/${made.environment}`));
  return made;
}
