// The grammar as VS Code reads it: each line of a crontab and what its parts are called.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { test } from "node:test";

const require = createRequire(import.meta.url);
const oniguruma = require("vscode-oniguruma");
const textmate = require("vscode-textmate");
const here = new URL("..", import.meta.url);

await oniguruma.loadWASM((await readFile(require.resolve("vscode-oniguruma/release/onig.wasm"))).buffer);
const registry = new textmate.Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  }),
  loadGrammar: async () =>
    textmate.parseRawGrammar(await readFile(new URL("syntaxes/crontab.tmLanguage.json", here), "utf8"), "crontab.json"),
});
const grammar = await registry.loadGrammar("source.crontab");

function named(line) {
  const { tokens } = grammar.tokenizeLine(line, textmate.INITIAL);
  return tokens
    .map((token) => [line.slice(token.startIndex, token.endIndex), token.scopes.at(-1).replace(/\.crontab$/, "")])
    .filter(([text]) => text.trim());
}

const rows = [
  ["# a comment", [["# a comment", "comment.line.number-sign"]]],
  ["MAILTO=root", [["MAILTO", "variable.other"], ["=", "keyword.operator.assignment"], ["root", "string.unquoted"]]],
  ["@daily run", [["@daily", "keyword.other.nickname"], ["run", "meta.command"]]],
  [
    "*/5 9-17 1,15 JAN mon run",
    [
      ["*", "constant.language.star"], ["/", "keyword.operator.range"], ["5", "constant.numeric"],
      ["9", "constant.numeric"], ["-", "keyword.operator.range"], ["17", "constant.numeric"],
      ["1", "constant.numeric"], [",", "punctuation.separator.list"], ["15", "constant.numeric"],
      ["JAN", "support.constant.name"], ["mon", "support.constant.name"], ["run", "meta.command"],
    ],
  ],
  [
    "0 9 * * * date +\\%F % x",
    [
      ["0", "constant.numeric"], ["9", "constant.numeric"], ["*", "constant.language.star"],
      ["*", "constant.language.star"], ["*", "constant.language.star"], ["date +", "meta.command"],
      ["\\%", "constant.character.escape"], ["F ", "meta.command"], ["%", "keyword.control.newline"], [" x", "meta.command"],
    ],
  ],
];

for (const [line, expected] of rows) {
  test(line, () => assert.deepEqual(named(line), expected));
}
