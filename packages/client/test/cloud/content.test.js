import assert from "node:assert/strict";
import { test } from "node:test";
import { ConflictError } from "@fermata/client";
import { ContentClient } from "@fermata/client/content";
import { TOKEN, URL_OF_CLOUD } from "../support/cloud.js";

test("content is kept in versions, and a change of another one than was seen is refused", async () => {
  const client = new ContentClient({ baseUrl: URL_OF_CLOUD, token: async () => TOKEN });
  const site = `site-${crypto.randomUUID()}`;
  await client.spaces.create({ site, locales: ["en", "de"] });
  assert.ok((await client.spaces.list()).some((space) => space.site === site));
  const { models, documents, changeSets } = client.space(site);
  await models.put("recipe", { kind: "collection", i18n: true, fields: { title: { type: "string" } } });
  const { document } = await documents.create("recipe", { locales: { en: { title: "Rye" } } });
  await documents.update("recipe", document.id, { locales: { en: { title: "Rye bread" } } }, { ifVersion: 1 });
  const stale = documents.update("recipe", document.id, { title: "Bread" }, { ifVersion: 1 });
  await assert.rejects(stale, { status: 412 });
  const { id } = await changeSets.begin({ title: "Winter" });
  await changeSets.change(id, "recipe", document.id, { locales: { en: { title: "Dark rye" } } });
  await documents.restore("recipe", document.id, 1);
  const conflict = await changeSets.merge(id).catch((error) => error);
  assert.ok(conflict instanceof ConflictError);
  assert.deepEqual(conflict.details.conflicts[0].fields[0].theirs, "Rye");
  await changeSets.merge(id, { prefer: "ours" });
  assert.equal((await documents.get("recipe", document.id)).locales.en.title, "Dark rye");
  assert.equal((await documents.versions("recipe", document.id)).versions.length, 4);
  await documents.remove("recipe", document.id);
  assert.deepEqual((await documents.list("recipe")).documents, []);
});

test("a repeated write with one key is carried out once", async () => {
  const client = new ContentClient({ baseUrl: URL_OF_CLOUD, token: async () => TOKEN });
  const site = `site-${crypto.randomUUID()}`;
  await client.spaces.create({ site });
  const { documents } = client.space(site);
  const create = () => documents.create("post", { title: "News" }, { idempotencyKey: "one" });
  assert.equal((await create()).document.id, (await create()).document.id);
});
