import { executor, fermata } from "./agent.js";

const form = document.querySelector("form");
const answer = document.querySelector("output");
const [ask, stop, undo] = form.querySelectorAll("button");
const scope = "site";
let turn;

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const prompt = form.elements.prompt.value;
  await show(() => fermata.start({ scope, prompt, executor, conversationId: sessionStorage.conversation }));
});
stop.addEventListener("click", () => turn.cancel());
undo.addEventListener("click", () => show(() => turn.undo({ executor })));

/** Show a turn from its beginning to its end. */
async function show(begin) {
  answer.textContent = "";
  ask.disabled = undo.disabled = true;
  try {
    turn = await begin();
    sessionStorage.conversation = turn.conversationId ?? sessionStorage.conversation;
    stop.disabled = false;
    for await (const event of turn.events()) {
      if (event.type === "text") answer.append(event.text);
      if (event.type === "roundRetracted" || event.type === "logRewound") answer.textContent = "";
      if (event.type === "toolCall") writeLine(`· ${event.toolName}`);
      if (event.type === "error") writeLine(event.message);
      if (event.report) writeLine(`${event.report.undone.length} edits undone.`);
      answer.scrollTop = answer.scrollHeight;
    }
    form.dataset.ended = (await turn.result).type;
  } catch (error) {
    answer.append(`${error.message} ${error.hint ?? ""}`);
  }
  stop.disabled = true;
  ask.disabled = undo.disabled = false;
}

function writeLine(text) {
  const isAtStart = /(^|\n)$/.test(answer.textContent);
  answer.append(`${isAtStart ? "" : "\n"}${text}\n`);
}

// A turn that ran when the page was loaded again goes on here.
if (sessionStorage.conversation) {
  const { conversation } = await fermata.conversations.get(sessionStorage.conversation);
  if (conversation.activeTurn) show(() => fermata.follow(conversation.activeTurn.bridgeId, { executor, scope }));
}
document.documentElement.dataset.ready = "";
