// What the manifest promises: every file that it names is there, and a job file is known where no other extension knows TOML.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

const here = new URL("..", import.meta.url);
const manifest = JSON.parse(await readFile(new URL("package.json", here), "utf8"));
const { languages, grammars } = manifest.contributes;

test("a job file has a language in a stock installation", () => {
  const toml = languages.find((language) => language.id === "toml");
  assert.deepEqual(toml.filenames, ["chronex.toml"]);
  assert.deepEqual(toml.filenamePatterns, ["*.chronex.toml"]);
  assert.ok(manifest.activationEvents.includes("workspaceContains:**/chronex.toml"));
});

test("every language that is contributed starts the extension", () => {
  for (const { id } of languages) assert.ok(manifest.activationEvents.includes(`onLanguage:${id}`), id);
});

test("every file that is named is there", () => {
  const named = [...languages.map((l) => l.configuration), ...grammars.map((g) => g.path)].filter(Boolean);
  for (const path of named) assert.ok(existsSync(new URL(path, here)), path);
});

test("the selector knows job files and units by name, whatever language they have", async () => {
  const source = await readFile(new URL("src/extension.ts", here), "utf8");
  for (const pattern of ["**/chronex.toml", "**/*.chronex.toml", "**/*.timer", "**/*.timer.d/*.conf"]) {
    assert.ok(source.includes(`{ pattern: "${pattern}" }`), pattern);
  }
});
