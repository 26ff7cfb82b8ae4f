/** The panel's words, by language. */

import { APPROVAL_WORDS } from "./approvals/approval-words.js";

/** @typedef {typeof EN} Messages */

const EN = {
  panel: "Assistant",
  newChat: "New chat",
  history: "Conversations",
  close: "Close",
  back: "Back",
  searchHistory: "Search conversations",
  noConversations: "No conversations yet. What you ask is kept here.",
  noMatches: "Nothing found.",
  more: "Show more",
  older: "Show earlier messages",
  rename: "Rename",
  remove: "Delete",
  removeSure: "Delete this conversation?",
  untitled: "Untitled",
  emptyTitle: "What should change?",
  emptyText: "Describe it in your own words. The assistant edits the page, and every edit can be undone.",
  placeholder: "Ask for a change …",
  send: "Send",
  stop: "Stop",
  stopping: "Stopping …",
  attach: "Attach images",
  removeImage: (/** @type {string} */ name) => `Remove ${name}`,
  imageFromPrompt: "Attached image",
  dropHere: "Drop images here",
  tooManyImages: (/** @type {number} */ most) => `A prompt takes at most ${most} images.`,
  imageTooLarge: (/** @type {string} */ name, /** @type {string} */ size, /** @type {string} */ most) =>
    `${name} has ${size}; at most ${most} can be sent. Save it smaller, and attach it again.`,
  noImage: (/** @type {string} */ name) => `${name} is no JPEG, PNG, GIF or WebP image.`,
  unreadableImage: (/** @type {string} */ name) => `${name} cannot be read as an image.`,
  modelReadsNoImages: (/** @type {string} */ model) =>
    `${model} reads no images. Choose another model, or remove them.`,
  model: "Model",
  chooseModel: "Choose a model",
  searchModels: "Search models",
  noModels: "This key opens no models.",
  perMillion: (/** @type {string} */ input, /** @type {string} */ output) =>
    `${input} in, ${output} out per million tokens`,
  thinking: "Thinking",
  thought: "Thoughts",
  working: "Working",
  waitingForYou: "Waiting",
  held: (/** @type {string} */ until) => `Waiting for an answer until ${until}.`,
  undo: "Undo",
  undoTurn: "Undo this turn",
  isUndone: "Undone",
  undone: (/** @type {number} */ count) => (count === 1 ? "1 edit was undone." : `${count} edits were undone.`),
  undoneNothing: "Nothing was undone.",
  skipped: (/** @type {number} */ count) => (count === 1 ? "1 edit was kept:" : `${count} edits were kept:`),
  undoing: "Undoing the edits …",
  retry: "Try again",
  dismiss: "Dismiss",
  stopped: "Stopped.",
  offline: "You are offline. The turn goes on, and shows here when the connection is back.",
  offlineIdle: "You are offline.",
  reconnecting: "The connection broke. Connecting again …",
  lockSetup: "No provider key yet",
  lockSetupText: "Add the key of a model provider to use the assistant.",
  lockChoose: "No model chosen",
  lockChooseText: "Choose a model to begin.",
  lockSignedOut: "You are signed out",
  lockSignedOutText: "Sign in again to go on. What you have typed stays here.",
  lockForbidden: "You may not use the assistant",
  lockForbiddenText: "Ask whoever manages your account.",
  lockUnreachable: "The service cannot be reached",
  lockUnreachableText: "Check the connection, and try again.",
  settings: "Open settings",
  context: (/** @type {string} */ used, /** @type {string} */ all) => `${used} of ${all} tokens of context used`,
  contextSize: (/** @type {string} */ size) => `${size} tokens of context`,
  tokens: (/** @type {string} */ input, /** @type {string} */ output) => `${input} tokens in, ${output} out`,
  calls: {
    insertHtml: "Add elements",
    replaceNodeHtml: "Rewrite an element",
    deleteNode: "Delete an element",
    moveNode: "Move an element",
    duplicateNode: "Duplicate an element",
    updateNodeProps: "Change properties",
    renameNode: (/** @type {string} */ name) => (name ? `Name it “${name}”` : "Name an element"),
    applyCss: (/** @type {string} */ selector) => (selector ? `Style ${selector}` : "Change styles"),
    assignClass: (/** @type {string} */ name) => `Add class ${name}`,
    removeClass: (/** @type {string} */ name) => `Remove class ${name}`,
    read_document: "Read the page",
    getNodeHtml: "Read an element",
    open_document: "Open a page",
    render_snapshot: "Look at the page",
    addPage: (/** @type {string} */ name) => `Add page ${name}`,
    renamePage: "Rename a page",
    deletePage: "Delete a page",
    duplicatePage: "Duplicate a page",
    restore: "Restore",
  },
  callPending: "running",
  callOpen: "not carried out",
  callOk: "done",
  callFailed: "failed",
  callConflict: "the page had changed",
  callInput: "Input",
  earlierCalls: (/** @type {number} */ count, /** @type {number} */ failed) =>
    (count === 1 ? "1 earlier step" : `${count} earlier steps`) + (failed ? `, ${failed} failed` : ""),
  earlierRounds: (/** @type {number} */ count) => `Show what came before (${count})`,
  /** In place of what the service says, by its code or status (`status409`). @type {Record<string, string>} */
  service: {},
  approval: APPROVAL_WORDS.en,
  answerReady: "The assistant has answered.",
  you: "You",
  assistant: "Assistant",
};

/** @type {Messages} */
const DE = {
  panel: "Assistent",
  newChat: "Neuer Chat",
  history: "Unterhaltungen",
  close: "Schließen",
  back: "Zurück",
  searchHistory: "Unterhaltungen durchsuchen",
  noConversations: "Noch keine Unterhaltungen. Was Sie fragen, steht später hier.",
  noMatches: "Nichts gefunden.",
  more: "Mehr anzeigen",
  older: "Frühere Nachrichten anzeigen",
  rename: "Umbenennen",
  remove: "Löschen",
  removeSure: "Diese Unterhaltung löschen?",
  untitled: "Ohne Titel",
  emptyTitle: "Was soll sich ändern?",
  emptyText:
    "Beschreiben Sie es mit eigenen Worten. Der Assistent bearbeitet die Seite, und jede Änderung lässt sich zurücknehmen.",
  placeholder: "Um eine Änderung bitten …",
  send: "Senden",
  stop: "Anhalten",
  stopping: "Wird angehalten …",
  attach: "Bilder anhängen",
  removeImage: (name) => `${name} entfernen`,
  imageFromPrompt: "Angehängtes Bild",
  dropHere: "Bilder hier ablegen",
  tooManyImages: (most) => `Eine Frage nimmt höchstens ${most} Bilder auf.`,
  imageTooLarge: (name, size, most) =>
    `${name} hat ${size}; höchstens ${most} können gesendet werden. Speichern Sie es kleiner, und hängen Sie es erneut an.`,
  noImage: (name) => `${name} ist kein JPEG-, PNG-, GIF- oder WebP-Bild.`,
  unreadableImage: (name) => `${name} lässt sich nicht als Bild lesen.`,
  modelReadsNoImages: (model) =>
    `${model} liest keine Bilder. Wählen Sie ein anderes Modell, oder entfernen Sie die Bilder.`,
  model: "Modell",
  chooseModel: "Modell wählen",
  searchModels: "Modelle durchsuchen",
  noModels: "Dieser Schlüssel öffnet keine Modelle.",
  perMillion: (input, output) => `${input} hinein, ${output} heraus je Million Tokens`,
  thinking: "Denkt nach",
  thought: "Gedanken",
  working: "Arbeitet",
  waitingForYou: "Wartet",
  held: (until) => `Wartet bis ${until} auf eine Antwort.`,
  undo: "Zurücknehmen",
  undoTurn: "Diese Antwort zurücknehmen",
  isUndone: "Zurückgenommen",
  undone: (count) => (count === 1 ? "1 Änderung wurde zurückgenommen." : `${count} Änderungen wurden zurückgenommen.`),
  undoneNothing: "Es wurde nichts zurückgenommen.",
  skipped: (count) => (count === 1 ? "1 Änderung ist geblieben:" : `${count} Änderungen sind geblieben:`),
  undoing: "Die Änderungen werden zurückgenommen …",
  retry: "Erneut versuchen",
  dismiss: "Ausblenden",
  stopped: "Angehalten.",
  offline: "Sie sind offline. Die Antwort läuft weiter und erscheint hier, sobald die Verbindung zurück ist.",
  offlineIdle: "Sie sind offline.",
  reconnecting: "Die Verbindung ist abgerissen. Sie wird neu aufgebaut …",
  lockSetup: "Noch kein Schlüssel eines Anbieters",
  lockSetupText: "Hinterlegen Sie den Schlüssel eines Modellanbieters, um den Assistenten zu nutzen.",
  lockChoose: "Kein Modell gewählt",
  lockChooseText: "Wählen Sie zuerst ein Modell.",
  lockSignedOut: "Sie sind abgemeldet",
  lockSignedOutText: "Melden Sie sich wieder an. Was Sie geschrieben haben, bleibt hier.",
  lockForbidden: "Sie dürfen den Assistenten nicht nutzen",
  lockForbiddenText: "Fragen Sie, wer Ihr Konto verwaltet.",
  lockUnreachable: "Der Dienst ist nicht erreichbar",
  lockUnreachableText: "Prüfen Sie die Verbindung, und versuchen Sie es erneut.",
  settings: "Einstellungen öffnen",
  context: (used, all) => `${used} von ${all} Tokens Kontext belegt`,
  contextSize: (size) => `${size} Tokens Kontext`,
  tokens: (input, output) => `${input} Tokens hinein, ${output} heraus`,
  calls: {
    insertHtml: "Elemente hinzufügen",
    replaceNodeHtml: "Ein Element neu schreiben",
    deleteNode: "Ein Element löschen",
    moveNode: "Ein Element verschieben",
    duplicateNode: "Ein Element verdoppeln",
    updateNodeProps: "Eigenschaften ändern",
    renameNode: (name) => (name ? `„${name}“ nennen` : "Ein Element benennen"),
    applyCss: (selector) => (selector ? `${selector} gestalten` : "Stile ändern"),
    assignClass: (name) => `Klasse ${name} hinzufügen`,
    removeClass: (name) => `Klasse ${name} entfernen`,
    read_document: "Die Seite lesen",
    getNodeHtml: "Ein Element lesen",
    open_document: "Eine Seite öffnen",
    render_snapshot: "Die Seite ansehen",
    addPage: (name) => `Seite ${name} hinzufügen`,
    renamePage: "Eine Seite umbenennen",
    deletePage: "Eine Seite löschen",
    duplicatePage: "Eine Seite verdoppeln",
    restore: "Wiederherstellen",
  },
  callPending: "läuft",
  callOpen: "nicht ausgeführt",
  callOk: "erledigt",
  callFailed: "fehlgeschlagen",
  callConflict: "die Seite hatte sich geändert",
  callInput: "Eingabe",
  earlierCalls: (count, failed) =>
    (count === 1 ? "1 früherer Schritt" : `${count} frühere Schritte`) + (failed ? `, ${failed} fehlgeschlagen` : ""),
  earlierRounds: (count) => `Was davor geschah (${count})`,
  service: {
    provider_auth: "Der Anbieter nimmt den Schlüssel nicht an. Prüfen Sie ihn in den Einstellungen.",
    provider_quota: "Das Guthaben oder Kontingent beim Anbieter ist aufgebraucht.",
    provider_overloaded: "Der Anbieter ist überlastet. Versuchen Sie es gleich noch einmal.",
    provider_error: "Beim Anbieter ist ein Fehler aufgetreten.",
    provider_request: "Der Anbieter hat die Anfrage abgelehnt.",
    provider_overflow: "Die Unterhaltung ist länger, als das Modell aufnimmt. Beginnen Sie eine neue.",
    provider_images: "Das Modell kann die Bilder nicht lesen. Wählen Sie ein anderes, oder senden Sie nur Text.",
    provider_stalled: "Der Anbieter hat mitten in der Antwort nichts mehr gesendet.",
    provider_unreachable: "Der Anbieter ist nicht erreichbar.",
    provider_closed: "Die Anfrage an den Anbieter wurde abgebrochen.",
    provider_empty: "Das Modell hat nichts geantwortet.",
    over_age: "Die Antwort kam nicht mehr voran und wurde beendet.",
    broken: "Die Antwort ist durch einen Fehler des Dienstes abgebrochen.",
    aborted: "Die Antwort wurde vom Betreiber angehalten.",
    interrupted: "Die Antwort wurde unterbrochen.",
    no_answer: "Der Editor hat nicht rechtzeitig geantwortet.",
    refused: "Das Modell hat abgelehnt, darauf zu antworten.",
    superseded: "Eine neuere Frage ist an die Stelle dieser getreten.",
    too_old: "Diese Antwort ist zu alt, um zurückgenommen zu werden.",
    roundLimit: "Die Antwort hat ihre Höchstzahl an Schritten erreicht. Bitten Sie darum, weiterzumachen.",
    repeatedCall: "Das Modell hat denselben Schritt immer wieder verlangt und wurde um eine Antwort gebeten.",
    repeatedFailures: "Zu viele Schritte nacheinander sind fehlgeschlagen; das Modell wurde um eine Antwort gebeten.",
    uploadRefused:
      "Der Speicher nimmt das Hochgeladene nicht an. Fragen Sie, wer den Dienst betreibt, ob er es von dieser Adresse annimmt.",
    UnreachableError: "Der Dienst antwortet nicht. Prüfen Sie die Verbindung, und versuchen Sie es erneut.",
    InvalidResponseError: "Die Antwort des Dienstes ist nicht zu lesen. Versuchen Sie es erneut.",
    TurnLostError: "Der Antwort ließ sich nicht bis zum Ende folgen. Vielleicht läuft sie noch.",
    status400: "So kann das nicht gesendet werden.",
    status401: "Sie sind abgemeldet. Melden Sie sich wieder an.",
    status402: "Das Budget ist aufgebraucht. Warten Sie, bis es sich erneuert, oder bitten Sie um mehr.",
    status403: "Dazu fehlt Ihnen das Recht. Fragen Sie, wer Ihr Konto verwaltet.",
    status404: "Das gibt es nicht mehr. Laden Sie die Liste neu.",
    status409: "Etwas anderes ist dazwischengekommen. Sehen Sie nach, und versuchen Sie es erneut.",
    status410: "Das ist abgelaufen. Senden Sie es noch einmal.",
    status413: "Das ist zu groß. Senden Sie weniger oder kleinere Bilder.",
    status422: "Dieses Modell kann das nicht. Wählen Sie ein anderes.",
    status429: "Das waren zu viele Anfragen. Warten Sie einen Moment.",
    status500: "Der Dienst hat gerade ein Problem. Versuchen Sie es gleich noch einmal.",
  },
  approval: APPROVAL_WORDS.de,
  answerReady: "Der Assistent hat geantwortet.",
  you: "Sie",
  assistant: "Assistent",
};

/** @type {Record<string, Messages>} */
export const MESSAGES = { en: EN, de: DE };

/**
 * The words for a language tag such as `de-AT`; English where there are none.
 *
 * @param {string} language
 * @param {Partial<Messages>} [own] Words in place of the panel's.
 * @returns {Messages}
 */
export function messagesFor(language, own = {}) {
  const [name] = language.toLowerCase().split(/[-_]/);
  const known = Object.hasOwn(MESSAGES, name) ? MESSAGES[name] : EN;
  const calls = { ...known.calls, ...own.calls };
  const service = { ...known.service, ...own.service };
  const approval = { ...known.approval, ...own.approval };
  return { ...known, ...own, calls, service, approval };
}

/**
 * The language tag that numbers and dates are written by. Pages also say `en_US`, or what no browser knows.
 *
 * @param {string | undefined} language
 * @returns {string}
 */
export function languageTag(language) {
  try {
    return Intl.getCanonicalLocales((language || "en").replaceAll("_", "-"))[0];
  } catch {
    return "en";
  }
}
