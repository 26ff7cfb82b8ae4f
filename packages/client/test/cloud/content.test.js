import assert from "node:assert/strict";
import { test } from "node:test";
import { ConflictError } from "@fermata/client";
import { ContentClient } from "@fermata/client/content";
import { TOKEN, URL_OF_CLOUD } from "../support/cloud.js";

/** A red square of 8 by 8 pixels. */
const RED_PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAFElEQVR4nGM8ISfHgA0wYRUdtBIA0MoBFD5jqJkAAAAASUVORK5CYII=";

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

test("an image is uploaded once, and shown at an address, and its texts are found", async () => {
  const client = new ContentClient({ baseUrl: URL_OF_CLOUD, token: async () => TOKEN });
  const site = `site-${crypto.randomUUID()}`;
  await client.spaces.create({ site });
  const { assets, documents, search, deliveryTokens } = client.space(site);
  const picture = new File([Buffer.from(RED_PNG, "base64")], "red.png", { type: "image/png" });
  const asset = await assets.upload(picture, { alt: "A red square", tags: ["square"] });
  assert.equal((await assets.upload(picture)).id, asset.id);
  assert.equal((await documents.list("asset")).total, 1);
  const shown = await fetch(await assets.addressOf(asset.id, "thumbnail"));
  assert.equal(shown.headers.get("content-type"), "image/webp", await shown.text());
  const { token } = await deliveryTokens.issue({ mode: "published" });
  const delivered = await fetch(`${URL_OF_CLOUD}/delivery/${token}/assets/${asset.id}/small`);
  assert.deepEqual([delivered.status, delivered.redirected], [200, true]);
  await assert.rejects(assets.addressOf("none"), { name: "NotFoundError" });
  for (let cursor; cursor !== null; ) {
    const step = await search.index({ again: true, ...(cursor && { cursor }) });
    cursor = step.cursor ?? null;
  }
  assert.equal((await search.find("red", { type: "image" }))[0].id, asset.id);
  assert.deepEqual(await search.model(), { credentialId: "", modelId: "" });
});

test("content is read with a token, and exported into another space", async () => {
  const client = new ContentClient({ baseUrl: URL_OF_CLOUD, token: async () => TOKEN });
  const site = `site-${crypto.randomUUID()}`;
  for (const environment of ["main", "staging"]) await client.spaces.create({ site, environment });
  const { documents, deliveryTokens, transfer } = client.space(site);
  const { document } = await documents.create("post", { title: "News", slug: "news", status: "published" });
  const { token, deliveryToken } = await deliveryTokens.issue({ mode: "published" });
  const address = `${URL_OF_CLOUD}/delivery/${token}/slugs/post/news`;
  assert.equal((await (await fetch(address)).json()).document.id, document.id);
  assert.deepEqual(
    (await deliveryTokens.list()).map(({ id }) => id),
    [deliveryToken.id],
  );
  await deliveryTokens.revoke(deliveryToken.id);
  assert.equal((await fetch(address)).status, 404);
  const staging = client.space(site, "staging");
  const items = [];
  for (let part = await transfer.export(); part; ) {
    items.push(...(await staging.transfer.import({ models: part.models, documents: part.documents })));
    part = part.nextCursor && (await transfer.export({ cursor: part.nextCursor }));
  }
  assert.deepEqual(
    items.filter(({ model }) => model === "post"),
    [{ model: "post", id: document.id, outcome: "created" }],
  );
  assert.equal((await staging.documents.get("post", document.id)).title, "News");
});
