/** What a form of a model says: its defaults, what is wrong with it, and how it is stored. */

/** Types of fields that visitors cannot fill in. */
export const UNEXPOSED_TYPES = [
  "markdown",
  "richtext",
  "code",
  "icon",
  "image",
  "video",
  "file",
  "relation",
  "relations",
  "object",
];
/** The least and the greatest number of each limit. */
export const BOUNDS = { perMinute: [1, 10], perMonth: [1, 1_000_000], keepDays: [1, 3650] };
export const MAX_MESSAGE = 500;
const DEFAULT_HONEYPOT = "website";

/** @typedef {{name: string, type: string, isShown: boolean, isRequired: boolean, isPossible: boolean}} FormField */
/**
 * @typedef {object} FormState What somebody edits.
 * @property {boolean} enabled
 * @property {boolean} public
 * @property {FormField[]} fields All of the model, those of the form first.
 * @property {string} successMessage
 * @property {string} honeypot
 * @property {boolean} captcha
 * @property {boolean} autoApprove
 * @property {string} perMinute
 * @property {string} perMonth
 * @property {string} keepDays
 */
/** @typedef {"fields" | "honeypot" | "perMinute" | "perMonth" | "keepDays" | "successMessage"} FormProblem */

/**
 * Return what is edited of the form of a model, or of a new one.
 *
 * @param {any} model
 * @returns {FormState}
 */
export function readFormState({ fields, form }) {
  const own = form ?? { enabled: true, honeypot: true };
  const exposed = (own.exposedFields ?? []).filter((/** @type {string} */ name) => Object.hasOwn(fields, name));
  const names = [...exposed, ...Object.keys(fields).filter((name) => !exposed.includes(name))];
  const honeypot = own.honeypot === true ? DEFAULT_HONEYPOT : own.honeypot || "";
  return {
    enabled: own.enabled === true,
    public: own.public !== false,
    fields: names.map((name) => ({
      name,
      type: fields[name].type,
      isShown: exposed.includes(name),
      isRequired: own.requiredOverrides?.[name] ?? fields[name].required === true,
      isPossible: isPossible(fields[name]),
    })),
    successMessage: own.successMessage ?? "",
    honeypot,
    captcha: own.captcha === true,
    autoApprove: own.autoApprove === true,
    perMinute: String(own.limits?.perMinute ?? 10),
    perMonth: String(own.limits?.perMonth ?? 10_000),
    keepDays: own.keepDays ? String(own.keepDays) : "",
  };
}

/** @param {any} definition */
function isPossible({ type, items }) {
  if (type !== "array") return !UNEXPOSED_TYPES.includes(type);
  const kind = typeof items === "string" ? items : items?.type;
  return Boolean(kind) && kind !== "array" && !UNEXPOSED_TYPES.includes(kind);
}

/**
 * Return what is wrong, in the order of the page.
 *
 * @param {FormState} state
 * @returns {FormProblem[]}
 */
export function findFormProblems(state) {
  const shown = state.fields.filter(({ isShown }) => isShown).map(({ name }) => name);
  /** @type {[FormProblem, boolean][]} */
  const checks = [
    ["fields", state.enabled && !shown.length],
    ["successMessage", [...state.successMessage].length > MAX_MESSAGE],
    ["honeypot", shown.includes(state.honeypot) || [...state.honeypot].length > 64],
    ["perMinute", !isWithin(state.perMinute, BOUNDS.perMinute)],
    ["perMonth", !isWithin(state.perMonth, BOUNDS.perMonth)],
    ["keepDays", state.keepDays !== "" && !isWithin(state.keepDays, BOUNDS.keepDays)],
  ];
  return checks.filter(([, isWrong]) => isWrong).map(([name]) => name);
}

/** @param {string} text @param {number[]} bounds */
function isWithin(text, [least, most]) {
  return /^[0-9]{1,9}$/.test(text) && Number(text) >= least && Number(text) <= most;
}

/**
 * Return the form as the definition of a model has it. Only what differs from the model is said of required fields.
 *
 * @param {FormState} state
 * @param {any} model
 */
export function toFormDefinition(state, { fields, form }) {
  const shown = state.fields.filter(({ isShown }) => isShown);
  const overrides = shown.filter(({ name, isRequired }) => isRequired !== (fields[name].required === true));
  const { successMessage, ...kept } = form ?? {};
  return {
    ...kept,
    enabled: state.enabled,
    public: state.public,
    exposedFields: shown.map(({ name }) => name),
    requiredOverrides: Object.fromEntries(overrides.map(({ name, isRequired }) => [name, isRequired])),
    ...(state.successMessage && { successMessage: state.successMessage }),
    honeypot: state.honeypot,
    captcha: state.captcha,
    autoApprove: state.autoApprove,
    limits: { perMinute: Number(state.perMinute), perMonth: Number(state.perMonth) },
    keepDays: state.keepDays ? Number(state.keepDays) : null,
  };
}
