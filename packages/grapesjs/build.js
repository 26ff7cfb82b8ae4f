/** Writes the one file that a page without modules loads: the global `grapesjs-fermata` is the plugin. */

import { mkdir, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const SOURCE = new URL("src/index.js", import.meta.url).pathname;
const FOLDER = new URL("dist/umd/", import.meta.url).pathname;

await build({
  entryPoints: [SOURCE],
  outfile: `${FOLDER}grapesjs-fermata.min.js`,
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "grapesjsFermata",
  target: "es2022",
  external: ["@fermata/client"],
  // the global is the plugin itself, as GrapesJS expects of a name in `plugins`
  banner: { js: "(function (root) {" },
  footer: {
    js:
      "const plugin = Object.assign(grapesjsFermata.default, grapesjsFermata);" +
      "if (typeof module === 'object' && module.exports) module.exports = plugin;" +
      "else root['grapesjs-fermata'] = plugin;" +
      "})(globalThis);",
  },
});
// the package is one of modules, and this file is none
await mkdir(FOLDER, { recursive: true });
await writeFile(`${FOLDER}package.json`, '{ "type": "commonjs" }\n');
