/** The client of Fermata for editors: `new Fermata({ baseUrl, token })`. */

export * from "./errors.js";
export { Fermata } from "./fermata.js";
export { indexedDbReceipts, memoryReceipts, storageReceipts } from "./receipts.js";
export { Turn } from "./turn.js";
/** @typedef {import("./types.js").ConnectionState} ConnectionState */
/** @typedef {import("./types.js").EditorState} EditorState */
/** @typedef {import("./types.js").Executor} Executor */
/** @typedef {import("./types.js").FermataOptions} FermataOptions */
/** @typedef {import("./types.js").FollowOptions} FollowOptions */
/** @typedef {import("./types.js").PageContext} PageContext */
/** @typedef {import("./types.js").PromptImage} PromptImage */
/** @typedef {import("./types.js").ReceiptStore} ReceiptStore */
/** @typedef {import("./types.js").StartOptions} StartOptions */
/** @typedef {import("./types.js").ToolCall} ToolCall */
/** @typedef {import("./types.js").ToolOutput} ToolOutput */
/** @typedef {import("./types.js").TurnEvent} TurnEvent */
/** @typedef {import("./types.js").UndoOptions} UndoOptions */
