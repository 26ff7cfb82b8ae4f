import { Fermata } from "@fermata/client";
import grapesjs from "grapesjs";
import fermata from "grapesjs-fermata";

const form = document.querySelector("#ask");
const undo = document.querySelector("#undo");
const answer = document.querySelector("#answer");
const service = new URLSearchParams(location.search).get("service") ?? "http://127.0.0.1:8787";
// a page of your own asks its server for the token; here it comes with the address: …/#<token>
const client = new Fermata({ baseUrl: service, token: async () => location.hash.slice(1) });
const editor = grapesjs.init({
  container: "#gjs",
  height: "80vh",
  fromElement: true,
  storageManager: false,
  telemetry: false,
  cssIcons: "",
  plugins: [fermata],
  pluginsOpts: { [fermata]: { client, panel: false } },
});
let turn;

async function ask(prompt) {
  answer.textContent = "";
  turn = await editor.runCommand("fermata:ask", { prompt });
  for await (const event of turn.events()) {
    if (event.type === "text") answer.textContent += event.text;
    if (event.type === "error") answer.textContent = event.message;
  }
  undo.disabled = false;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  ask(new FormData(form).get("prompt")).catch((error) => {
    answer.textContent = error.message;
  });
});

undo.addEventListener("click", async () => {
  undo.disabled = true;
  const { report } = await (await turn.undo()).result;
  answer.textContent = `${report.undone.length} edits were taken back.`;
});
