/**
 * Types of what the client takes and returns. This module has no code.
 *
 * @module
 */

/**
 * An event of a turn's log, or `logRewound`, which the client adds: the service was restored from an older copy, has no
 * longer all events that were seen, and the events of the turn follow from the first one on.
 *
 * @typedef {{type: string, seq?: number} & Record<string, any>} TurnEvent
 */

/**
 * What a tool call has done. `data` is read by the model, `error` too. The other members are those of
 * docs/revisions-and-undo.md.
 *
 * @typedef {{
 *   ok: boolean,
 *   data?: any,
 *   error?: string,
 *   images?: {mimeType: string, data: string}[],
 *   revision?: string,
 *   inverse?: any,
 *   conflict?: boolean,
 *   changes?: string,
 * } & Record<string, any>} ToolOutput
 */

/**
 * One tool request, as an executor receives it.
 *
 * @typedef {object} ToolCall
 * @property {string} toolName
 * @property {any} input The input, which fits the tool's schema.
 * @property {string} effectKey Names the effect. It is the same whenever the same effect is requested again.
 * @property {string} [revision] The revision of the document on which the call was planned.
 * @property {string} [undoes] The effect key of the edit that this call undoes.
 * @property {AbortSignal} signal Aborted when the turn ends before the call does.
 * @property {TurnEvent} request The `toolRequest` itself.
 */

/**
 * What the editor shows now. `revision` changes whenever the document does.
 *
 * @typedef {{snapshot?: any, revision?: string}} EditorState
 */

/**
 * What a page says of itself to an agent of the workspace. It may read `sharedState`, and unless `sharedStateReadOnly`, write
 * its fields with the tool `update-page-state`.
 *
 * @typedef {object} PageContext
 * @property {string} [pageId]
 * @property {Record<string, any>} [urlQuery]
 * @property {Record<string, any>} [sharedState]
 * @property {boolean} [sharedStateReadOnly]
 */

/**
 * The editor's side: it carries out tool requests on its document.
 *
 * @typedef {object} Executor
 * @property {(call: ToolCall) => ToolOutput | Promise<ToolOutput>} execute Carries out one request. An exception becomes a
 *   failed result that the model reads.
 * @property {() => EditorState | Promise<EditorState>} [snapshot] Is sent with prompts and results.
 * @property {() => PageContext | Promise<PageContext>} [context] Is sent with prompts. `withPageState` makes one.
 * @property {readonly string[]} [tools] The tools that it can carry out. Requests for other tools are refused in words.
 */

/**
 * What was done for an effect: `result` is missing while it is being carried out.
 *
 * @typedef {{call: string, at: number, result?: ToolOutput}} Receipt
 */

/**
 * Where receipts are kept, so that a tab that is loaded again does nothing twice.
 *
 * @typedef {object} ReceiptStore
 * @property {(key: string) => Promise<Receipt | undefined>} get
 * @property {(key: string, receipt: Receipt) => Promise<void>} set
 * @property {(prefix: string, olderThan: number) => Promise<void>} clear Removes the receipts whose key has the prefix, and
 *   all that are older than this time (milliseconds since 1970).
 */

/**
 * Returns a bearer token. `refresh` is true when the last token was refused.
 *
 * @typedef {(options: {refresh: boolean}) => string | Promise<string>} TokenProvider
 */

/** @typedef {"connecting" | "open" | "waiting" | "offline" | "closed"} ConnectionState */

/** @typedef {{signal?: AbortSignal}} CallOptions */

/**
 * An image of a prompt: a file, or its bytes (base64 as text).
 *
 * @typedef {Blob | {mimeType: string, data: string | Uint8Array}} PromptImage
 */

/**
 * @typedef {object} FermataOptions
 * @property {string} [baseUrl] The origin of the service; the page's own when it is missing.
 * @property {string | TokenProvider} [token] A bearer token, or a function that is asked for one. Without it, the cookies of
 *   the page's own origin are sent.
 * @property {typeof fetch} [fetch] In place of the global one.
 * @property {"fermata" | "instatic"} [dialect] Which names of tools this editor knows: `insertHtml` or `site_insert_html`.
 *   Without it, the tenant's setting counts.
 * @property {ReceiptStore} [receipts] In place of the browser's IndexedDB, or of memory where there is none.
 * @property {(milliseconds: number, signal?: AbortSignal) => Promise<void>} [wait] In place of a timer, for tests.
 * @property {(problem: Error) => void} [onProblem] Is told of what went wrong beside the turn, such as a result that was
 *   refused. The default writes it to the console.
 */

/**
 * Options of whoever follows a turn.
 *
 * @typedef {object} FollowOptions
 * @property {Executor} [executor] Carries out the turn's tool requests, if no other tab does.
 * @property {AbortSignal} [signal] Ends following. The turn itself goes on.
 * @property {(state: ConnectionState) => void} [onConnection] Is told how the connection is.
 * @property {string} [lease] Name of the lease that one tab holds to execute; the turn's own by default.
 */

/**
 * @typedef {object} StartOnlyOptions
 * @property {string} scope Which assistant is asked: `site`, `content`, `data` or `plugin`.
 * @property {string} [prompt] The user's words.
 * @property {PromptImage[]} [images] At most eight.
 * @property {string} [conversationId] A conversation to continue; without it a new one begins.
 * @property {string | {credentialId: string, modelId: string}} [model] The model of the conversation from now on.
 * @property {any} [snapshot] In place of what the executor's `snapshot()` returns.
 * @property {string} [revision] In place of what the executor's `snapshot()` returns.
 * @property {PageContext} [context] In place of what the executor's `context()` returns.
 * @property {boolean} [browserTools] Whether somebody carries out tool requests: by default, whether there is an executor.
 *   Without, the agent can only talk.
 * @property {string} [idempotencyKey] A key that was used before joins the turn that it started.
 */

/** @typedef {StartOnlyOptions & FollowOptions} StartOptions */

/** @typedef {FollowOptions & {through?: string, idempotencyKey?: string}} UndoOptions */

export {};
