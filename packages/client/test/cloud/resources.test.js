import assert from "node:assert/strict";
import { test } from "node:test";
import { Fermata } from "@fermata/client";
import { ContentClient } from "@fermata/client/content";
import { checkSchema } from "../../src/schema.js";
import { newClient, scripted } from "../support/cloud.js";
import { FakeService, json } from "../support/fake-service.js";

/** Operations that an editor or a console does not need from this client, and why. */
const LEFT_OUT = {
  editorBridge: "only Instatic's own editor asks it",
  listConnectors: "only Instatic's own pages ask it",
  createConnector: "only Instatic's own pages ask it",
  revokeConnector: "only Instatic's own pages ask it",
  askMcp: "for MCP clients",
  askMcpOfWorkspace: "for MCP clients",
  askInstaticMcp: "for MCP clients",
  showResourceMetadata: "for MCP clients",
  askTestModel: "only the command line's check of a deployment asks it",
  showHealth: "for monitoring",
  showHealthHere: "for monitoring",
  showVersion: "for monitoring",
  showVersionHere: "for monitoring",
  showOpenApi: "for generators",
  listQueuedPrompts: "the panel asks for one turn at a time",
  editQueuedPrompt: "the panel asks for one turn at a time",
  dropQueuedPrompt: "the panel asks for one turn at a time",
  storeAssets: "for programs: the client shows the progress of each file, and sends one at a time",
  changeAssets: "for programs, as storeAssets",
  issueCallbackToken: "for servers, which post results without a session",
  postCallbackResult: "for servers",
  postRemoteResult: "for servers of remote tools",
  chatWithPlanner: "only clients of the planner ask it",
  streamPlannerChat: "only clients of the planner ask it",
  startPlannerChat: "only clients of the planner ask it",
  forecastPlannerChat: "only clients of the planner ask it",
  cancelPlannerChat: "only clients of the planner ask it",
  applyOperations: "only clients of the planner ask it",
  decideApprovals: "for inboxes of servers; a card decides about its own call",
  listPendingPlans: "only clients of the planner ask it",
  showHistoryStatus: "only clients of the planner ask it",
  listHistory: "only clients of the planner ask it",
  undoChange: "only clients of the planner ask it",
  redoChange: "only clients of the planner ask it",
  restoreVersion: "only clients of the planner ask it",
  showDraftPage: "only clients of the planner ask it",
  listDraftSlugs: "only clients of the planner ask it",
  bootstrapDraft: "only clients of the planner ask it",
  showPublishDifference: "only clients of the planner ask it",
  publishDraft: "only clients of the planner ask it",
  showPublishLog: "only clients of the planner ask it",
  showPublishedPage: "only clients of the planner ask it",
  restoreEdition: "only clients of the planner ask it",
  varyBlock: "only clients of the planner ask it",
  streamVariations: "only clients of the planner ask it",
  showPublishStatus: "only clients of the planner ask it",
  listEditions: "only clients of the planner ask it",
  listSites: "only clients of the planner ask it",
  registerSite: "only clients of the planner ask it",
  removeSite: "only clients of the planner ask it",
  listPlannerSessions: "only clients of the planner ask it",
  showPlannerCaller: "only clients of the planner ask it",
  showForm: "pages of sites ask it, without a token",
  submitForm: "pages of sites ask it, without a token",
  chatInStudio: "for the studio's own clients",
  followStudioChat: "for the studio's own clients",
  listStudioConversations: "for the studio's own clients",
  showStudioMessages: "for the studio's own clients",
  sendConversationMessage: "for programs with a key of the Conversation API",
  showConversationHistory: "for programs with a key of the Conversation API",
  deliverDocuments: "only sites ask it, with a token in the address",
  deliverDocument: "only sites ask it, with a token in the address",
  deliverSlug: "only sites ask it, with a token in the address",
  deliverAsset: "only sites ask it, with a token in the address",
  listAgentDefinitions: "agents are pushed from files, by the command line",
  pushAgents: "agents are pushed from files, by the command line",
  showAgentDefinition: "agents are pushed from files, by the command line",
  removeAgentDefinition: "agents are pushed from files, by the command line",
  listSecrets: "secrets of agents are entered on the command line",
  setSecret: "secrets of agents are entered on the command line",
  removeSecret: "secrets of agents are entered on the command line",
  chatOnPage: "for clients of the AI SDK",
  resumeChatOnPage: "for clients of the AI SDK",
  chatWithAgent: "for clients of the AI SDK",
  resumeChat: "for clients of the AI SDK",
  stopChat: "for clients of the AI SDK",
  runAgui: "for clients of AG-UI",
  createChatCompletion: "for OpenAI's clients",
  createResponse: "for OpenAI's clients",
  showResponse: "for OpenAI's clients",
  deleteResponse: "for OpenAI's clients",
  listResponseInputItems: "for OpenAI's clients",
  cancelResponse: "for OpenAI's clients",
  listAgentModels: "for OpenAI's clients",
  showAgentModel: "for OpenAI's clients",
  streamCmsAnswer: "for clients of the CMS agent's own protocol",
  followCmsAnswer: "for clients of the CMS agent's own protocol",
  generateCmsAnswer: "for clients of the CMS agent's own protocol",
  decideCmsApproval: "for clients of the CMS agent's own protocol",
  showGitRepository: "the command line asks it",
  connectGitRepository: "the command line asks it",
  disconnectGitRepository: "the command line asks it",
  checkGitRepository: "the command line asks it",
  pullGitRepository: "the command line asks it",
  pushGitRepository: "the command line asks it",
  exportProjectFiles: "the command line asks it",
  importProjectFiles: "the command line asks it",
  syncContent: "for programs that keep a copy: the console shows what it opens",
  listCmsSessions: "for clients of the CMS agent's own protocol",
  createCmsSession: "for clients of the CMS agent's own protocol",
  showCmsSession: "for clients of the CMS agent's own protocol",
  changeCmsSession: "for clients of the CMS agent's own protocol",
  deleteCmsSession: "for clients of the CMS agent's own protocol",
  showCmsMemory: "for clients of the CMS agent's own protocol",
  listCmsLogs: "for clients of the CMS agent's own protocol",
  generate: "for servers",
};

test("every operation of the service has a method, and every method an operation", async () => {
  const { paths } = await (await fetch(`${process.env.FERMATA_URL}/admin/api/ai/openapi.json`)).json();
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => ({
      id: operationId,
      line: `${method.toUpperCase()} ${path
        .replace("/admin/api/ai", "")
        .replaceAll(/\{\w+\}/g, "x")
        .replace("images/x", "images/1")}`,
    })),
  );
  const service = new FakeService();
  const fermata = new Fermata({ ...service.options, wait: async () => {} });
  service.on("POST", "/conversations", () => json(201, { conversation: { id: "x" } }));
  for (const resource of Object.values(fermata)) {
    for (const method of Object.values(resource)) await callWithIds(method);
  }
  const content = new ContentClient({ ...service.options, wait: async () => {} });
  await content.plan().catch(() => {});
  for (const resource of [content.spaces, ...Object.values(content.space("x", "x"))]) {
    for (const method of Object.values(resource))
      await callWithIds(method, [["x", {}], ["x", "x", {}], ["x", "x", "x", {}], [{}]]);
  }
  const ignore = () => {};
  await fermata.start({ scope: "x", prompt: "x" }).catch(ignore);
  await fermata.undo("x").catch(ignore);
  await fermata.follow("x").result.catch(ignore);
  await fermata.answer("x", "x", { ok: true }).catch(ignore);
  await fermata.start({ scope: "x", prompt: "x", snapshot: "x".repeat(5_000_000) }).catch(ignore);
  const called = new Set(service.requests.map(({ method, path }) => `${method} ${path}`));
  const missing = operations.filter(({ id, line }) => !called.has(line) && !(id in LEFT_OUT)).map(({ id }) => id);
  assert.deepEqual(missing, [], "operations without a method: add one, or say in LEFT_OUT why there is none");
  const lines = new Set(operations.map(({ line }) => line));
  assert.deepEqual(
    [...called].filter((line) => !lines.has(line) && !/object|undefined/.test(line)),
    [],
  );
});

const NAMES = { providerId: "x", credentialId: "x", scope: "x" };
const ARGUMENTS = [["x", {}, {}], ["x", "x", 1], [NAMES]];

/** Call a method with the id `x` wherever it takes one. */
async function callWithIds(method, arguments_ = ARGUMENTS) {
  for (const values of arguments_) {
    await Promise.resolve()
      .then(() => method(...values))
      .catch(() => {});
  }
}

test("every schema of a tool that an editor carries out has only keywords that the client checks", async () => {
  const fermata = newClient();
  let count = 0;
  for (const { name } of await fermata.scopes.list()) {
    for (const tool of await fermata.tools.list(name)) {
      if (tool.execution !== "browser") continue;
      checkSchema(tool.inputSchema, ` of ${tool.name}`);
      count += 1;
    }
  }
  assert.ok(count > 30, `${count} schemas`);
});

test("conversations are begun, listed, renamed, read and deleted", async () => {
  const { conversations } = newClient();
  const made = await conversations.create({ scope: "content", title: "First" });
  assert.equal((await conversations.update(made.id, { title: "Second" })).title, "Second");
  const page = await conversations.list({ scope: "content", limit: 1 });
  assert.deepEqual(
    page.conversations.map(({ id, title }) => [id, title]),
    [[made.id, "Second"]],
  );
  assert.deepEqual((await conversations.get(made.id)).conversation.messages, []);
  await conversations.remove(made.id);
  await assert.rejects(conversations.get(made.id), { name: "NotFoundError" });
});

test("credentials, models and defaults are set and removed", async () => {
  const { credentials, models, defaults } = newClient();
  const before = await defaults.list();
  const made = await credentials.create({
    providerId: "anthropic",
    authMode: "apiKey",
    displayLabel: `Second ${Math.random()}`,
    apiKey: "demo",
  });
  assert.equal((await credentials.get(made.id)).id, made.id);
  assert.equal((await credentials.update(made.id, { displayLabel: `${made.displayLabel}!` })).displayLabel.at(-1), "!");
  assert.equal((await credentials.test(made.id)).ok, true);
  const [model] = await models.list({ providerId: "anthropic", credentialId: made.id });
  const choice = { credentialId: made.id, modelId: model.id };
  assert.equal((await defaults.update("data", choice)).modelId, model.id);
  await assert.rejects(credentials.remove(made.id), { name: "ConflictError" });
  await defaults.remove("data");
  await credentials.remove(made.id);
  assert.ok(!(await credentials.list()).some(({ id }) => id === made.id));
  await defaults.update("data", before.data);
});

test("budgets are set and read, and the audit has what a turn has used", async () => {
  const fermata = newClient();
  const budgets = await fermata.budgets.update({ tenant: { monthlyUsd: 1000 } });
  assert.deepEqual((await fermata.budgets.get()).tenant, budgets.tenant);
  const turn = await fermata.start({ scope: "site", prompt: scripted("text") });
  await turn.result;
  const audit = await fermata.audit.get({
    since: new Date(Date.now() - 3_600_000),
    tz: "Europe/Berlin",
    billable: true,
  });
  assert.ok(Array.isArray(audit.byDay) && audit.totals.promptTokens >= 0);
  await fermata.budgets.update({});
});

test("keys for servers are made, rotated and revoked", async () => {
  const { apiKeys } = newClient();
  const made = await apiKeys.create({ label: "A server", capabilities: ["ai.chat"] });
  const rotated = await apiKeys.rotate(made.apiKey.id, { overlapSeconds: 0 });
  assert.notEqual(made.key, rotated.key);
  assert.ok((await newClient({ token: rotated.key }).scopes.list()).length > 0);
  await apiKeys.remove(made.apiKey.id);
  assert.ok((await apiKeys.list()).some(({ id }) => id === made.apiKey.id));
});
